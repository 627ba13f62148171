"""Answers as text: what kind they are, when two are plainly the same, and seeded near misses."""

from __future__ import annotations

import re
from enum import StrEnum
from fractions import Fraction

import numpy as np

__all__ = ["Kind", "kind_of", "lookalike", "near_misses", "number_in", "respell_number", "same"]

_NUMBER = re.compile(r"[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_RATIO = re.compile(r"([+-]?\d{1,40})\s*/\s*([1-9]\d{0,39})")
_WORD = re.compile(r"[+-]?[0-9.]+|\w+")
_ALIKE = str.maketrans(
    {"a": "а", "c": "с", "e": "е", "o": "о", "p": "р", "x": "х", "A": "А", "B": "В", "C": "С", "0": "O", "1": "l", "5": "S"}
)


class Kind(StrEnum):
    """What an answer is, as far as its text shows."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    RATIO = "ratio"
    LETTER = "letter"
    WORD = "word"
    TEXT = "text"


def kind_of(text: str) -> Kind:
    """The kind of an answer.

    >>> [kind_of(t).value for t in ("42", "4.5", "3/4", "B", "Paris", "[1, 2]")]
    ['integer', 'decimal', 'ratio', 'letter', 'word', 'text']
    """
    word = text.strip()
    if re.fullmatch(r"[+-]?\d{1,40}", word):
        return Kind.INTEGER
    if _RATIO.fullmatch(word):
        return Kind.RATIO
    if len(word) <= 40 and _NUMBER.fullmatch(word):
        return Kind.DECIMAL
    if re.fullmatch(r"[A-Za-z]", word):
        return Kind.LETTER
    return Kind.WORD if word.isalpha() else Kind.TEXT


def number_in(text: str) -> Fraction | None:
    """The number that a text is, if it is one; exact.

    >>> number_in("1,000.5"), number_in("six")
    (Fraction(2001, 2), None)
    """
    match kind_of(text):
        case Kind.INTEGER | Kind.DECIMAL:
            return Fraction(text.strip().replace(",", ""))
        case Kind.RATIO:
            return Fraction(text.replace(" ", ""))
        case _:
            return None


def same(one: str, other: str) -> bool:
    """Whether two answers are plainly the same: but for white space around them, or as numbers.

    >>> same("0.50", " 1/2 "), same("Ab", "ab")
    (True, False)
    """
    if one.strip() == other.strip():
        return True
    first = number_in(one)
    return first is not None and first == number_in(other)


def near_misses(text: str, rng: np.random.Generator) -> list[str]:
    """Wrong answers that look like a right one: a digit, a sign, a swap, one more, one less; none is plainly the same."""
    word = text.strip()
    out: list[str] = []
    value = number_in(word)
    if value is not None:
        out += [_shift_number(word, value, 1), _shift_number(word, value, -1), f"-{word}" if word[0] not in "+-" else word[1:]]
        out += [f"{word}0" if kind_of(word) is Kind.INTEGER else f"1{word}"]
    digits = [i for i, c in enumerate(word) if c.isdigit()]
    if digits:
        at = digits[int(rng.integers(len(digits)))]
        out.append(word[:at] + str((int(word[at]) + int(rng.integers(1, 9))) % 10) + word[at + 1 :])
    if len(word) > 1:
        at = int(rng.integers(len(word) - 1))
        out += [word[:at] + word[at + 1] + word[at] + word[at + 2 :], word[:-1], word + word[-1]]
    letters = [i for i, c in enumerate(word) if c.isascii() and c.isalpha()]
    if letters:
        at = letters[int(rng.integers(len(letters)))]
        base = ord("a") if word[at].islower() else ord("A")
        out.append(word[:at] + chr(base + (ord(word[at]) - base + int(rng.integers(1, 25))) % 26) + word[at + 1 :])
    return [miss for miss in dict.fromkeys(out) if miss.strip() and not same(miss, word) and _words(miss) != _words(word)]


def _words(text: str) -> list[str]:
    """Words and numbers, with their signs; where these are the same, two answers may mean the same."""
    return _WORD.findall(text)


def respell_number(text: str) -> list[str]:
    """The same number in other words: separators, zeros, a sign, an exponent, a fraction or decimal.

    >>> respell_number("1200")
    ['1,200', '1200.0', '+1200', '01200', '1.2e3', '1200/1']
    """
    value = number_in(text)
    if value is None:
        return []
    word, out = text.strip(), list[str]()
    plain = word.lstrip("+-")
    sign = "-" if value < 0 else ""
    if value.denominator == 1:
        whole = abs(value.numerator)
        out += [f"{sign}{whole:,}", f"{sign}{whole}.0", f"{'-' if sign else '+'}{whole}", f"{sign}0{whole}"]
        if whole >= 10:
            digits = str(whole).rstrip("0")
            tail = f".{digits[1:]}" if digits[1:] else ""
            out.append(f"{sign}{digits[0]}{tail}e{len(str(whole)) - 1}")
        out.append(f"{sign}{whole}/1")
    elif kind_of(word) is Kind.DECIMAL:
        out += [f"{word}0", f"{'-' if sign else '+'}{plain}", f"{value.numerator}/{value.denominator}"]
        out += [f"{sign}{plain[1:]}"] if plain.startswith("0.") else []
    else:
        out += [f"{2 * value.numerator}/{2 * value.denominator}", rf"\frac{{{value.numerator}}}{{{value.denominator}}}"]
        rest = value.denominator
        while rest % 2 == 0 or rest % 5 == 0:
            rest //= 2 if rest % 2 == 0 else 5
        out += [str(float(value))] if rest == 1 and value.denominator < 10**6 else []
    return [spelling for spelling in out if spelling != word]


def lookalike(text: str) -> str | None:
    """The text with letters and digits replaced by others that look the same; None where none does.

    >>> lookalike("10") == "lO", lookalike("7") is None
    (True, True)
    """
    if kind_of(text) is Kind.DECIMAL and "." in text:
        text = text.rstrip("0")  # read as a unit, an O there would leave the number as it is
    other = text.translate(_ALIKE)
    return other if other != text else None


def _shift_number(word: str, value: Fraction, by: int) -> str:
    """A number one more or one less in its last place."""
    match kind_of(word):
        case Kind.INTEGER:
            return str(value.numerator + by)
        case Kind.DECIMAL:
            mantissa = re.split("[eE]", word)[0]
            places = len(mantissa.partition(".")[2])
            moved = value + Fraction(by, 10**places)
            return f"{float(moved):.{places}f}"
        case _:
            return f"{value.numerator + by}/{value.denominator}"
