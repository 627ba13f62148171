"""What the fields of a dataclass are declared to hold, as far as a configuration file cares."""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, a_kind

__all__ = [
    "LATER",
    "SCALARS",
    "check_positive",
    "check_scalar",
    "class_key",
    "element",
    "hints_of",
    "is_part",
    "later",
    "mapping_types",
    "resolve_annotation",
    "spell",
    "takes_mapping",
    "takes_sequence",
    "union_members",
]

SCALARS = (bool, int, float, str)
LATER = "later"
"""Marks fields in their metadata, as `later` says."""


def check_positive(part: object, *names: str) -> None:
    """Raises ConfigError when one of a part's fields is no whole number from 1 up."""
    for name in names:
        value = getattr(part, name)
        if not isinstance(value, int) or value < 1:
            raise ConfigError(f"{type(part).__name__}.{name}={value!r}; use a whole number, at least 1")


def later(default: Any) -> Any:
    """A field that a part got when files already said what the part was before: files leave it out while it has its default.

    So files of before stay what would be written now, and so does every digest over them.

    >>> @dataclasses.dataclass
    ... class Lamp:
    ...     watts: int = 40
    ...     dimmed: bool = later(False)
    >>> from assay.core import to_dict
    >>> sorted(to_dict(Lamp())), sorted(to_dict(Lamp(dimmed=True)))
    (['kind', 'watts'], ['dimmed', 'kind', 'watts'])
    """
    return dataclasses.field(default=default, metadata={LATER: True})


def check_scalar(value: Any, declared: Any, place: str) -> None:
    """Raises ConfigError when a plain scalar stands where only others are declared (an int may stand for a float)."""
    if not isinstance(value, SCALARS) or isinstance(value, Enum):
        return
    found = union_members(declared)
    literals = [x for o in found if get_origin(o) is Literal for x in get_args(o)]
    if value in literals:
        return
    allowed: set[Any] = {o for o in found if o in SCALARS} | {int for o in found if o is float}
    open_ended = any(o is Any or (o not in SCALARS and get_origin(o) is not Literal and not _closed(o)) for o in found)
    if type(value) not in allowed and not open_ended:
        raise ConfigError(f"{place}={value!r} is {a_kind(value)}; declared is {spell(declared)}")


def _closed(option: Any) -> bool:
    """Whether no plain scalar can be one: parts, protocols, containers, None."""
    origin = get_origin(option) or option
    return _is_open_part(option) or option is NoneType or origin in (tuple, list, dict, Mapping, Sequence, FrozenMap)


def _is_open_part(option: Any) -> bool:
    return is_part(option) or bool(getattr(option, "_is_protocol", False))


Offer = Callable[[str], Any]
"""What a name means that a module imports for type checkers alone; raises KeyError where nobody knows."""


@cache
def hints_of(cls: Any, offered: Offer | None = None) -> dict[str, Any]:
    """Declared type of each field of a dataclass; Any where it can only be resolved by type checkers."""
    owners = {name: owner for owner in reversed(cls.__mro__) for name in inspect.get_annotations(owner)}
    found = {f.name: resolve_annotation(f.type, owners[f.name].__module__, offered) for f in dataclasses.fields(cls)}
    return {name: Any if declared is object else declared for name, declared in found.items()}


def resolve_annotation(declared: Any, module: str, offered: Offer | None = None) -> Any:
    """The type that an annotation means in a module; Any where a name in it is known to type checkers only, and not offered.

    >>> known = {"Text": str}.__getitem__
    >>> [resolve_annotation("int | None", "builtins"), *(resolve_annotation("Text", "builtins", x) for x in (None, known))]
    [int | None, typing.Any, <class 'str'>]
    """
    if not isinstance(declared, str):
        return declared
    names = _Names(vars(sys.modules.get(module, sys)), offered)
    try:
        return eval(declared, dict(names.own), names)
    except (NameError, AttributeError, KeyError, TypeError):
        return Any


class _Names(dict[str, Any]):
    """Names of a module, then the built-in ones, then those that are offered."""

    def __init__(self, own: Mapping[str, Any], offered: Offer | None) -> None:
        super().__init__()
        self.own, self._offered = own, offered

    def __missing__(self, name: str) -> Any:
        if self._offered is None or name in self.own or hasattr(builtins, name):
            raise KeyError(name)  # Python looks for it among the globals and the built-in names
        return self._offered(name)


def union_members(declared: Any) -> tuple[Any, ...]:
    """The members of a union; the type itself otherwise."""
    return get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)


def class_key(cls: Any) -> str:
    """Where a table names its class; ``class`` can be no field's name."""
    return "class" if "kind" in hints_of(cls) else "kind"


def is_part(declared: Any) -> bool:
    """Whether it is a dataclass."""
    return isinstance(declared, type) and dataclasses.is_dataclass(declared)


def takes_mapping(declared: Any) -> bool:
    """Whether a mapping may stand there."""
    origins = {get_origin(o) or o for o in union_members(declared)}
    return bool(origins & {Any, Mapping, dict, FrozenMap})


def mapping_types(declared: Any) -> tuple[type, Any]:
    """Declared types of a mapping's keys and values."""
    for option in union_members(declared):
        arguments = get_args(option)
        if get_origin(option) in (Mapping, dict) and arguments[0] in (str, int):
            return arguments
    return str, Any


def element(declared: Any, index: int) -> Any:
    """Declared type of a sequence's ``index``-th element."""
    for option in union_members(declared):
        arguments = get_args(option)
        origin = get_origin(option)
        if origin in (list, Sequence) or (origin is tuple and arguments[-1:] == (Ellipsis,)):
            return arguments[0]
        if origin is tuple and index < len(arguments):
            return arguments[index]
    return Any


def spell(declared: Any) -> str:
    """As a reader would write it."""
    return declared.__name__ if isinstance(declared, type) else str(declared)


def takes_sequence(declared: Any) -> bool:
    """Whether a list may stand there."""
    origins = [get_origin(o) or o for o in union_members(declared)]
    return not all(_is_open_part(o) or o in (*SCALARS, NoneType, Literal, Mapping, dict, FrozenMap) for o in origins)
