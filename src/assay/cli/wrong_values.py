"""What is wrong with the value of a command's own option, in one line: tyro says it in a box of ten."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from assay.cli.part_tree import hints
from assay.core.errors import nearest
from assay.core.fields import union_members

__all__ = ["explain_wrong_value"]

_FRAME = str.maketrans("│╭╮╰╯─|", "       ")
_NAMED = re.compile(r"Error parsing (\S+): |invalid choice '.*?' for argument '(\S+)'\.|Missing value for argument '(\S+)'\.")
_QUOTED = re.compile(r"'([^']*)'")
_WORDS: Mapping[Any, str] = {int: "a whole number", float: "a number", str: "a word", Path: "a path"}


def explain_wrong_value(box: str, options: type[Any], args: Sequence[str]) -> str | None:
    """The option, its value and what is expected; None where the box is about something else.

    Args:
        box: what tyro printed.
        options: the dataclass of the options.
        args: the arguments.

    >>> @dataclasses.dataclass
    ... class Options:
    ...     level: int | None = None
    >>> explain_wrong_value("│ Error parsing --level: invalid literal │", Options, ["--level", "two"])
    "--level: 'two' is not a whole number"
    """
    text = " ".join(box.translate(_FRAME).split())
    found = _NAMED.search(text)
    if found is None:
        return None
    names = next(filter(None, found.groups())).split("/")
    name = next((f.name for f in dataclasses.fields(options) if _is_called(f, names)), None)
    if name is None:
        return None
    typed, words = _typed_option(names, args)
    kinds = [kind for kind in union_members(hints(options)[name]) if kind is not NoneType]
    if not typed:
        quoted = _QUOTED.findall(text[found.start() :])
        typed, words = names[0], quoted[-1:]
    return _describe_typed(typed, words, kinds)


def _is_called(field: dataclasses.Field[Any], names: Sequence[str]) -> bool:
    """Whether one of the names, of an option with its dashes or of a position in capitals, is that of a field."""
    shown = field.metadata.get("arg", {}).get("metavar") if field.metadata.get("positional") else None
    return any(n == shown or n.lstrip("-").replace("-", "_") == field.name for n in names)


def _typed_option(names: Sequence[str], args: Sequence[str]) -> tuple[str, list[str]]:
    """An option as it was typed the last time, and its words; none of a position."""
    typed, words, mine = "", list[str](), False
    for arg in args:
        head, equals, value = arg.partition("=")
        if head.replace("_", "-") in names and head.startswith("-"):
            typed, words, mine = head, [value] if equals else [], True
        elif re.match(r"--?[a-zA-Z]", arg):
            mine = False
        elif mine:
            words.append(arg)
    return typed, words


def _describe_typed(typed: str, words: Sequence[str], kinds: Sequence[Any]) -> str:
    inner = [a for kind in kinds if get_origin(kind) is tuple for a in get_args(kind) if a is not Ellipsis] or kinds
    choices = [str(c) for kind in inner if get_origin(kind) is Literal for c in get_args(kind)]
    wanted = f"one of {', '.join(choices)}" if choices else " or ".join(_WORDS.get(k, str(k)) for k in inner)
    if not words:
        return f"{typed} needs a value: {wanted}"
    wrong = next((word for word in words if not any(_reads(kind, word) for kind in inner)), words[0])
    close = nearest(wrong, choices)
    return f"{typed}: {wrong!r} is not {wanted}" + (f"; did you mean {close!r}?" if close else "")


def _reads(kind: Any, word: str) -> bool:
    """Whether a word is a value of a plain type."""
    if get_origin(kind) is Literal:
        return word in map(str, get_args(kind))
    try:
        kind(word)
    except (TypeError, ValueError):
        return False
    return True
