"""How an answer is written: as numbers, or as a sum of powers; without anything left to be calculated."""

from __future__ import annotations

import re

from assay.verify.math.words import number_word

__all__ = ["FORMS", "written"]

FORMS = ("any", "number", "simple", "expanded", "interval")
"""``any``.

``number``: a number, or numbers in a list, tuple, set or matrix, each written out as an integer, decimal, fraction, mixed number,
percentage, or with a power of ten, and with a unit or ``x =`` or none, or as the last member of a chain of equations. ``simple``:
no product or power of written-out numbers, as in ``2*3*pi``. ``expanded``: brackets around nothing but a number. ``interval``: an
interval, a union of such, or an inequality with the unknown alone, all bounds written out.
"""

_SPACE = re.compile(r"\\(?:[,;:! ()]|left|right|quad\b|displaystyle\b)|[$~]")
_TEXT = re.compile(r"\\(?:text|mathrm|mbox|rm|operatorname)\s{0,3}\{([^{}]*)\}")
_MATRIX = re.compile(r"\\(?:begin|end)\{[a-zA-Z]{1,12}\}")
_BETWEEN = re.compile(r"[,;&]|\band\b|\bor\b|\\pm|±")
_NAME = re.compile(r"\s*[A-Za-z][A-Za-z_']{0,19}(?:\([A-Za-z]\))?\s*(?:=|≡|\\equiv|\\approx)\s*")
_CHAIN = re.compile(r"\A[^=]*(?:=[^=]*)*(?<![<>!=])=(?=[^=]*\Z)")
_DECIMAL = r"(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:\\overline\{[0-9]{1,40}\})?"
_UNDER = rf"(?:\\[dt]?frac\s*(?:\{{\s*-?\s*{_DECIMAL}\s*\}}\s*\{{\s*{_DECIMAL}\s*\}}|[0-9][0-9]))"
_POWER = r"(?:[eE][-+]?[0-9]{1,9}|\s*(?:\\times|\\cdot|×|·|\*)\s*10\s*\^\s*\{?\s*-?[0-9]{1,9}\s*\}?)"
_UNIT = (
    r"(?:\s*+(?:\\?%|\^\s*+\{?\s*+\\circ\s*+\}?+|°|(?:/|·|per\b)?+\s*+[A-Za-zΩµ€£]++(?:\^?+\{?+-?+[1-3]\}?+(?![0-9]))?+\.?+))*+"
)
_NUMBER = re.compile(
    rf"[-+]?\s*[€£]?\s*\(?\s*-?\s*(?:{_UNDER}|{_DECIMAL}(?:\s*{_UNDER}|\s+[0-9]+\s*/\s*[0-9]+|\s*/\s*{_DECIMAL}|{_POWER})?)"
    rf"\s*\)?{_UNIT}\.?"
)
_POWER_OF_TEN = re.compile(_POWER)
_LEFT = re.compile(r"[0-9]\s*+(?:\*\*?|×|·|\\times|\\cdot|\^)\s*+[{(]?+\s*+-?+[0-9]")
_ALONE = re.compile(r"\(\s*[-+]?\s*[0-9]{1,99}(?:\s*/\s*[0-9]{1,99})?\s*\)")
_RELATION = re.compile(r"<=?|>=?|[≤≥∪∈,]|\\(?:leq?|geq?|cup|in|lt|gt)(?![a-z])|\b(?:U|or|and)\b")
_INFINITE = re.compile(r"\\infty|∞|\binf(?:ini)?(?:ty)?\b")
_OPEN = re.compile(r"[\[(<>≤≥]|\\(?:leq?|geq?|lt|gt)(?![a-z])")
_LETTER = re.compile("[A-Za-z]")
_NOT_A_UNIT = re.compile(r"sqrt|log|ln|sin|cos|tan|pi|mod|choose", re.IGNORECASE)


def written(text: str, form: str) -> bool:
    r"""Whether an answer is written in a form (`FORMS`); whether it is right is another matter.

    >>> [written(s, "number") for s in ("1/2", r"-\frac{1}{2}", "3 m/s^2", "x = 2, y = -1.5", r"1.5 \times 10^3", "1 + 1", "2^3")]
    [True, True, True, True, True, False, False]
    >>> [written(s, "expanded") for s in ("x^2 + 2x + 1", "(1/2)x", "(x + 1)^2")]
    [True, True, False]
    >>> [written(s, "interval") for s in ("(-inf, 2) U [3, 4]", "x < 1/2", "2x < 1")]
    [True, True, False]
    """
    if form == "any":
        return True
    text = _SPACE.sub(" ", text.replace("\\\\", ";").replace("\\$", "$")).replace("{,}", "").replace("−", "-").replace("–", "-")
    if form == "expanded":
        return "(" not in _ALONE.sub("1", text.rpartition("=")[2]).replace("[", "(")
    if form == "simple":
        return _LEFT.search(_POWER_OF_TEN.sub(" ", text)) is None
    if form == "interval":
        bounds = [part.strip(" []()\t\r\n") for part in _RELATION.split(_INFINITE.sub("0", text))]
        return (
            any(bounds) and _OPEN.search(text) is not None and all(not b or _LETTER.fullmatch(b) or _is_bound(b) for b in bounds)
        )
    text = _MATRIX.sub(" ", _TEXT.sub(r" \1 ", text).replace("\\{", " ").replace("\\}", " ").replace("dfrac", "frac"))
    parts = [
        part
        for part in (_NAME.sub("", _CHAIN.sub("", p, count=1), count=1).strip(" []()\t\r\n") for p in _BETWEEN.split(text))
        if part
    ]
    return bool(parts) and all(map(_is_number, parts))


def _is_number(part: str) -> bool:
    part = part if part.count("(") == part.count(")") else part.replace("(", " ").replace(")", " ").strip()
    if number_word(part.split(" ")[0]) is not None and number_word(part) is not None:
        return True
    return _NUMBER.fullmatch(part) is not None and not _NOT_A_UNIT.search(part)


def _is_bound(part: str) -> bool:
    return _is_number(part) and not _LETTER.search(part.replace("\\dfrac", "").replace("\\frac", ""))
