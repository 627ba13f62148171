r"""What stands around a box: an expression of which it is a part, or another box as its equal."""

from __future__ import annotations

import re

from assay.verify.language import OR

__all__ = ["expression_around"]

_BEFORE = re.compile(
    r"(?:(?:(?<!\S)|(?<=[$({\[=:]))[-−]|(?:[\d)}=+*/^(]|\\[a-z]+|(?<![A-Za-z])[a-z])\s*[-−]\s*|\+\s*|\d\.?|/\s*|[\^_]\s*"
    r"|(?<![A-Za-z\\])[b-z]|\\(?:cdot|times|div|sqrt|pm|mp|pi|[dtc]?frac)\s*)\Z"
)
_BEHIND = re.compile(
    r"\s*(?:\\right\s*)?\)?\s*(?:\^(?!\s*\{?\s*\\circ)|_\s*[\d{]|/\s*[\d\\({a-z]|\\?%|\\(?:cdot|times|div|pm|mp|pi|sqrt|[dtc]?frac)(?![A-Za-z])"
    r"|[+]\s*[\d\\(A-Za-z]|[-−]\s*(?:\d|\\(?![)\]])|[b-z](?![A-Za-z])))|[xyzni](?![A-Za-z])"
)
_ARGUMENT = re.compile(r"(?:\\[dtc]?(?:frac|binom)|\\sqrt(?:\s*\[[^\]]*\])?|\\(?:overline|bar|log|ln|sin|cos|tan)|[\^_]|\})\s*\Z")
_LINK = re.compile(rf"\}}[\s$*,)\\\]]{{0,6}}{OR}[\s$*(\\\[]{{0,6}}(?:[A-Za-z]\s*=\s*)?\Z", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{([^{}]*)\}")
_NEAR, _FAR = 40, 300


def expression_around(text: str, start: int, end: int) -> str | None:
    r"""The line in which a box is a part of an expression, or one of two; None where the box stands by itself.

    Args:
        text: in which it stands.
        start, end: where its command begins, and where it ends.

    >>> [expression_around(said, said.find("\\"), said.find("}") + 1) for said in (r"-\boxed{7}", r"x=\boxed{7}", r"\boxed{7}/3")]
    ['-\\boxed{7}', None, '\\boxed{7}/3']
    """
    before = text[max(0, start - _NEAR) : start]
    inside = _part_of(text, start)
    two = _LINK.search(before) is not None and "\\boxed" in text[max(0, start - _FAR) : start]
    part = inside or _BEFORE.search(before) is not None or _BEHIND.match(text, end, end + _NEAR) is not None
    if not (part or two):
        return None
    close = text.find("\n", end)
    line = text[text.rfind("\n", 0, start) + 1 : close if close >= 0 else len(text)]
    alone = not part and line.lstrip("$ ").startswith("\\boxed")
    return _BOX.sub(r"\1", line).replace("$", " ") if alone else line


def _part_of(text: str, start: int) -> bool:
    """Whether a place is inside of an argument: of a fraction, a root, an exponent."""
    depth = 0
    for at in range(start - 1, max(-1, start - _FAR), -1):
        if text[at] == "}":
            depth += 1
        elif text[at] == "{":
            depth -= 1
            if depth < 0:
                return _ARGUMENT.search(text, max(0, at - _NEAR), at) is not None
        elif text[at] == "\n":
            return False
    return False
