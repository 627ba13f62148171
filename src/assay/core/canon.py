"""One canonical form of plain values, and the digests built on it.

Equal values give equal bytes on every machine and under every PYTHONHASHSEED, so seeds, splits and
checkpoints can be derived from content.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import os
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, Set, ValuesView
from concurrent.futures import ThreadPoolExecutor
from json.encoder import encode_basestring
from typing import Any, cast

import numpy as np

from assay.core.errors import DataError, a_kind

__all__ = [
    "FrozenMap",
    "array_digest",
    "array_digests",
    "canonical",
    "check_row_text",
    "check_unicode",
    "digest",
    "freeze",
    "hash_text",
    "plain",
    "refuse_repeated_keys",
]


_MOST_THREADS = 8
_WORTH = 1 << 24
"""Bytes from which on threads are worth their start."""
_EXACT = frozenset({bool, int, float, str})
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=True)


class FrozenMap(Mapping[str, Any]):
    """An immutable, hashable, picklable mapping from names to plain values; equal to a dict with equal items.

    Raises:
        DataError: two keys that are the same name, as ``1`` and ``"1"``.

    >>> m = FrozenMap({"b": [1, 2], "a": {"x": 1}})
    >>> m["b"], m["a"]["x"]
    ((1, 2), 1)
    >>> hash(m) == hash(FrozenMap({"a": {"x": 1}, "b": (1, 2)}))
    True
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        self._items: dict[str, Any] = _name_items({} if items is None else items, freeze)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    # the views and tests of the dict itself: those of Mapping are many times slower, and every digest walks them

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._items.keys()

    def values(self) -> ValuesView[Any]:
        """The values, frozen."""
        return self._items.values()

    def items(self) -> ItemsView[str, Any]:
        """Names with their values."""
        return self._items.items()

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"

    def __reduce__(self) -> tuple[type[FrozenMap], tuple[dict[str, Any]]]:
        return FrozenMap, (self._items,)


def freeze(value: Any) -> Any:
    """``value`` with dicts as `FrozenMap`, lists as tuples and sets as frozensets, recursively.

    >>> freeze([{"a": [1]}])
    (FrozenMap({'a': (1,)}),)
    """
    kind = value.__class__
    if kind in _EXACT or kind is FrozenMap:
        return value
    if isinstance(value, Mapping):
        return FrozenMap(cast("Mapping[str, Any]", value))
    if isinstance(value, list | tuple):
        return tuple([v if v.__class__ in _EXACT else freeze(v) for v in cast("Sequence[Any]", value)])
    if isinstance(value, set):
        return frozenset(freeze(v) for v in cast("Set[Any]", value))
    return value


def plain(value: Any) -> Any:
    """``value`` as JSON types: dict, list, str, int, float, bool, None.

    Dataclasses become dicts, enums their values, numpy scalars and arrays Python numbers and lists, sets lists in canonical
    order.

    Raises:
        DataError: a value of another type, with its type named, or two keys that are the same name.

    >>> plain({"a": np.arange(2), 3: {"y", "x"}})
    {'a': [0, 1], '3': ['x', 'y']}
    """
    kind = value.__class__
    if value is None or kind in _EXACT:
        return value
    if kind is list or kind is tuple:  # as most values are: the general tests below are many times slower
        return [v if v.__class__ in _EXACT else plain(v) for v in value]
    if kind is dict or kind is FrozenMap:
        return _name_items(value, plain)
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, np.ndarray | np.generic):
        return plain(cast("Any", value).tolist())
    if isinstance(value, bool | int | float | str):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return _name_items(cast("Mapping[Any, Any]", value), plain)
    if isinstance(value, Set):
        return sorted((plain(v) for v in cast("Set[Any]", value)), key=_ENCODER.encode)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(v) for v in cast("Sequence[Any]", value)]
    raise DataError(f"cannot write {a_kind(value)} as JSON: {value!r}; use numbers, strings, lists and dicts")


