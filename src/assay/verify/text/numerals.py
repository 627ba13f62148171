"""Ways to write a number, brought into the plain form that is then read: ``1.5e3``, ``7/2``, ``1,234``."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["after_hashes", "plain_numbers"]

_WIDE = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", 0x2044: "/"}
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"
_VULGAR_RUN = re.compile(f"(?<=([0-9])) ?([{_VULGAR}])|[{_VULGAR}]")
_GROUPED = re.compile(r"(?<=[0-9])(?:\{,\}|\\,|[\u2009\u202f])(?=[0-9]{3}(?![0-9]))")
_ARGUMENT = r"\s*(?:\{\s*([0-9]{1,40})\s*\}|([0-9]))"
_FRACTION = re.compile(
    rf"(?<![A-Za-z)}}\]^_.,])(?<![\^_]\{{)\s?\\[dtc]?frac{_ARGUMENT}{_ARGUMENT}"
    r"(?=\s*(?:\Z|[^\sA-Za-z\\({\[^_0-9]|\\[)\],;.! %]|\\text\b|\\mathrm\b)|\s+[a-z]{2})"
)
_TIMES = r"(?:×|·|⋅|\*|x|X|\\times(?![A-Za-z])|\\cdot(?![A-Za-z]))"
_POWERED = re.compile(
    rf"(?P<before>{_TIMES}\s{{0,3}})?(?<![\w.,^{{/])(?P<head>[0-9][0-9.,]*)\s{{0,3}}{_TIMES}\s{{0,3}}10\s?"
    r"(?:(?:\^|\*\*)\s?(?:\{\s?(?P<braced>[-+−]?[0-9]{1,6})\s?\}|\((?P<round>[-+−]?[0-9]{1,6})\)|(?P<bare>[-+−]?[0-9]{1,6}))"
    r"|(?P<raised>[⁻⁺]?[⁰¹²³⁴-⁹]{1,6}))(?!\s?(?:\^|\*\*))"
)
_SIGNED = re.compile(r"(?<![\w)])([-−])\\?[$€£](?=[0-9.])")
_PER_CENT = re.compile(r"(?<=[0-9]) ?(?:percent|per cent|pct)\b", re.IGNORECASE)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−", "0123456789-+-")
_MIXED = re.compile(r"(?<![\w.,/^{}\])])([0-9]{1,40})(?: |\\ |~)([0-9]{1,9})\s?/\s?([0-9]{1,9})(?![\w/])(?!\.[0-9])")
_HASHES = re.compile(r"^[ \t>*_]{0,8}####[ \t]*([^\n]*)$", re.MULTILINE)
_NUMBER_ONLY = re.compile(
    r"[*_`$({\\ ]{0,6}[-+−]?[$£€¥]?[-+−]? ?(?:[0-9]|\.[0-9])[0-9.,/^{}()×\\·*⁰¹²³⁴-⁹ -]*(?:e[-+]?[0-9]+)?(?:\\?[%$°])?"
    r"(?: ?[^\W\d_]{1,20}\.?){0,2}[\s.*_`$\\)}]{0,8}"
)
_MOST = 200


def plain_numbers(text: str) -> str:
    r"""A text in which numbers have their plain form.

    Full-width digits become ASCII; ``1.5 × 10^3``, ``1.5 \times 10^{3}`` and ``1.5·10³`` become ``1.5e3``; ``3 1/2``, ``3½`` and
    ``3\frac{1}{2}`` become ``7/2``; ``\frac{3}{4}`` alone becomes ``3/4``; ``1{,}234`` and ``1\,234`` become ``1,234``. A
    fraction or a power that is part of a formula stays as it is.

    >>> plain_numbers(r"1.5 \times 10^{3} or 3 1/2 or \frac{3}{4}"), plain_numbers(r"x^{\frac{1}{2}} \frac{1}{2}x 5 3/2")
    ('1.5e3 or 7/2 or 3/4', 'x^{\\frac{1}{2}} \\frac{1}{2}x 5 3/2')
    """
    text = _PER_CENT.sub("%", _SIGNED.sub(r"\1", text.translate(_WIDE)))
    if "\\" in text or "{,}" in text or not text.isascii():
        text = _GROUPED.sub(",", text)
        text = _VULGAR_RUN.sub(_vulgar, text)
        text = _FRACTION.sub(_fraction, text)
    return _MIXED.sub(_mixed_number, _POWERED.sub(_power_number, text))


def after_hashes(text: str) -> str | None:
    r"""The number behind the last ``####`` whose line has nothing else; a heading of Markdown is none.

    >>> after_hashes("6 + 14\n#### 20\nQuestion: 7 dogs and 3 cats"), after_hashes("#### 3. Check\nso 5")
    ('20', None)
    """
    lines = [found[1].strip() for found in _HASHES.finditer(text)]
    for line in reversed(lines):
        if len(line) <= _MOST and _NUMBER_ONLY.fullmatch(line.translate(_WIDE)) and not re.match(r"[0-9]+[.)] +[^\W\d_]", line):
            return line
    return None


def _vulgar(found: re.Match[str]) -> str:
    fraction = unicodedata.normalize("NFKC", found[2] or found[0]).replace("\u2044", "/")
    return f" {fraction}"


def _fraction(found: re.Match[str]) -> str:
    above, below = found[1] or found[2], found[3] or found[4]
    before = found.string[max(0, found.start() - 1) : found.start()]
    return f"{' ' if before.isdigit() or found[0][0].isspace() else ''}{above}/{below}"


def _power_number(found: re.Match[str]) -> str:
    if found["before"] or "." in (found["head"][-1], found["head"][:1]) or found["head"].endswith(","):
        return found[0]
    power = found["braced"] or found["round"] or found["bare"] or found["raised"]
    return f"{found['head']}e{power.translate(_RAISED)}"


def _mixed_number(found: re.Match[str]) -> str:
    whole, above, below = (int(part) for part in found.groups())
    return f"{whole * below + above}/{below}" if 0 < above < below else found[0]
