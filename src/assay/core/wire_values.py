"""Plain values, arrays and token columns as JSON types and back, exactly: what `assay.core.wire` is made of."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.columns import Array, TokenColumn
from assay.core.errors import DataError, a_kind
from assay.core.ragged import flat_of, lists_of

__all__ = [
    "Wire",
    "array_from_wire",
    "array_to_wire",
    "columns_from_wire",
    "columns_to_wire",
    "frozen_to_wire",
    "value_from_wire",
    "value_to_wire",
    "with_changes",
]

Wire = dict[str, Any]
SCALARS = (bool, int, float, str)


def array_to_wire(array: Array) -> Wire:
    """An array as base64 of its bytes, with dtype and shape; raises DataError for an array of Python objects."""
    data = np.ascontiguousarray(array)
    if data.dtype.hasobject:
        raise DataError(f"an array of Python objects cannot travel: {array!r}")
    return {"dtype": data.dtype.str, "shape": list(array.shape), "data": base64.b64encode(data.tobytes()).decode("ascii")}


def array_from_wire(data: Mapping[str, Any]) -> Array:
    """Read-only, on the decoded bytes."""
    return np.frombuffer(base64.b64decode(data["data"]), np.dtype(data["dtype"])).reshape(data["shape"])


def frozen_to_wire(value: Any, place: str) -> Any:
    """Contents of a `FrozenMap`: lists stand for tuples, dicts for maps."""
    if value is None or type(value) in SCALARS:
        return value
    if isinstance(value, FrozenMap):
        return {k: frozen_to_wire(v, f"{place}.{k}") for k, v in value.items()}
    if isinstance(value, tuple):
        return [frozen_to_wire(v, f"{place}[{i}]") for i, v in enumerate(cast("tuple[Any, ...]", value))]
    raise DataError(f"{place}: {a_kind(value)} cannot travel: {value!r}; use numbers, strings, lists and dicts")


def value_to_wire(value: Any, place: str) -> Any:
    """Any plain value, with what JSON would confuse marked."""
    if value is None or type(value) in SCALARS:
        return value
    if isinstance(value, FrozenMap):
        return {"map": frozen_to_wire(value, place)}
    if isinstance(value, np.ndarray):
        return {"array": array_to_wire(cast("Array", value))}
    if isinstance(value, tuple):
        return {"tuple": [value_to_wire(v, f"{place}[{i}]") for i, v in enumerate(cast("tuple[Any, ...]", value))]}
    if isinstance(value, list):
        return [value_to_wire(v, f"{place}[{i}]") for i, v in enumerate(cast("list[Any]", value))]
    if isinstance(value, dict):
        table = cast("dict[Any, Any]", value)
        for key in table:
            if not isinstance(key, str):
                raise DataError(f"{place}: key {key!r} cannot travel; use strings")
        return {"dict": {k: value_to_wire(v, f"{place}.{k}") for k, v in table.items()}}
    raise DataError(f"{place}: {a_kind(value)} cannot travel: {value!r}; use numbers, strings, lists, dicts and arrays")


def value_from_wire(data: Any) -> Any:
    """What `value_to_wire` wrote."""
    if isinstance(data, list):
        return [value_from_wire(v) for v in cast("list[Any]", data)]
    if not isinstance(data, dict):
        return data
    ((mark, inner),) = cast("dict[str, Any]", data).items()
    match mark:
        case "map":
            return FrozenMap(inner)
        case "array":
            return array_from_wire(inner)
        case "tuple":
            return tuple(value_from_wire(v) for v in inner)
        case "dict":
            return {k: value_from_wire(v) for k, v in inner.items()}
        case _:
            raise DataError(f"unknown mark {mark!r}")


def with_changes(data: Mapping[str, Any], **changed: Any) -> Wire:
    """A copy with other values."""
    return {**data, **changed}


def columns_to_wire(columns: Mapping[str, TokenColumn]) -> Wire:
    """Token columns by name."""
    return {
        key: {"name": c.name, "values": _values(c.values), "producer": c.producer, "version": int(c.version)}
        | ({"fill": int(c.fill)} if c.fill else {})
        for key, c in columns.items()
    }


def columns_from_wire(data: Mapping[str, Any]) -> dict[str, TokenColumn]:
    """What `columns_to_wire` wrote."""
    return {k: TokenColumn(**with_changes(c, values=_read_values(c["values"]))) for k, c in data.items()}


def _values(values: Array) -> Wire:
    """A column's values, lists of ids among them."""
    if values.dtype != np.object_:
        return array_to_wire(values)
    lengths, ids = flat_of(values)
    return {"lengths": array_to_wire(lengths), "ids": array_to_wire(ids)}


def _read_values(data: Mapping[str, Any]) -> Array:
    return (
        lists_of(array_from_wire(data["lengths"]), array_from_wire(data["ids"])) if "lengths" in data else array_from_wire(data)
    )
