"""Words beside numbers: those that name a number, those that make another number of it, and those that take it back."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["FACTORS", "NO_LABEL", "VALUES", "fraction_words", "number_word", "singular"]

FACTORS = {
    "hundred": r"10^{2}",
    "thousand": r"10^{3}",
    "million": r"10^{6}",
    "billion": r"10^{9}",
    "trillion": r"10^{12}",
    "lakh": r"10^{5}",
    "crore": r"10^{7}",
    "dozen": "12",
    "tens": "10",
    "tenth": r"10^{-1}",
    "hundredth": r"10^{-2}",
    "thousandth": r"10^{-3}",
    "millionth": r"10^{-6}",
}
"""By what a word behind a number multiplies it."""

_NOT = (
    "not nor and or maybe perhaps probably possibly either neither both wrong false incorrect true correct unknown undefined none"
)
_COMPARED = (
    "more less fewer greater smaller larger bigger higher lower than least most minimum maximum above below over under beyond up "
    "down off within short shy almost nearly inclusive exclusive excluding including except"
)
_OPERATIONS = (
    "plus minus times divided multiplied added subtracted squared cubed factorial choose root power exponent mod modulo modulus "
    "base remainder log sum difference product quotient ratio inverse conjugate prime fold twice thrice double doubled triple "
    "tripled halved repeating recurring negative positive infinity decimal binary octal hex hexadecimal pi sqrt"
)
_JOINED = (
    "if when where whenever for with without unless until since because then else otherwise but while as at in on by to of from "
    "through between versus vs is are was were be been has have had which that this these those who what it its we so thus hence "
    "therefore past before after till odd even"
)
_VALUES = (
    "hundred thousand million billion trillion quadrillion lakh lac crore dozen score gross myriad ten couple half halve third "
    "quarter fourth fifth sixth seventh eighth ninth tenth eleventh twelfth twentieth hundredth thousandth millionth billionth "
    "percent percentage pct permille ppm ppb bps bp basis one "
    "mil mille millier millon millione million tausend millionen prozent hundert "
    "cien ciento juta ribu ratus persen docena douzaine dutzend medio demi halb tercio cuarto pour por"
)
NO_LABEL = frozenset(" ".join((_NOT, _COMPARED, _OPERATIONS, _JOINED)).split())
"""Words that are no name of what is counted: with them the number is another one, or none."""
VALUES = frozenset([*_VALUES.split(), "halves"])
"""Words, without the sign of the plural, that name a number themselves."""


def singular(word: str) -> str:
    """A word without the sign of the plural, as far as its end tells.

    >>> [singular(word) for word in ("apples", "boxes", "glass", "people")]
    ['apple', 'box', 'glass', 'person']
    """
    known = _PLURALS.get(word)
    if known is not None:
        return known
    if word.endswith(("xes", "ches", "shes", "sses")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


_PLURALS = {"people": "person", "children": "child", "men": "man", "women": "woman", "feet": "foot"}


_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: n for n, word in enumerate(_ONES.split())}
_LARGE = {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}


def number_word(text: str) -> int | None:
    """The number from 0 to 999 that English words name.

    >>> number_word("seven"), number_word("Forty-two"), number_word("one hundred and five"), number_word("evens")
    (7, 42, 105, None)
    """
    words = text.lower().replace("-", " ").split()
    if not 0 < len(words) <= 5:
        return None
    total = 0
    if len(words) > 1 and words[1] == "hundred":
        if not 0 < _SMALL.get(words[0], 0) < 10:
            return None
        total, words = 100 * _SMALL[words[0]], words[2:]
        if words[:1] == ["and"]:
            words = words[1:] or ["and"]
        if not words:
            return total
    if words[0] in _LARGE and len(words) <= 2:
        ones = _SMALL.get(words[1], 0) if len(words) == 2 else 0
        return total + _LARGE[words[0]] + ones if len(words) == 1 or 0 < ones < 10 else None
    return total + _SMALL[words[0]] if len(words) == 1 and words[0] in _SMALL else None


_PARTS = {
    **{word: n for n, word in enumerate(["third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"], 3)},
    **{"half": 2, "quarter": 4, "hundredth": 100, "thousandth": 1000},
}
_MANY = {**{f"{word}s": n for word, n in _PARTS.items()}, "halves": 2}


def fraction_words(text: str) -> Fraction | None:
    """The fraction that English words name, with a whole number in front or none; an ordinal (``twenty-third``) is none.

    >>> [str(fraction_words(text)) for text in ("one half", "two-thirds", "one and a half", "half", "two third", "third")]
    ['1/2', '2/3', '3/2', '1/2', 'None', 'None']
    """
    whole, joined, rest = text.lower().replace("-", " ").rpartition(" and ")
    words = rest.split()
    above = {"a": 1, "one": 1}.get(words[0], _SMALL.get(words[0], 0)) if len(words) == 2 else int(words == ["half"])
    below = (_PARTS if above == 1 else _MANY).get(words[-1]) if words else None
    before = number_word(whole) if joined else 0
    return None if not above or below is None or before is None else before + Fraction(above, below)
