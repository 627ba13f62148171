"""Statistics over rollouts that may stand on several ranks: by group, by peers inside it, extremes, and lots by identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import DataError
from assay.core.seeds import derive, uniforms
from assay.objective.reducers import F, Moments, tally

if TYPE_CHECKING:
    from assay.objective.credit.base import Credit

__all__ = ["Gathered", "Keyed", "Largest", "Peers", "column", "each", "identity", "lottery", "moments", "peers", "rank_in_group"]

Keys = NDArray[np.int64]


def moments(values: F, keys: Keys | None = None, size: int = 1, weights: F | None = None) -> Moments:
    """`Moments.of`, each value counted ``weights`` times; the mean of equal values *is* that value.

    >>> float(moments(np.array([1.0, 0.0]), weights=np.array([3.0, 1.0])).mean[0])
    0.75
    """
    keys = np.zeros(len(values), np.int64) if keys is None else keys
    if weights is None:
        return Moments.of(values, keys, size)
    used = weights > 0
    values, keys, weights = values[used], keys[used], weights[used]
    count = tally(keys, weights, size)
    low = np.full(len(count), np.inf)
    np.minimum.at(low, keys, values)
    low[count == 0] = 0.0
    mean = low + tally(keys, weights * (values - low[keys]), size) / np.where(count > 0, count, 1.0)
    return Moments(count, mean, tally(keys, weights * (values - mean[keys]) ** 2, size))


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """Moments by keys that are not numbered: ``keys [k, c]``, each row once, in order.

    >>> a = Keyed.of(np.array([1.0, 3.0]), np.array([[0, 7], [0, 7]]))
    >>> b = Keyed.of(np.array([5.0]), np.array([[0, 9]]))
    >>> a.merge(b).at(np.array([[0, 9], [0, 7], [1, 1]])).mean.tolist()
    [5.0, 2.0, 0.0]
    """

    keys: Keys
    moments: Moments

    @staticmethod
    def of(values: F, keys: Keys, weights: F | None = None) -> Keyed:
        """Moments of ``values [n]`` by the rows of ``keys [n, c]``."""
        unique, inverse = _unique(keys)
        return Keyed(unique, moments(values, inverse, len(unique), weights))

    def merge(self, other: Keyed) -> Keyed:
        """Moments of the union."""
        unique, inverse = _unique(np.concatenate([self.keys, other.keys]))
        n, k = len(self.keys), len(unique)
        mine, theirs = _place_moments(self.moments, inverse[:n], k), _place_moments(other.moments, inverse[n:], k)
        return Keyed(unique, mine.merge(theirs))

    def at(self, keys: Keys) -> Moments:
        """``[n]`` the moments of each row of ``keys [n, c]``; count 0 where nothing has that key."""
        unique, inverse = _unique(np.concatenate([self.keys, keys]))
        n = len(self.keys)
        return _take_moments(_place_moments(self.moments, inverse[:n], len(unique)), inverse[n:])


Peers = Moments | Keyed
"""Moments per group, or per group and another column."""


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Rows of numbers from all ranks, ``[n, c]``, in no order that means anything."""

    rows: F

    def merge(self, other: Gathered) -> Gathered:
        """The rows of both."""
        return Gathered(np.concatenate([self.rows, other.rows]))


@dataclass(frozen=True, slots=True, eq=False)
class Largest:
    """The ``k`` largest values of each group, ``values [groups, k]`` from the largest on; minus infinity where there are fewer.

    >>> Largest.of(np.array([1.0, 5.0, 3.0]), np.array([0, 0, 0]), 2, 2).values.tolist()
    [[5.0, 3.0], [-inf, -inf]]
    """

    values: F

    @staticmethod
    def of(values: F, group: Keys, groups: int, k: int) -> Largest:
        """Those of ``values [n]`` by ``group [n]``."""
        out = np.full((groups, k), -np.inf)
        place = rank_in_group(group, -values)
        here = place < k
        out[group[here], place[here]] = values[here]
        return Largest(out)

    def merge(self, other: Largest) -> Largest:
        """The largest of both."""
        groups, k = max(len(self.values), len(other.values)), self.values.shape[1]
        both = np.full((groups, 2 * k), -np.inf)
        both[: len(self.values), :k], both[: len(other.values), k:] = self.values, other.values
        return Largest(-np.sort(-both, axis=1)[:, :k])


