"""Options from a value: every field of every part of a recipe becomes a flag with its own type, default and help.

tyro derives options from types, but a field declared as a protocol has no useful type. So the value's tree is mirrored: a dataclass per part, with the types of the
values found there. ``--PATH.kind module:Class`` puts another part in a place (with its own defaults), and its fields are then flags as well.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

from assay.core.config import part, replace_at
from assay.core.errors import ConfigError

__all__ = ["parse"]

T = TypeVar("T")
_SIMPLE = (bool, int, float, str)


def parse(value: T, args: Sequence[str], prog: str, description: str, hidden: Sequence[str] = ()) -> T:
    """``value`` with the fields changed that ``args`` name.

    Args:
        value: a tree of frozen dataclasses.
        args: command-line arguments, without the program.
        prog, description: for the help text.
        hidden: dotted paths that get no flags.

    Raises:
        ConfigError: a part refuses its new settings, or a ``kind`` cannot be loaded.
        SystemExit: 2 after a usage error, 0 after ``--help`` (tyro's own).
    """
    import tyro

    rest: list[str] = []
    for path, kind, other in _kinds(args):
        if path:
            value = cast(T, replace_at(value, path, part(kind)))
        rest += other
    mirror = _mirror(value, (), frozenset(hidden))
    parsed = tyro.cli(mirror, args=rest, prog=prog, description=description)
    return cast(T, _apply(value, parsed))


def _kinds(args: Sequence[str]) -> list[tuple[str, str, list[str]]]:
    """Splits off each ``--PATH.kind VALUE`` and ``--PATH.kind=VALUE``."""
    out: list[tuple[str, str, list[str]]] = []
    words = iter(args)
    for word in words:
        flag, equals, given = word.partition("=")
        if not (flag.startswith("--") and flag.endswith(".kind")):
            out.append(("", "", [word]))
            continue
        kind = given if equals else next(words, "")
        if not kind:
            raise ConfigError(f"{flag} needs a value: module:Class, for example --stages.0.curriculum.kind assay.guide:Uniform")
        out.append((flag[2 : -len(".kind")].replace("-", "_"), kind, []))
    return out


def _mirror(value: Any, path: tuple[str, ...], hidden: frozenset[str]) -> type[Any]:
    """A dataclass with one field per field of ``value`` that the command line can hold."""
    import tyro

    fields: list[tuple[str, Any, Any]] = []
    for name, child, declared in _children(value):
        here = (*path, name)
        if ".".join(here) in hidden:
            continue
        if _is_part(child):
            inner = _mirror(child, here, hidden)
            fields.append((_safe(name), Annotated[inner, tyro.conf.arg(name=name)], dataclasses.field(default_factory=inner)))
        else:
            kind = _flag_type(child, declared)
            if kind is not None:
                default = child.value if isinstance(child, enum.Enum) else child
                fields.append((_safe(name), Annotated[kind, tyro.conf.arg(name=name)], dataclasses.field(default=default)))
    mirror = dataclasses.make_dataclass(type(value).__name__, fields, frozen=True)
    mirror.__doc__ = "" if isinstance(value, tuple) else _doc(value)
    return mirror


def _apply(value: Any, mirror: Any) -> Any:
    """``value`` with the leaves of ``mirror`` that differ."""
    changed: dict[str, Any] = {}
    for name, child, _ in _children(value):
        if not hasattr(mirror, _safe(name)):
            continue
        new = getattr(mirror, _safe(name))
        new = _apply(child, new) if _is_part(child) else new
        if new is not child and new != child:
            changed[name] = new
    if not changed:
        return value
    if isinstance(value, tuple):
        return tuple(changed.get(str(i), v) for i, v in enumerate(cast(tuple[Any, ...], value)))
    return dataclasses.replace(value, **changed)


def _children(value: Any) -> list[tuple[str, Any, Any]]:
    """(name, value, declared type) of each field, or of each entry of a tuple of parts."""
    if isinstance(value, tuple):
        return [(str(i), v, type(v)) for i, v in enumerate(cast(tuple[Any, ...], value))]
    try:
        declared = typing.get_type_hints(type(value))
    except NameError:  # a type that is only imported for checkers: the value's own type serves
        declared = {}
    return [(f.name, getattr(value, f.name), declared.get(f.name)) for f in dataclasses.fields(value) if f.init]


def _is_part(value: Any) -> bool:
    if isinstance(value, tuple):
        entries = cast(tuple[Any, ...], value)
        return bool(entries) and all(dataclasses.is_dataclass(v) for v in entries)
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _flag_type(value: Any, declared: Any) -> Any:
    """A type that tyro can parse for this leaf; None where the command line cannot hold it (functions, data)."""
    if declared is not None and _parsable(declared):
        return declared
    if isinstance(value, enum.Enum):
        return Literal[tuple(e.value for e in type(value))]
    if isinstance(value, _SIMPLE):
        return type(value)
    if isinstance(value, tuple):
        kinds = {type(v) for v in cast(tuple[Any, ...], value)}
        if len(kinds) == 1 and (kind := kinds.pop()) in _SIMPLE:
            return tuple[kind, ...]
    return None


def _parsable(declared: Any) -> bool:
    if declared in _SIMPLE or declared is type(None):
        return True
    origin = get_origin(declared)
    if origin in (typing.Union, types.UnionType, tuple):
        return all(a is Ellipsis or _parsable(a) for a in get_args(declared))
    return origin is Literal


def _safe(name: str) -> str:
    return f"item_{name}" if name.isdigit() else name


def _doc(value: object) -> str:
    return f"{type(value).__doc__ or ''}".strip()


