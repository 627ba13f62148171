"""Where the program stands in an answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import StrEnum

from assay.verify.answer_verifier import answer_in

__all__ = ["PYTHON", "ProgramPlace", "program_in"]

PYTHON = ("python", "py", "python3")
"""What fences of Python are tagged with."""

_FENCE = re.compile(r"([ \t]{0,12})(`{3,})[ \t]*([^\s`]{0,40})[^`]{0,200}")


class ProgramPlace(StrEnum):
    """Where the program stands in a text.

    ``auto``: the first of these that the text has: a fence, a tag, the whole. ``fence``: the last fenced block that names the
    language, else the last that names none; one that was left open goes to the end, or to
    a closing fence behind its last line. ``tag``: between ``<answer>`` and
    ``</answer>``. ``whole``: all of the text. What stands before the last ``</think>`` is not looked at.
    """

    AUTO = "auto"
    FENCE = "fence"
    TAG = "tag"
    WHOLE = "whole"


def program_in(text: str, where: str = ProgramPlace.AUTO, tags: Collection[str] = PYTHON) -> str | None:
    r"""The program that a text gives; None where it gives none, or one of white space only.

    Time grows with the length of the text and not faster.

    Args:
        text: the answer.
        where: a `ProgramPlace`.
        tags: names of the language behind a fence, in lower case.

    >>> program_in("First:\n```python\nx = 1\n```\nNo:\n```python\nx = 2\n```\nIt prints\n```\n2\n```")
    'x = 2'
    >>> program_in("```\nx = 3"), program_in("x = 4"), program_in("x = 4", "fence") is None
    ('x = 3', 'x = 4', True)
    """
    text = text.rpartition("</think>")[2]
    found = {ProgramPlace.FENCE: _fenced_text, ProgramPlace.TAG: _tagged_text, ProgramPlace.WHOLE: _whole}
    for place, read in found.items():
        if where in (place, ProgramPlace.AUTO):
            program = read(text, tags)
            if program is not None and program.strip():
                return program
    return None


def _fenced_text(text: str, tags: Collection[str]) -> str | None:
    named: str | None = None
    bare: str | None = None
    for tag, block in _blocks(text):
        if tag in tags:
            named = block
        elif not tag:
            bare = block
    return bare if named is None else named


def _tagged_text(text: str, _: Collection[str]) -> str | None:
    return answer_in(text, "tag")


def _whole(text: str, _: Collection[str]) -> str | None:
    return text


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a text: tag and content, without the indentation of its fence."""
    inside: list[str] | None = None
    indent, fence, tag = "", "", ""
    for line in text.split("\n"):
        if inside is not None:
            bare = line.strip()
            if bare.startswith(fence) and not bare.strip("`"):
                yield tag, "\n".join(inside)
                inside = None
            else:
                inside.append(line.removeprefix(indent))
        elif opening := _FENCE.fullmatch(line):
            indent, fence, tag = opening[1], opening[2], opening[3].lower()
            inside = []
    if inside is not None:  # left open, or closed behind the last line of the program
        program = "\n".join(inside)
        closed = program.rstrip().endswith(fence)
        yield tag, program.rstrip().removesuffix(fence) if closed else program
