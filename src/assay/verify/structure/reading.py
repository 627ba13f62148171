"""Nodes, pairs, groups and tables of values, as answers write them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from assay.verify.text.jsonvalue import NoJson, read_json

__all__ = ["groups_in", "names_in", "pairs_in", "table_in"]

_ARROW = re.compile(r"[-=–—]{1,4}>|[→⇒>,;|]|\s")
_DASH = re.compile(r"[-=–—]{1,4}>|[→⇒>,;|]|\s|[-–—]")
_GROUP = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]")
_PART = re.compile(r"[,;\n]| and ")
_JOINS = frozenset({"and", "to", "then"})
_TIE = re.compile(r"[:=→]|-{1,3}>")
_WRAP = " \t\r\n()[]{}\"'`"


def names_in(text: str, known: Collection[str]) -> list[str] | None:
    """Names in order, with arrows, commas, white space or dashes between; None where something is no known name.

    >>> names_in("A -> B->C", "ABC"), names_in("[1, 2]", ("1", "2")), names_in("a-b", "ab"), names_in("a or b", "ab")
    (['A', 'B', 'C'], ['1', '2'], ['a', 'b'], None)
    """
    for between in (_ARROW, _DASH):
        if found := _all_known(between.split(text), known):
            return found
    return None


def _all_known(parts: Iterable[str], known: Collection[str]) -> list[str]:
    """The names in the parts; none where one is not known, which is said at the first such part."""
    out: list[str] = []
    for part in parts:
        if part and (name := _bare(part, known)):
            if name not in known:
                return []
            out.append(name)
    return out


def _bare(part: str, known: Collection[str]) -> str:
    """A name without brackets, marks and full stops around it; empty for a word that only joins two."""
    name = part.strip(_WRAP)
    if name in known:
        return name
    name = name.strip(_WRAP + "*_$.:!")
    return "" if name.casefold() in _JOINS and name not in known else name


def groups_in(text: str, known: Collection[str]) -> list[list[str]] | None:
    r"""Groups of names: each in brackets, or one to a line or semicolon; None where something is no known name.

    >>> groups_in("[[1, 2], [3]]", "123"), groups_in("1 2; 3", "123"), groups_in("{1, 2}\n{3}", "123")
    ([['1', '2'], ['3']], [['1', '2'], ['3']], [['1', '2'], ['3']])
    """
    inner = _GROUP.findall(text)
    if inner and any(_bare(word, ()) for word in re.split(r"[\s,;]", _GROUP.sub(" ", text))):
        return None  # something stands outside the groups
    parts = inner or [part for part in re.split(r"[;\n]", text) if part.strip()]
    return _each(parts, known) or None


def _each(parts: Iterable[str], known: Collection[str]) -> list[list[str]] | None:
    """The names in each part; None where one has none."""
    out: list[list[str]] = []
    for part in parts:
        found = names_in(part, known)
        if found is None:
            return None
        out.append(found)
    return out


def pairs_in(text: str, known: Collection[str]) -> list[tuple[str, str]] | None:
    """Pairs of names: each in brackets, or between commas, semicolons or line ends; None where something else is said.

    >>> pairs_in("(1, 2), (2, 3)", "123"), pairs_in("1-2, 2 3", "123"), pairs_in("1, 2, 3", "123")
    ([('1', '2'), ('2', '3')], [('1', '2'), ('2', '3')], None)
    """
    groups = groups_in(text, known)
    if groups is None or any(len(group) != 2 for group in groups):
        groups = _each((part for part in _PART.split(text.strip(_WRAP)) if part.strip()), known)
    return [(a, b) for a, b in groups] if groups and all(len(group) == 2 for group in groups) else None


def table_in(text: str, known: Collection[str] = ()) -> dict[str, str] | None:
    """Names and values: a JSON object, or ``a: x, b = y`` between commas, semicolons or line ends; None where something else
    is said.

    A name said twice with two values is no answer. Where a name is not ``known``, its last word may be: ``node a: red``.

    >>> table_in('{"a": 1, "b": true}'), table_in("a: red; b -> blue"), table_in("a=1, a=2"), table_in("a")
    ({'a': '1', 'b': 'true'}, {'a': 'red', 'b': 'blue'}, None, None)
    """
    try:
        read = read_json(text)
    except NoJson:
        read = None
    if isinstance(read, dict):
        return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in read.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    out: dict[str, str] = {}
    for part in _PART.split(text.strip().strip("{}()[]")):
        if not part.strip():
            continue
        tied = _TIE.split(part.strip().lstrip("-*• "), maxsplit=1)
        if len(tied) != 2 or not all(side.strip(_WRAP) for side in tied):
            return None
        name, value = (side.strip(_WRAP + ".*_$") for side in tied)
        if name not in known and (last := name.rpartition(" ")[2]) in known:
            name = last
        if out.setdefault(name, value) != value:
            return None
    return out or None
