r"""What stands around a box: an expression of which it is a part, or another box as its equal."""

from __future__ import annotations

import re

from assay.verify.language import box_joined
from assay.verify.math.words import FACTORS

__all__ = ["expression_around"]

_BEFORE = re.compile(
    r"(?:(?:(?<!\S)|(?<=[$({\[=:|]))[-−]|(?:[\d)}=+*/^(]|\\[a-z]+|(?<![A-Za-z])[a-z])\s*[-−]\s*|\+\s*|\d\.?|/\s*|[\^_]\s*"
    r"|(?<![A-Za-z\\])[b-z]|\\(?:cdot|times|div|sqrt|pm|mp|pi|[dtc]?frac)\s*)\Z"
)
_BEHIND = re.compile(
    r"\s*(?:\\right\s*)?\)?\s*(?:\^(?!\s*\{?\s*\\circ)|_\s*[\d{]|/\s*[\d\\({a-z]|\\?%|\\(?:cdot|times|div|pm|mp|pi|sqrt|[dtc]?frac)(?![A-Za-z])"
    r"|[+]\s*[\d\\(A-Za-z]|[-−]\s*(?:\d|\\(?![)\]])|[b-z](?![A-Za-z])))|[xyzni](?![A-Za-z])"
)
_ARGUMENT = re.compile(r"(?:\\[dtc]?(?:frac|binom)|\\sqrt(?:\s*\[[^\]]*\])?|\\(?:overline|bar|log|ln|sin|cos|tan)|[\^_]|\})\s*\Z")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{([^{}]*)\}")
_FACTORS = "|".join(FACTORS)
_FACTOR = re.compile(
    rf"[ \t$]*(?:\\(?:text|mathrm)\s*\{{\s*)?(?P<word>{_FACTORS})s?(?:\s*\}}|(?![A-Za-z-]))(?!\s*(?:place|digit))"
)
_FACTORIAL = re.compile(r"\s*[!']\s*(?:\$|\\[)\]]|[-+=*/^])")
_SIGN = re.compile(r"(?:\A|\s|[$(\[=:])(?P<sign>[-−])\Z|(?:\A|[\s$=:(\[])\Z")
_SUFFIX = re.compile(
    r"\s*(?P<suffix>(?:\\pi|\\?%|\\sqrt\s*\{\s*\d+\s*\}|[xyzni](?![A-Za-z]))?)\s*(?:\$|\\[)\]]|[.,;](?!\w)|\n|\Z)"
)
_SUBTRACTED = re.compile(r"(?:[\w)}\]]|\\[a-z]+)\s+\Z")
_NEAR, _FAR = 40, 300


def expression_around(text: str, start: int, end: int) -> str | None:
    r"""The expression of which a box is a part; None where the box stands by itself.

    A sign before it, and ``\pi``, ``\%``, a root, a letter or "million" behind it, are read with it. Where it is another part, or
    one of two boxes, it is the whole line, which is read as a list or not at all.

    Args:
        text: in which it stands.
        start, end: where its command begins, and where it ends.

    >>> [expression_around(said, said.find("\\"), said.find("}") + 1) for said in (r"-\boxed{7}", r"x=\boxed{7}", r"\boxed{7}/3")]
    ['-7', None, '\\boxed{7}/3']
    """
    before = text[max(0, start - _NEAR) : start]
    inside = _part_of(text, start)
    two = box_joined(text[max(0, start - _FAR) : start])
    part = inside or any(p.match(text, end, end + _NEAR) for p in (_BEHIND, _FACTOR, _FACTORIAL)) or _BEFORE.search(before)
    if not (part or two):
        return None
    if not (inside or two) and (read := _read_with(text, start, end, before)) is not None:
        return read
    close = text.find("\n", end)
    line = text[text.rfind("\n", 0, start) + 1 : close if close >= 0 else len(text)]
    alone = not part and line.lstrip("$ ").startswith("\\boxed")
    return _BOX.sub(r"\1", line).replace("$", " ") if alone else line


def _read_with(text: str, start: int, end: int, before: str) -> str | None:
    """A box with the sign before it and what behind it makes another number of it; None where there is more around it."""
    held = text[text.find("{", start, end) + 1 : end - 1] if text[end - 1] == "}" else ""
    sign = _SIGN.search(before)
    behind = _FACTOR.match(text, end, end + _NEAR) or _SUFFIX.match(text, end, end + _NEAR)
    if not held or sign is None or behind is None:
        return None
    if _SUBTRACTED.search(before[: sign.start("sign")]) if sign["sign"] else _BEFORE.search(before):
        return None
    value = held if held.replace(".", "").replace(",", "").isalnum() else f"({held})"
    more = behind.groupdict()
    return f"{sign['sign'] or ''}{value}{more.get('suffix') or ''}" + (f" {more['word']}" if more.get("word") else "")


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