def peers(credit: Credit, values: F, by: str = "", weights: F | None = None) -> Peers:
    """Moments of ``values [R]`` of the rollouts that count, per group, or per group and value of the column ``by``."""
    here = credit.counted
    weights = credit.copies if weights is None else weights
    weights = None if weights is None else weights[here]
    if by:
        return Keyed.of(values[here], _pairs(credit, by)[here], weights)
    return moments(values[here], credit.group[here], credit.groups, weights)


def each(credit: Credit, found: Peers, by: str = "") -> Moments:
    """``[R]`` the moments of each rollout's peers."""
    return found.at(_pairs(credit, by)) if isinstance(found, Keyed) else _take_moments(found, credit.group)


def column(credit: Credit, name: str) -> F:
    """``[R]`` a column of the rollouts as numbers, 0 where a rollout does not count and has none.

    Raises:
        DataError: a rollout that counts has no finite number there, or the batch has no such column.
    """
    values = np.asarray(credit.batch.rollout(name), np.float64)
    bad = credit.counted & ~np.isfinite(values)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataError(f"rollout {at} has {name}={values[at]}: every graded rollout needs a finite number in this column")
    return np.where(np.isfinite(values), values, 0.0)


def identity(values: NDArray[Any]) -> Keys:
    """``[n]`` whole numbers that are equal where values are, on every rank: numbers, or text.

    >>> identity(np.array(["solver", "poser", "solver"])).tolist()[0] == identity(np.array(["solver"])).tolist()[0]
    True
    """
    values = np.asarray(values)
    if values.dtype.kind in "biu":
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        return (values.astype(np.float64) + 0.0).view(np.int64)  # + 0.0: one zero
    unique, inverse = np.unique(values.astype(str), return_inverse=True)
    made = np.array([derive("credit/key", 0, "", str(v)) for v in unique.tolist()], np.uint64)
    return made.view(np.int64)[inverse]


def rank_in_group(group: Keys, *by: F) -> Keys:
    """``[n]`` place of each value among those of its group, in the order of ``by``, the first key first.

    >>> rank_in_group(np.array([0, 0, 1]), np.array([2.0, 1.0, 5.0])).tolist()
    [1, 0, 0]
    """
    order = np.lexsort((*reversed(by), group))
    place = np.empty(len(group), np.int64)
    place[order] = _places(group[order])
    return place


def lottery(credit: Credit, name: str, seed: int, batch: int) -> F:
    """``[R]`` uniforms in [0, 1): a pure function of seed, number of the batch, group, and place among its rollouts that count.

    A group's rollouts stand on one rank in the order in which they were drawn, so ranks and micro-batches change nothing. Where
    the batch has a column ``place`` (`evaluate` and `torch_loss` make one of the rollouts' content) it is the order.
    """
    drawn = np.asarray(credit.batch.rollouts.get("place", np.arange(len(credit.group))), np.float64)
    place = rank_in_group(credit.group, (~credit.counted).astype(np.float64), drawn)  # a fault moves nobody else's lot
    base = np.uint64(derive(f"credit/{name}", seed, "", batch))
    with np.errstate(over="ignore"):
        seeds = base + credit.group.astype(np.uint64) * np.uint64(2**32) + place.astype(np.uint64)
    return uniforms(seeds, 0, 1)[:, 0]


def _pairs(credit: Credit, by: str) -> Keys:
    return np.stack([credit.group, identity(credit.batch.rollout(by))], axis=1)


def _unique(keys: Keys) -> tuple[Keys, Keys]:
    """The different rows in order, and ``[n]`` which of them each row is."""
    order = np.lexsort(keys.T[::-1])
    rows = keys[order]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(new) - 1
    return rows[new], inverse


def _places(sorted_keys: Keys) -> Keys:
    """``[n]`` how many equal keys stand before each one."""
    index = np.arange(len(sorted_keys))
    first = np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]])[: len(index)]
    return index - np.maximum.accumulate(np.where(first, index, 0))


def _place_moments(m: Moments, at: Keys, size: int) -> Moments:
    out = [np.zeros(size) for _ in range(3)]
    for array, values in zip(out, (m.count, m.mean, m.m2), strict=True):
        array[at] = values
    return Moments(*out)


def _take_moments(m: Moments, at: Keys) -> Moments:
    return Moments(m.count[at], m.mean[at], m.m2[at])
