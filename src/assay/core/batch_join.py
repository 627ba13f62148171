"""Two optimiser batches as one: rows that a person owns beside those that the policy sampled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch, Counts, counts_of
from assay.core.columns import Array, TokenColumn, common_version
from assay.core.errors import DataError

__all__ = ["join_batches"]


def join_batches(first: Batch, second: Batch, groups: NDArray[np.int64]) -> Batch:
    """Rows of ``second`` behind those of ``first``, as one optimiser batch with counts of its own.

    Args:
        first: the batch that keeps its numbers of groups.
        second: rows that join it.
        groups: ``[G]`` for each group of ``second`` the number that it gets: one of ``first``, whose baseline it shares, or a
            new one.

    Columns that only one of them has get their fill in the other: tokens the column's own, rollouts NaN, "" or 0, rows 0 (and -1
    for the ids of privileged prompts). What filters left out of ``first`` stays in ``drawn``.

    Raises:
        DataError: a column that both have differs in type or shape.

    >>> from assay.core.batch import pack
    >>> from assay.testing import graded_group
    >>> from assay_tasks import SortDigits
    >>> group = graded_group(SortDigits().task("sort", 3, "train", 0), [1.0, 0.0])
    >>> both = join_batches(pack([group]), pack([group]), np.array([0]))
    >>> both.counts.rollouts, both.counts.prompts, both.rollout("group").tolist()
    (4, 1, [0, 0, 0, 0])
    """
    shift = len(first.rollouts["group"])
    moved = second.with_rollouts(group=np.asarray(groups, np.int64)[second.rollout("group")])
    rows = _tables(first.rows, {**moved.rows, "rollout": moved.rows["rollout"] + shift}, len(first), len(second))
    tokens = {name: _tokens(name, first, moved) for name in dict.fromkeys((*first.tokens, *moved.tokens))}
    joined = replace(
        first,
        offsets=np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]]),
        tokens=tokens,
        rows=rows,
        rollouts=_tables(first.rollouts, moved.rollouts, shift, len(second.rollouts["group"])),
    )
    counts = counts_of(joined)
    # what was filtered out before, beside all that is here now
    more = (d + n - c for d, n, c in zip(astuple(first.drawn), astuple(counts), astuple(first.counts), strict=True))
    return replace(joined, counts=counts, drawn=Counts(*more))


def _tokens(name: str, first: Batch, second: Batch) -> TokenColumn:
    both = [batch.tokens.get(name) for batch in (first, second)]
    known = [column for column in both if column is not None]
    model = known[0]
    if any((c.dtype, c.trailing) != (model.dtype, model.trailing) for c in known):
        raise DataError(f"token column {name!r} has another type or shape in the rows that join the batch; give both alike")
    totals = [int(batch.offsets[-1]) for batch in (first, second)]
    parts: list[Array] = [
        np.full((n, *model.trailing), model.fill, model.dtype) if c is None else c.values
        for c, n in zip(both, totals, strict=True)
    ]
    return replace(model, values=np.concatenate(parts), version=common_version(known))


def _tables(first: Mapping[str, Array], second: Mapping[str, Array], n: int, m: int) -> dict[str, Array]:
    """Columns of two tables with ``n`` and ``m`` entries behind one another."""
    return {
        name: np.concatenate([_of(name, first, second, n), _of(name, second, first, m)])
        for name in dict.fromkeys((*first, *second))
    }


def _of(name: str, table: Mapping[str, Array], other: Mapping[str, Array], n: int) -> Array:
    """A column of a table, as wide as the other table's."""
    like = other.get(name, table.get(name))
    assert like is not None
    have: Array = table[name] if name in table else np.full((n, *like.shape[1:]), _fill(name, like), like.dtype)
    if have.ndim == 1 or have.shape[1] >= like.shape[1]:
        return have
    missing = np.full((len(have), like.shape[1] - have.shape[1]), _fill(name, like), have.dtype)
    return np.concatenate([have, missing], axis=1)


def _fill(name: str, like: Array) -> Any:
    if like.dtype.kind == "f":
        return np.nan
    if like.dtype.kind == "U":
        return ""
    return -1 if name == "privileged" else 0