def check_unicode(value: Any, place: str) -> None:
    r"""Looks for halves of surrogate pairs in a plain value, which JSON can spell and no file in UTF-8 can hold.

    Args:
        value: of text, mappings and lists; anything else has none.
        place: where it stands, for the error.

    Raises:
        DataError: there is one; names the place within the value, the character and a fix.

    >>> check_unicode({"note": ["fine", "cut \ud83d off"]}, "row 3")
    Traceback (most recent call last):
    assay.core.errors.DataError: row 3['note'][1]: character 5, '\ud83d', is half of a surrogate pair, ...
    """
    if isinstance(value, str):
        if value.isascii():
            return
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{place}: character {error.start + 1}, {value[error.start]!a}, is half of a surrogate pair, which is no "
                "character: the text was cut within one; mend it, or leave the row out"
            ) from None
    elif isinstance(value, Mapping):
        for name, part in cast("Mapping[Any, Any]", value).items():
            check_unicode(name, f"{place}, the name of a field")
            check_unicode(part, f"{place}[{name!r}]")
    elif isinstance(value, list | tuple):
        for at, part in enumerate(cast("Sequence[Any]", value)):
            check_unicode(part, f"{place}[{at}]")


def check_row_text(row: Mapping[str, Any], place: str) -> None:
    """`check_unicode` of a row's fields; the error names the row and the field."""
    for name, value in row.items():
        check_unicode(name, f"{place}, the name of a field")
        check_unicode(value, f"{place}, field {name!r}")


def canonical(value: Any) -> bytes:
    """Canonical JSON of a plain value: sorted keys, no spaces, UTF-8.

    >>> canonical({"b": 1, "a": [True, None]})
    b'{"a":[true,null],"b":1}'
    """
    if value.__class__ in (dict, FrozenMap) and len(value) == 1:  # as most questions are: an encoder takes longer to make
        ((name, text),) = value.items()
        if name.__class__ is str and text.__class__ is str:
            return f"{{{encode_basestring(name)}:{encode_basestring(text)}}}".encode("utf-8", "surrogatepass")
    return _ENCODER.encode(plain(value)).encode("utf-8", "surrogatepass")


def hash_text(text: bytes, size: int = 16) -> str:
    """Hex blake2b of canonical JSON that is already at hand (`canonical`); ``size`` in bytes.

    >>> hash_text(canonical({"a": 1})) == digest({"a": 1})
    True
    """
    return hashlib.blake2b(text, digest_size=size).hexdigest()


def refuse_repeated_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object from its pairs, as the ``object_pairs_hook`` of ``json.loads``: of a key that stands twice
    nobody knows which value is meant.

    Raises:
        DataError: a key stands twice; names it.

    >>> json.loads('{"a": {"b": 1}}', object_pairs_hook=refuse_repeated_keys)
    {'a': {'b': 1}}
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"the key {twice!r} stands twice in one object; leave one of them out")
    return found


def _name_items(items: Mapping[Any, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    out = {k if k.__class__ is str else str(k): v if v.__class__ in _EXACT else change(v) for k, v in items.items()}
    if len(out) < len(items):
        raise DataError(f"two keys are the same name as text: {sorted(map(repr, items))}")
    return out


def digest(value: Any, size: int = 16) -> str:
    """Hex blake2b of the canonical JSON of ``value``; ``size`` in bytes.

    >>> digest({"a": 1}) == digest({"a": 1.0}), len(digest(0))
    (False, 32)
    """
    return hash_text(canonical(value), size)


def array_digest(array: np.ndarray[Any, Any], size: int = 16) -> str:
    """Hex blake2b of an array's dtype, shape and bytes."""
    data = np.ascontiguousarray(array)
    h = hashlib.blake2b(f"{data.dtype.str}{data.shape}".encode(), digest_size=size)
    h.update(data.reshape(-1).view(np.uint8).data if data.size else b"")
    return h.hexdigest()


def array_digests(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, str]:
    """`array_digest` of each, by name; large sets by several threads where there are cores, the largest first.

    >>> array_digests({"w": np.zeros(2)})["w"] == array_digest(np.zeros(2))
    True
    """
    allowed = getattr(os, "sched_getaffinity", None)  # Linux has it
    workers = min(_MOST_THREADS, len(arrays), len(allowed(0)) if allowed else os.cpu_count() or 1)
    if workers < 2 or sum(a.nbytes for a in arrays.values()) < _WORTH:
        return {name: array_digest(array) for name, array in arrays.items()}
    names = sorted(arrays, key=lambda n: -arrays[n].nbytes)
    with ThreadPoolExecutor(workers) as pool:
        found = dict(zip(names, pool.map(array_digest, [arrays[n] for n in names]), strict=True))
    return {name: found[name] for name in arrays}
