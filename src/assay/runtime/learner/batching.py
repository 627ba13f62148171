"""How an optimiser batch is cut into micro-batches: deterministic, rows of like length together, no unit split."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.plan import Scope

__all__ = ["micro_batches"]


def micro_batches(
    batch: Batch, micro_tokens: int, split: Scope = Scope.TOKEN, rows: NDArray[np.int64] | None = None, together: bool = False
) -> list[NDArray[np.int64]]:
    """Row indices of each micro-batch.

    Args:
        batch: the optimiser batch.
        micro_tokens: most tokens in a micro-batch; a unit that is longer stands alone.
        split: unit kept whole: a row (``token``), a rollout (``sequence``), a group, or the batch.
        rows: rows to compute; all when None.
        together: rows of a group stand together where they fit, for passes that compute what they begin with once.

    Returns:
        Arrays that together hold each row once. Units are sorted by their longest row (with ``together`` by their group's), the
        rows of a micro-batch by length, ties in the batch's order; a pure function of lengths, units and groups.

    >>> from assay.core.batch import pack_rows
    >>> from assay.core.sample import supervised_sample
    >>> from assay.core.rollout import ids_of
    >>> made = [(i, supervised_sample(str(i), [(ids_of([1] * n), False), (ids_of([2]), True)])) for i, n in enumerate((5, 1, 3))]
    >>> [m.tolist() for m in micro_batches(pack_rows(made, {"group": np.arange(3)}), 6)]
    [[1, 2], [0]]
    """
    index = np.arange(len(batch)) if rows is None else rows
    if not len(index):
        return []
    lengths = batch.lengths[index]
    unit = np.unique(_units(batch, split)[index], return_inverse=True)[1]
    longest = np.zeros(int(unit.max()) + 1, np.int64)
    tokens = np.zeros_like(longest)
    np.maximum.at(longest, unit, lengths)
    np.add.at(tokens, unit, lengths)
    part_of = np.empty_like(longest)
    part, filled = 0, 0
    for u in _order(longest, batch.per_row("group")[index], unit, lengths, together).tolist():
        size = int(tokens[u])
        if filled and filled + size > micro_tokens:
            part, filled = part + 1, 0
        part_of[u], filled = part, filled + size
    parts = part_of[unit]
    order = np.lexsort((index, lengths, parts))
    ends = np.cumsum(np.bincount(parts))[:-1]
    return np.split(index[order], ends)


def _order(
    longest: NDArray[np.int64], group: NDArray[np.int64], unit: NDArray[np.int64], lengths: NDArray[np.int64], together: bool
) -> NDArray[np.int64]:
    """Units as they are dealt out."""
    if not together:
        return np.argsort(longest, kind="stable")
    group = np.unique(group, return_inverse=True)[1]
    first = np.unique(unit, return_index=True)[1]  # a row of each unit
    longest_of = np.zeros(int(group.max()) + 1, np.int64)
    np.maximum.at(longest_of, group, lengths)
    of_unit = group[first]
    return np.lexsort((longest, of_unit, longest_of[of_unit]))


def _units(batch: Batch, split: Scope) -> NDArray[np.int64]:
    if split is Scope.TOKEN:
        return np.arange(len(batch))
    if split is Scope.BATCH:
        return np.zeros(len(batch), np.int64)
    return batch.rows["rollout"] if split is Scope.SEQUENCE else batch.per_row("group")
