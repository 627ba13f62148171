"""Answers that are told by how they look: letters of a choice, times of day, numbers in a base."""

from __future__ import annotations

import re

from assay.verify.math.ratio import number
from assay.verify.math.values import Based, Choice, Clock, Formula, Value
from assay.verify.math.words import number_word

__all__ = ["literal"]

_STYLE = r"\\(?:text|textbf|textrm|textit|mathbf|mathrm|mathsf|bf|rm|boldsymbol)\s*"
_STYLED = re.compile(rf"{_STYLE}\{{([^{{}}]*)\}}")
_LOWER = re.compile(r"(?!opt|cho|the|ans|cor)[a-z]")
_NAMED = re.compile(r"(?:the\s+)?(?:correct\s+)?(?:option|choice|answer)(?:\s+is)?\s*:?\s*(?=[(A-Z])", re.IGNORECASE)
_LETTER = re.compile(r"\(?\s*([A-Za-z])\s*\)?\.?")
_LABELLED = re.compile(r"(?:\(\s*([A-Z])\s*\)[\s:.]*|([A-J])\s*(?:[):]\s*|\.\s+))(\S.*)", re.DOTALL)
_BEHIND_LETTER = frozenset([":", ".", ")", " "])
_HEDGED = re.compile(r"\(\s*[A-Z]\s*\)|\b(?:or|and|not|nor|[A-Z])\b")
_CLOCK = re.compile(
    r"(\d{1,2})\s*:\s*(\d\d)(?:\s*([APap])\.?\s?[Mm]\.?)?|(\d{1,2})(?:\s*([AP])\.?\s?M|\s?([ap])\.\s?m|\s([ap])m)\.?"
)
_BASED = re.compile(r"(?P<open>\(?)\s*([0-9A-Fa-f]+)\s*\)?\s*_\s*(.{1,40})")
_IN_BASE = re.compile(r"([0-9A-F]+)\s*\(?\s*(?:in\s+)?base[-\s]+([0-9a-z]+)\s*\)?", re.IGNORECASE)
_DIGITS = re.compile(
    r"\d{1,2}\s*(?::|(?:\\text\s*\{\s*)?[APap]\.?\s?[Mm])|[0-9A-Fa-f]+\s*(?:_|(?:\\text\s*\{\s*)?\(?\s*(?:in\s+)?base)"
)
_WRAPPED = re.compile(r"\\(?:text|mathrm)|base|[{}()\s]")


def literal(text: str) -> Value | None:
    """What a cleaned answer is by its looks; None where it has none of them.

    >>> literal("(B)"), literal("3:00 PM"), literal("(1010)_{two}")
    (Choice(letter='B', value=None), Clock(hours=3, minutes=0, half='p'), Based(digits='1010', base=2))
    """
    first = text[:1]
    if first.isalpha():
        named = number_word(text)
        if named is not None:
            return Formula(number(named), str(named))
    elif first.isdigit():
        if _DIGITS.match(text) is None:
            return None
    elif first != "(":
        styled = _STYLED.match(text) if first == "\\" else None
        if styled is None or (styled.end(1) - styled.start(1) > 3 and _LOWER.match(text, styled.start(1)) is not None):
            return None
    plain = _STYLED.sub(r"\1", text).strip() if "\\" in text else text
    return _choice(plain, text) or (_clock(plain) or _based_number(text, plain) if any(c.isdigit() for c in plain[:2]) else None)


def _choice(text: str, source: str) -> Choice | None:
    named = _NAMED.match(text) if len(text) > 6 else None
    text = text[named.end() :].strip() if named else text
    letter = _LETTER.fullmatch(text) if len(text) < 8 else None
    if letter is not None:
        small = source[-1] in ")}" and letter.group(1) in "abcdfghj"  # a small e or i is a constant
        return Choice(letter.group(1).upper()) if small or letter.group(1) in "ABCDEFGHIJ" else None
    labelled = _LABELLED.fullmatch(text) if text[0] == "(" or text[1:2] in _BEHIND_LETTER else None
    if labelled is None or _HEDGED.search(text, labelled.start(3)) is not None:
        return None
    return Choice(labelled.group(1) or labelled.group(2), labelled.group(3))


def _clock(text: str) -> Clock | None:
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return None
    halves = [clock.group(n) for n in (3, 5, 6, 7) if clock.group(n)]
    return Clock(int(clock.group(1) or clock.group(4)), int(clock.group(2) or 0), halves[0].lower() if halves else None)


def _based_number(text: str, plain: str) -> Value | None:
    if "_" in text:
        found = _BASED.fullmatch(text)
        digits, written = (found.group(2), _WRAPPED.sub("", found.group(3)).lower()) if found else ("", "")
        if not found or (digits[0].isalpha() and not found["open"]):
            return None
    elif "base" in plain and (found := _IN_BASE.fullmatch(plain)) is not None:
        digits, written = found.groups()
    else:
        return None
    base = int(written) if written.isdigit() and len(written) < 3 else number_word(written)
    if base is None or not 2 <= base <= 36 or any(int(digit, 36) >= base for digit in digits):
        return None
    if base == 10 and digits.isdigit():
        return Formula(number(int(digits)), digits)
    return Based(digits.upper().lstrip("0") or "0", base)
