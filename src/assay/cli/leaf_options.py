"""How the command line holds a leaf of a tree of parts: numbers, text, choices, tuples, tables of numbers, named functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, cast, get_args, get_origin

from assay.cli.part_tree import MISSING
from assay.cli.user_files import module_of
from assay.core.fields import union_members
from assay.core.import_path import Function, load_part, name_of

__all__ = ["NONE", "Flag", "flag_of"]

NONE = "none"
"""What stands for nothing: no part, no function."""

_SIMPLE = (bool, int, float, str, Path)


@dataclass(frozen=True, slots=True)
class Flag:
    """How the command line holds a leaf: tyro's type, the default shown, and the way back."""

    type: Any
    shown: Any
    read: Callable[[Any, str], Any]
    metavar: str | None = None


def flag_of(value: Any, declared: Any) -> Flag | None:
    """None where the command line cannot hold the leaf: data, and places without a part."""
    if isinstance(value, Function) or (value is None and any(_is_callable(o) for o in union_members(declared))):
        return Flag(str, name_of(value) if value else NONE, _read_function, "MODULE:FUNCTION")
    if isinstance(value, tuple) and (several := _of_functions(declared)):
        named = tuple(name_of(function) for function in cast("tuple[Callable[..., Any], ...]", value))
        return Flag(tuple[str, ...], named, _read_functions, several)
    kind = declared if _parsable(declared) else None if value is MISSING else _type_of(value)
    if kind is None or (value is not MISSING and not _holds(kind, value)):
        return None
    return Flag(_option_type(kind), _plain(value), lambda new, place: _restore_type(new, kind, value))


def _is_callable(option: Any) -> bool:
    return get_origin(option) is Callable or option is Callable


def _of_functions(declared: Any) -> str:
    """How a tuple of functions is shown; empty for other types."""
    arguments = get_args(declared) if get_origin(declared) is tuple else ()
    found = len(arguments) == 2 and arguments[1] is Ellipsis and any(_is_callable(o) for o in union_members(arguments[0]))
    return "[MODULE:FUNCTION ...]" if found else ""


def _parsable(declared: Any) -> bool:
    """Whether tyro can read a value of this type."""
    if declared in _SIMPLE or get_origin(declared) is Literal or (isinstance(declared, type) and issubclass(declared, Enum)):
        return True
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is tuple:
        return bool(arguments) and all(a is Ellipsis or _parsable(a) for a in arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return all(_parsable(a) for a in arguments)
    options = union_members(declared)
    return len(options) > 1 and all(o is NoneType or _parsable(o) for o in options)


def _type_of(value: Any) -> Any:
    """A type to read a leaf by when what is declared does not say."""
    if isinstance(value, Enum) or type(value) in _SIMPLE:
        return cast(Any, type(value))
    if isinstance(value, tuple) and value:
        kinds = {_type_of(v) for v in cast("tuple[Any, ...]", value)}
        return tuple[kinds.pop(), ...] if len(kinds) == 1 and None not in kinds else None
    return None


def _holds(kind: Any, value: Any) -> bool:
    """Whether a value that stands there is one that the option could have given; an int may stand for a float."""
    for option in union_members(kind):
        origin = get_origin(option)
        if (option is NoneType and value is None) or (origin is Literal and value in get_args(option)):
            return True
        if (origin is tuple and isinstance(value, tuple)) or (origin not in (None, Literal) and isinstance(value, Mapping)):
            return True
        if isinstance(option, type) and (isinstance(value, option) or (option is float and isinstance(value, int))):
            return True
    return False


def _option_type(kind: Any) -> Any:
    """The type as tyro is told it: enums by their values."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return cast(Any, Literal)[tuple(m.value for m in kind)]
    if get_origin(kind) is tuple:
        return tuple[tuple(a if a is Ellipsis else _option_type(a) for a in get_args(kind))]
    if len(options := union_members(kind)) > 1:
        out: Any = _option_type(options[0])
        for option in options[1:]:
            out = out | (None if option is NoneType else _option_type(option))
        return out
    if isinstance(origin := get_origin(kind), type) and issubclass(origin, Mapping):
        return cast(Any, dict)[get_args(kind)]
    return cast(Any, kind)


def _plain(value: Any) -> Any:
    """The value as tyro shows it."""
    if value is MISSING:
        return MISSING
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return tuple(_plain(v) for v in cast("tuple[Any, ...]", value))
    return dict(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else value


def _restore_type(new: Any, kind: Any, before: Any) -> Any:
    """What tyro read, as the part wants it."""
    for option in union_members(kind):
        if isinstance(option, type) and issubclass(option, Enum) and new in [m.value for m in option]:
            return option(new)
        if get_origin(option) is tuple and isinstance(new, tuple):
            items, kinds = cast("tuple[Any, ...]", new), get_args(option)
            kinds = kinds[:1] * len(items) if kinds[-1] is Ellipsis else kinds
            return tuple(_restore_type(v, k, MISSING) for v, k in zip(items, kinds, strict=True))
    if isinstance(before, Mapping) and not isinstance(before, dict):
        return cast(Any, type(cast(Any, before)))(new)
    return new


def _read_function(word: str, place: str) -> Any:
    if word in (NONE, "None"):
        return None
    where, _, name = word.rpartition(":")
    return load_part(f"{module_of(where)}:{name}" if where.endswith(".py") else word, place)


def _read_functions(words: Sequence[str], place: str) -> Any:
    return tuple(_read_function(word, place) for word in words if word not in (NONE, "None"))
