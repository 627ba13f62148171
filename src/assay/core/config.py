"""Configurations as trees of frozen dataclasses, to plain tables and TOML and back.

A table says ``kind = "module:Class"`` wherever the field's declared type leaves the class open (protocols, unions,
subclasses), and ``class = ...`` instead when the class has a field of its own called ``kind``. Seven kinds have no colon:
``none`` (TOML has no null), ``function``, ``partial``, ``method`` (of a dataclass), ``path``, ``map`` (a mapping that could be
misread as something else), and ``rows`` (a file of them beside the configuration, `assay.core.rowfile`). A class with a class
method ``read_table(table, read)`` reads its own tables: it gives what ``read`` makes of a table of its fields.
"""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import MethodType
from typing import Any, cast, get_origin

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, UnknownNameError, a_kind
from assay.core.fields import (
    LATER,
    SCALARS,
    check_scalar,
    class_key,
    element,
    hints_of,
    is_part,
    mapping_types,
    spell,
    takes_mapping,
    takes_sequence,
    union_members,
)
from assay.core.import_path import Function, load_class, load_function, name_of, name_of_callable
from assay.core.rowfile import BESIDE, RowFile, current_store

__all__ = ["dumps_toml", "from_dict", "loads_toml", "part", "replace_at", "to_dict"]

Table = dict[str, Any]


def to_dict(value: Any) -> Table:
    """A dataclass tree as nested dicts, lists and scalars, with its class under ``kind``.

    Fields set to None whose default is None are left out, and those of `assay.core.fields.later` at their default. Lists come
    back as tuples.

    Raises:
        ConfigError: the value is no dataclass, or a field holds something that no file can say; names its place.

    >>> from assay.core.rollout import Sampling
    >>> to_dict(Sampling(temperature=0.5))["kind"]
    'assay.core.rollout:Sampling'
    """
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise ConfigError(f"a configuration is a dataclass instance, not {value!r}")
    return _write_part(value, Any, type(value).__name__)


def from_dict(declared: Any, data: Mapping[str, Any]) -> Any:
    """The dataclass tree that `to_dict` wrote.

    Args:
        declared: the class expected; `typing.Any` leaves it to the table's ``kind``.
        data: nested tables.

    Raises:
        ConfigError: a value does not fit its field, a required field is missing, or a class cannot be imported; names the place.
        UnknownNameError: an unknown field; says the nearest.

    >>> from assay.core.rollout import Sampling
    >>> from_dict(Sampling, {"top_k": 5}).top_k
    5
    """
    place = declared.__name__ if is_part(declared) else "configuration"
    value = _read(dict(data), declared, place)
    if dataclasses.is_dataclass(value):
        return value
    raise ConfigError(f"{place}: no 'kind' says which class this is; write kind = 'module:Class'")


def dumps_toml(table: Mapping[str, Any]) -> str:
    """A table, as from `to_dict`, as TOML text.

    >>> print(dumps_toml({"steps": 3, "lr": 0.1}), end="")
    steps = 3
    lr = 0.1
    """
    import tomli_w

    return tomli_w.dumps(table)


