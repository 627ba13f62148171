"""Token columns of lists: for each token as many ids as there are, or none where nobody says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import Array
from assay.core.rollout import Ids

__all__ = ["SUPPORT", "flat_of", "lists_of", "ragged_array"]

SUPPORT = "support"
"""The column that says from which ids each token was drawn; learners score it within them. 0 stands for all ids."""


def ragged_array(lists: Sequence[Ids]) -> Array:
    """``[T]`` objects: the values of a `assay.core.columns.TokenColumn` whose entries are lists of ids.

    >>> ragged_array([np.array([3, 5]), np.array([1])])[0].tolist()
    [3, 5]
    """
    out = np.zeros(len(lists), np.object_)
    for place, ids in enumerate(lists):
        out[place] = ids
    return out


def flat_of(values: Array) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """``[T]`` lengths, -1 where an entry is no list, and ``[S]`` all ids behind one another.

    >>> flat_of(ragged_array([np.array([3, 5])]))[0].tolist()
    [2]
    """
    lists: list[Ids | None] = [entry if isinstance(entry, np.ndarray) else None for entry in values]
    lengths = np.array([-1 if ids is None else len(ids) for ids in lists], np.int64)
    return lengths, np.concatenate([np.zeros(0, np.int32), *(ids for ids in lists if ids is not None)], dtype=np.int32)


def lists_of(lengths: NDArray[np.int64], ids: NDArray[np.int32]) -> Array:
    """What `flat_of` took apart.

    >>> lists_of(np.array([-1, 2]), np.array([3, 5], np.int32))[1].tolist()
    [3, 5]
    """
    out = np.zeros(len(lengths), np.object_)
    ends = np.cumsum(np.maximum(lengths, 0))
    for place in np.flatnonzero(lengths >= 0).tolist():
        out[place] = ids[ends[place] - lengths[place] : ends[place]]
    return out
