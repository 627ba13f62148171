"""Where an answer stands in a text: the last balanced box, tag or phrase, never the first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.verify.language import box_denied
from assay.verify.math.around import expression_around
from assay.verify.math.phrases import cut_clause, find_announced

__all__ = ["PLACES", "box_in", "final_answer", "locate_answer"]

PLACES = ("box", "tag", "phrase", "line")
"""Where an answer is looked for, in order: the first place that the text has decides."""

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BRACE = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)
_BARE = re.compile(
    r"\\(?:boxed|fbox)(?:\s*[-+]?\d[\d.,]*(?<![.,])|\s*\\[A-Za-z]+[^\n$]*?(?=\.?\s*(?:\$|\\[\])]|\n|\Z))|\s+[A-Za-z](?![A-Za-z]))"
)
_DELIMITERS = frozenset(["$$", "\\]", "\\[", "```", "**", "$"])
_SO_FIRST = frozenset("SsTtHhFf∴\\")
_SO = re.compile(r"(?:so|thus|hence|therefore|finally|∴|\\therefore)\b[,:]?\s+(?=\S)", re.IGNORECASE)
_AFTER = frozenset(" \t\r\n.,;:!$*_`)]}\\")


def final_answer(text: str, look: Sequence[str] = PLACES, strict_tail: bool = False) -> str | None:
    r"""The answer that a text ends on; None where it has none in these places. Linear in the length of the text.

    A box that is a part of a larger expression (``-\boxed{7}``), or one of two with "or" between, is no answer: the line is, in
    which it stands. One that is called wrong on its line, or asked, is none. Text up to the last ``</think>`` is not looked at.
    An unbalanced box or an open tag is no box and no tag.

    Args:
        text: what the policy said.
        look: some of `PLACES`, in the order in which they are tried.
        strict_tail: a box or tag counts only where nothing but punctuation and math delimiters follows it.

    >>> final_answer(r"first \boxed{41}, no: \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    >>> final_answer("It is 3. So the answer is 7.")
    '7'
    """
    if text.isalnum() and text.isascii() and "line" in look:  # the answer alone
        return text
    cut = text.rfind("</think>")
    if cut >= 0:
        text = text[cut + 8 :]
    for place in look:
        found = _FIND[place](text)
        if found is None:
            continue
        start, end, after = found
        if strict_tail and not _AFTER.issuperset(text[after:]):
            return None
        if place == "box" and box_denied(_before(text, start, end, after), text[start:end], text[after : after + 80]):
            return None
        around = _expression_around(text, start, end, after) if place == "box" else None
        return (text[start:end] if around is None else around).strip()
    return None


def box_in(text: str) -> str | None:
    r"""What the last box of a text holds, whatever stands around it.

    >>> box_in(r"about $\boxed{17}\%$")
    '17'
    """
    found = _box(text)
    return None if found is None else text[found[0] : found[1]].strip()


def _before(text: str, start: int, end: int, after: int) -> str:
    """What stands before the command of a box."""
    return text[max(0, _command(text, start, end, after) - 80) : _command(text, start, end, after)]


def _command(text: str, start: int, end: int, after: int) -> int:
    return max(text.rfind("\\boxed", 0, start), text.rfind("\\fbox", 0, start)) if after > end else start


def _expression_around(text: str, start: int, end: int, after: int) -> str | None:
    """The expression of which a box is a part; see `expression_around`."""
    return expression_around(text, _command(text, start, end, after), after)


def locate_answer(text: str, look: Sequence[str] = PLACES, strict_tail: bool = False) -> tuple[str, str] | None:
    """The answer and the place where it stands; see `final_answer`.

    >>> locate_answer("So the answer is 7.")
    ('7', 'phrase')
    """
    answer = final_answer(text, look, strict_tail)
    if answer is None:
        return None
    return answer, next(place for place in look if final_answer(text, (place,), strict_tail) is not None)


def _box(text: str) -> tuple[int, int, int] | None:
    last, frame = text.rfind("\\boxed"), text.rfind("\\fbox")
    opened = _BOX.match(text, last) if last >= 0 and frame < 0 else None
    if opened is not None:
        start = opened.end()
        close = text.find("}", start)
        plain = close > 0 and "{" not in text[start:close] and "\\" not in text[start:close]
        first = text.find("\\boxed", 0, last)
        if plain and (first < 0 or text.count("{", first, last) == text.count("}", first, last)):  # no box around this one
            return start, close, close + 1
    return None if last < 0 and frame < 0 else _outermost(text) or _unbraced_box(text, max(last, frame))


def _unbraced_box(text: str, last: int) -> tuple[int, int, int] | None:
    r"""``\boxed 5``, with the command: what of it is meant is read later."""
    found = _BARE.match(text, last)
    return None if found is None else (last, found.end(), found.end())


def _outermost(text: str) -> tuple[int, int, int] | None:
    """The box that ends last, and of those around each other the outer one; one pass."""
    stack: list[int] = []
    best: tuple[int, int, int] | None = None
    for match in _BRACE.finditer(text):
        token = match.group()
        if token[-1] == "{" and token != "\\{":
            stack.append(match.end() if len(token) > 1 else -1)
        elif token == "}" and stack:
            start = stack.pop()
            if start >= 0:
                best = (start, match.start(), match.end())
    return best


def _tag(text: str) -> tuple[int, int, int] | None:
    end = text.rfind("</answer>")
    if end < 0:
        return None
    start = text.rfind("<answer>", 0, end)
    return None if start < 0 else (start + 8, end, end + 9)


def _phrase(text: str) -> tuple[int, int, int] | None:
    found = find_announced(text)
    return None if found is None else (*found, found[1])


def _line(text: str) -> tuple[int, int, int] | None:
    """The last line in which anything stands, without "therefore" in front and a reason behind."""
    end = len(text.rstrip())
    start = text.rfind("\n", 0, end) + 1
    while start > 0 and text[start:end].strip() in _DELIMITERS:
        end = len(text[:start].rstrip())
        start = text.rfind("\n", 0, end) + 1
    if not end:
        return None
    line = text[start:end]
    if line[0] in _SO_FIRST and (so := _SO.match(line)) is not None:
        line, start = line[so.end() :], start + so.end()
    long = len(line) > 24 or "," in line or ";" in line or "(" in line or not line.isascii()
    return start, start + cut_clause(line) if long else end, end


_FIND = {"box": _box, "tag": _tag, "phrase": _phrase, "line": _line}