def loads_toml(text: str) -> Table:
    """TOML text as a table, for `from_dict`.

    Raises:
        ConfigError: no TOML; says the line.

    >>> loads_toml("steps = 3")
    {'steps': 3}
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        raise ConfigError(f"not TOML: {failure}") from failure


def part(kind: str) -> Any:
    """The part called ``module:Class``, with its defaults.

    Raises:
        ConfigError: the class cannot be imported, is no dataclass, or has fields without default; names them.

    >>> part("assay.core.rollout:Sampling").temperature
    1.0
    """
    return from_dict(Any, {"kind": kind})


def replace_at(value: Any, path: str, new: Any) -> Any:
    """The tree with one nested value replaced.

    Args:
        value: a dataclass, tuple or mapping.
        path: field names, positions and keys, separated by dots: ``"stages.1.learner.optimizer.lr"``.
        new: what to put there.

    Raises:
        UnknownNameError: no such field, position or key; says the nearest.
        ConfigError: ``new`` does not fit there; names the path.

    >>> from assay.core.task import Message
    >>> replace_at((Message("user", "a"), Message("user", "b")), "1.content", "c")[1].content
    'c'
    """
    return _replace(value, path.split("."), new, path)


# ---- writing ----------------------------------------------------------------------------------------------------------


def _write(value: Any, declared: Any, place: str) -> Any:
    if isinstance(value, np.generic):
        value = cast("Any", value).item()
    if value is None:
        return {"kind": "none"}
    if isinstance(value, Enum):
        cls: type[Enum] = value.__class__
        return value.value if declared is cls else {"kind": name_of(cls), "value": value.value}
    if isinstance(value, SCALARS):
        return value
    if isinstance(value, Path):
        return str(value) if declared is Path else {"kind": "path", "value": str(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _write_part(value, declared, place)
    if isinstance(value, Mapping):
        return _write_mapping(cast("Mapping[Any, Any]", value), declared, place)
    if isinstance(value, list | tuple | RowFile):
        items = cast("Sequence[Any]", value)
        return [_write(v, element(declared, i), f"{place}[{i}]") for i, v in enumerate(items)]
    if isinstance(value, Function):
        return {"kind": "function", "name": name_of(value)}
    if callable(value) and not isinstance(value, type):
        return _write_callable(value, place)
    raise ConfigError(
        f"{place}: {a_kind(value)} cannot be written to a file: {value!r}; use numbers, strings, tuples, mappings, "
        "dataclasses or functions of a module"
    )


def _write_callable(value: Any, place: str) -> Table:
    """A partial or a method by its parts; any other callable object by its class alone, which no file can bring back."""
    if isinstance(value, functools.partial):
        of = cast("functools.partial[Any]", value)
        inner = {"function": of.func, "args": of.args, "keywords": of.keywords}
        return {"kind": "partial", **{name: _write(v, Any, f"{place}.{name}") for name, v in inner.items()}}
    if isinstance(value, MethodType) and dataclasses.is_dataclass(value.__self__) and not isinstance(value.__self__, type):
        return {"kind": "method", "name": value.__name__, "of": _write(value.__self__, Any, f"{place}.of")}
    return {"kind": "function", "name": name_of_callable(value)}


def _write_part(value: Any, declared: Any, place: str) -> Table:
    cls: type[Any] = value.__class__
    hints = hints_of(cls)
    table: Table = {} if declared is cls else {class_key(cls): name_of(cls)}
    for field in dataclasses.fields(value):
        held = getattr(value, field.name)
        left_out = held is None if field.default is None else LATER in field.metadata and held == field.default
        if field.init and not left_out:
            named = _table_reference(value, field, held)
            table[field.name] = _write(held, hints[field.name], f"{place}.{field.name}") if named is None else named
    return table


def _table_reference(value: Any, field: dataclasses.Field[Any], held: Any) -> Table | None:
    """What stands for many rows, where they may stand in a file."""
    store = current_store() if BESIDE in field.metadata else None
    return None if store is None else store.put(held, *getattr(value, field.metadata[BESIDE])())


def _write_mapping(value: Mapping[Any, Any], declared: Any, place: str) -> Table:
    key, item = mapping_types(declared)
    for k in value:
        if type(k) is not key:
            raise ConfigError(f"{place}: key {k!r} is {a_kind(k)}; declared is {key.__name__}")
    items = {str(k): _write(v, item, f"{place}.{k}") for k, v in value.items()}
    return {"kind": "map", "items": items} if {"kind", "class"} & set(items) or not takes_mapping(declared) else items


# ---- reading ----------------------------------------------------------------------------------------------------------


def _read(data: Any, declared: Any, place: str) -> Any:
    if isinstance(data, Mapping):
        return _read_table(cast("Mapping[str, Any]", data), declared, place)
    if isinstance(data, list | tuple):
        return _read_sequence(cast("Sequence[Any]", data), declared, place)
    for option in union_members(declared):
        if isinstance(option, type) and issubclass(option, Enum):
            return _read_enum(option, data, place)
        if option is Path and isinstance(data, str):
            return Path(data)
    check_scalar(data, declared, place)
    return data


def _read_table(data: Mapping[str, Any], declared: Any, place: str) -> Any:
    if "class" in data:
        return _read_named(data, "class", declared, place)
    if is_part(declared) and class_key(declared) == "class":
        return _read_part(data, declared, place)  # its "kind" is a field
    match data.get("kind"):
        case "none":
            return None
        case "function":
            return load_function(str(data.get("name")), place)
        case "partial":
            inner = {name: _read(data[name], Any, f"{place}.{name}") for name in ("function", "args", "keywords")}
            return functools.partial(inner["function"], *inner["args"], **inner["keywords"])
        case "method":
            return getattr(_read(data["of"], Any, f"{place}.of"), str(data["name"]))
        case "path":
            return Path(data["value"])
        case "map":
            return _read_mapping(data["items"], declared, place)
        case "rows":
            store = current_store()
            if store is None:
                raise ConfigError(
                    f"{place}: its rows stand in {data.get('file')!r} beside the file that names them; read them together"
                )
            return store.get(data, place)
        case str():
            return _read_named(data, "kind", declared, place)
        case _:
            parts = [o for o in union_members(declared) if is_part(o)]
    if len(parts) == 1:
        return _read_part(data, parts[0], place)
    if parts or not takes_mapping(declared):
        names = ", ".join(p.__name__ for p in parts) or spell(declared)
        raise ConfigError(f"{place}: no 'kind' says which class this is; write kind = 'module:Class' (declared: {names})")
    return _read_mapping(data, declared, place)


def _read_named(data: Mapping[str, Any], key: str, declared: Any, place: str) -> Any:
    cls = load_class(str(data[key]), place)
    if issubclass(cls, Enum):
        return _read_enum(cls, data.get("value"), place)
    if is_part(declared) and not issubclass(cls, declared):
        raise ConfigError(f"{place}: kind {data[key]!r} is no {declared.__name__}")
    return _read_part({k: v for k, v in data.items() if k != key}, cls, place)


def _read_part(data: Mapping[str, Any], cls: Any, place: str) -> Any:
    """A part from its table; a class with a ``read_table`` is asked first, for its tables may say more than its fields."""

    def read(table: Mapping[str, Any]) -> Any:
        return _read_fields(table, cls, place)

    own = getattr(cls, "read_table", None)
    return read(data) if own is None else own(data, read)


def _read_fields(data: Mapping[str, Any], cls: Any, place: str) -> Any:
    hints = hints_of(cls)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    for name in data:
        if name not in fields:
            raise UnknownNameError(f"field at {place} ({cls.__name__})", name, fields)
    for name, field in fields.items():
        absent = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if absent and name not in data:
            raise ConfigError(f"{place}: {cls.__name__} needs a value for {name!r}")
    return cls(**{name: _read(v, hints[name], f"{place}.{name}") for name, v in data.items()})


def _read_mapping(data: Mapping[str, Any], declared: Any, place: str) -> Any:
    key, item = mapping_types(declared)
    try:
        items = {key(k): _read(v, item, f"{place}.{k}") for k, v in data.items()}
    except ValueError as failure:
        if isinstance(failure, ConfigError):
            raise
        raise ConfigError(f"{place}: a key is no {key.__name__}: {failure}") from failure
    origins = [get_origin(o) or o for o in union_members(declared)]
    return items if dict in origins else items if key is not str else FrozenMap(items)


def _read_sequence(data: Sequence[Any], declared: Any, place: str) -> Any:
    items = [_read(v, element(declared, i), f"{place}[{i}]") for i, v in enumerate(data)]
    origins = [get_origin(o) or o for o in union_members(declared)]
    if list in origins:
        return items
    if not takes_sequence(declared):
        raise ConfigError(f"{place}: a list where {spell(declared)} is declared")
    return tuple(items)


def _read_enum(cls: type[Enum], data: Any, place: str) -> Enum:
    try:
        return cls(data)
    except ValueError:
        raise UnknownNameError(f"value at {place} ({cls.__name__})", data, [m.value for m in cls]) from None


# ---- replacing --------------------------------------------------------------------------------------------------------


def _replace(value: Any, path: list[str], new: Any, whole: str) -> Any:
    head, rest = path[0], path[1:]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value) if f.init]
        _check_known(head, names, type(value).__name__, whole)
        if not rest:
            check_scalar(new, hints_of(type(value))[head], whole)
        inner = _replace(getattr(value, head), rest, new, whole) if rest else new
        try:
            return dataclasses.replace(cast("Any", value), **{head: inner})
        except ConfigError as failure:
            raise ConfigError(f"{whole}={new!r}: {failure}") from failure
    if isinstance(value, tuple):
        items = list(cast("tuple[Any, ...]", value))
        _check_known(head, [str(i) for i in range(len(items))], "a tuple", whole)
        items[int(head)] = _replace(items[int(head)], rest, new, whole) if rest else new
        return tuple(items)
    if isinstance(value, Mapping):
        table = dict(cast("Mapping[str, Any]", value))
        _check_known(head, table, "a mapping", whole)
        table[head] = _replace(table[head], rest, new, whole) if rest else new
        return table if isinstance(value, dict) else FrozenMap(table)
    raise ConfigError(f"{whole}: {head!r} is looked up in {value!r}, {a_kind(value)}, which has no parts")


def _check_known(head: str, names: Sequence[str] | Mapping[str, Any], owner: str, whole: str) -> None:
    if head not in names:
        raise UnknownNameError(f"part of {owner} in path {whole!r}", head, names)
