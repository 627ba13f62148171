"""Arrays that a user gave, read strictly: a kind of number, the whole shape, no graph that would be dropped without a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import Array
from assay.core.errors import DataError, a_kind

__all__ = [
    "LIST",
    "VOCABULARY",
    "Inner",
    "is_inner",
    "place_by_content",
    "read_array",
    "read_column",
    "read_flags",
    "read_names",
    "read_per_rollout",
]

_NUMBERS = "biuf"
_TEXT = "US"


def read_array(name: str, given: Any, graph: bool = False) -> Array:
    """Numbers as an array: booleans, integers or floats; a tensor on any device, in any precision.

    Args:
        name: of the input, for errors.
        given: what the user passed.
        graph: a tensor may require a gradient, which is taken elsewhere.

    Raises:
        DataError: text, None, ragged lists, complex numbers, a masked array, or a tensor that requires a gradient.

    >>> read_array("rewards", [1, 0]).tolist()
    [1, 0]
    >>> read_array("rewards", [1, None])
    Traceback (most recent call last):
    assay.core.errors.DataError: rewards holds None, a NoneType, which is no number; give booleans, integers or floats
    """
    values = _array(name, given, graph)
    if values.dtype.kind not in _NUMBERS:
        raise DataError(f"{name} {_wrong(values)}; give booleans, integers or floats")
    return values


def read_names(name: str, given: Any, size: int) -> Array:
    """``[B]`` numbers or names.

    Raises:
        DataError: another shape, or neither numbers nor text.
    """
    values = _array(name, given, False)
    if values.dtype.kind == "O" and values.ndim == 1 and all(isinstance(v, str) for v in values):
        values = values.astype(str)
    if values.dtype.kind not in _NUMBERS + _TEXT:
        raise DataError(f"{name} {_wrong(values)}; give one number or one name per rollout")
    return _check_array(name, values, size)


def read_per_rollout(name: str, given: Any, size: int) -> Array:
    """``[B]`` numbers.

    Raises:
        DataError: another shape, or as `read_array`.
    """
    return _check_array(name, read_array(name, given), size)


def read_flags(name: str, given: Any) -> NDArray[np.bool_]:
    """An array of 0 and 1 as booleans.

    Raises:
        DataError: anything else in it, or as `read_array`.
    """
    values = read_array(name, given)
    if not np.isin(values, (0, 1)).all():
        raise DataError(f"{name} holds {values[~np.isin(values, (0, 1))].flat[0]}; use booleans, or 0 and 1")
    return values.astype(np.bool_)


Inner = tuple[int, ...] | str
"""The axes of a column behind rollouts and tokens: their lengths; `VOCABULARY`, one of any length; `LIST`, one or none."""

VOCABULARY, LIST = "vocabulary", "k"


def is_inner(shape: Sequence[int], inner: Inner) -> bool:
    """Whether axes are what is expected."""
    if isinstance(inner, str):
        return len(shape) == 1 or (inner == LIST and not shape)
    return tuple(shape) == inner


def read_column(name: str, given: Any, used: NDArray[np.bool_], graph: bool, inner: Inner) -> Array:
    """``[B, T, ...]`` float64, 0 where it is not read.

    Args:
        name: of the input, for errors.
        given: what the user passed.
        used: ``[B, T]`` where it is read.
        graph: as in `read_array`.
        inner: the axes behind the first two.

    Raises:
        DataError: another shape, not finite where it is read, or as `read_array`.
    """
    values = read_array(name, given, graph).astype(np.float64)
    wanted = ", ".join(["rollouts", "tokens", *([inner] if isinstance(inner, str) else map(str, inner))])
    if values.shape[:2] != used.shape:
        raise DataError(f"{name} has the shape {list(values.shape)}, the mask {list(used.shape)}; give [{wanted}]")
    if not is_inner(values.shape[2:], inner):
        raise DataError(f"{name} has the shape {list(values.shape)}; give [{wanted}]")
    bad = used & ~np.isfinite(values).all(tuple(range(2, values.ndim)))
    if bad.any():
        row, token = (int(x[0]) for x in np.nonzero(bad))
        raise DataError(
            f"{name}[{row}, {token}] is {values[row, token]}: values inside the mask must be finite; mask the token, or mark the "
            "rollout with valid=False"
        )
    return np.where(used.reshape(*used.shape, *(1,) * (values.ndim - 2)), values, 0.0)


def place_by_content(group: NDArray[np.int64], used: NDArray[np.bool_], contents: Sequence[Array]) -> NDArray[np.int64]:
    """``[B]`` the place of each rollout among those of its group, by what it says and not by where it stands.

    Lots and ties go by it, so that permuted rows have permuted results. Rollouts without loss tokens stand last; those that are
    alike in every content keep their order.

    Args:
        group: ``[B]`` group numbers.
        used: ``[B, T]`` the loss tokens.
        contents: arrays ``[B, ...]`` of numbers; the rollouts are sorted by the first, equal ones by the next, and so on.

    >>> flags = np.ones((3, 1), bool)
    >>> place_by_content(np.array([0, 0, 1]), flags, [np.array([2.0, 1.0, 0.0])]).tolist()
    [1, 0, 0]
    """
    rank = _dense(group.tolist(), np.logical_not(used.any(1)).tolist())
    for values in [used, *contents]:
        shared = np.flatnonzero(np.bincount(rank)[rank] > 1)
        if not len(shared):
            break
        code = [b""] * len(group)
        for i, key in zip(shared.tolist(), _sort_keys(values[shared]), strict=True):
            code[i] = key
        rank = _dense(rank.tolist(), code)
    order = np.lexsort((np.arange(len(group)), rank))
    first = np.searchsorted(group[order], group[order])  # rank begins with the group
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - first
    return place


def _dense(first: Sequence[Any], then: Sequence[Any]) -> NDArray[np.int64]:
    """``[B]`` which of the different pairs each is, in their order."""
    pairs = list(zip(first, then, strict=True))
    number = {pair: i for i, pair in enumerate(sorted(set(pairs)))}
    return np.array([number[pair] for pair in pairs], np.int64)


def _sort_keys(values: Array) -> list[bytes]:
    """One text of bytes per row of numbers, which compare as the rows do."""
    plain = np.nan_to_num(np.asarray(values, np.float64).reshape(len(values), -1), nan=0.0) + 0.0  # + 0.0: one zero
    bits = plain.view(np.uint64)
    sign = np.uint64(1) << np.uint64(63)
    return [row.tobytes() for row in np.where(bits & sign, ~bits, bits | sign).astype(">u8")]


def _array(name: str, given: Any, graph: bool) -> Array:
    """What numpy makes of it."""
    if isinstance(given, np.ma.MaskedArray):
        raise DataError(f"{name} is a masked array, whose mask would be ignored; fill it, and say with 'mask' what counts")
    if type(given).__module__.partition(".")[0] == "torch":
        from assay.objective.loss.tensors import numbers

        if given.requires_grad and not graph:
            raise DataError(f"{name} requires a gradient, which it would not get here; give {name}.detach()")
        return numbers(given)
    try:
        return np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"{name} is no rectangular array: {error}; give rows of one length") from None


def _wrong(values: Array) -> str:
    """What is in an array without numbers."""
    if values.dtype.kind == "c":
        return "holds complex numbers"
    if not values.size:
        return f"is empty, of dtype {values.dtype}"
    first = next((v for v in values.ravel().tolist() if not isinstance(v, bool | int | float)), None)
    return f"holds {first!r:.60}, {a_kind(first)}, which is no number" if values.ndim else f"is {a_kind(first)}"


def _check_array(name: str, values: Array, size: int) -> Array:
    if values.shape != (size,):
        raise DataError(f"{name} has the shape {list(values.shape)}, there are {size} rollouts")
    return values
