"""Statistics over rows that may stand on several ranks: computed locally, merged, applied where the rows are.

Moments are kept as (count, mean, sum of squared deviations), which merge without cancellation, and each mean is taken around the
smallest value: the mean of equal values *is* that value, so a group without variance has deviations of exactly 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import PlanError

__all__ = ["F", "Local", "Lowest", "Moments", "Named", "Partials", "Reducer", "Sum", "tally"]

F = NDArray[np.float64]

Partials = Mapping[str, Any]
"""Name to a partial statistic: anything with ``merge(other)``, such as `Sum`, `Moments` and `Lowest`."""


class Reducer(Protocol):
    """Merges equally named partials over all ranks."""

    def reduce(self, partials: Partials) -> Partials:
        """The same names, each merged over the ranks."""
        ...


@dataclass(frozen=True, slots=True)
class Local:
    """The reducer of a single process: everything is here already."""

    def reduce(self, partials: Partials) -> Partials:
        """``partials`` themselves."""
        return partials


@dataclass(frozen=True, slots=True)
class Named:
    """One part's way to a reducer: its statistics go under ``PART/STATISTIC``; nothing crosses ranks that no plan names.

    Attributes:
        reducer: what merges.
        part: the part's name in `Plan.reductions`.
        planned: all names there.
    """

    reducer: Reducer
    part: str
    planned: tuple[str, ...]

    def reduce(self, partials: Partials) -> Partials:
        """``partials`` merged over the ranks, under their own names; without any, nothing is asked of the ranks.

        Raises:
            PlanError: the part does not declare that it has statistics.
        """
        if not partials:
            return partials
        if self.part not in self.planned:
            raise PlanError(
                f"{self.part} merges the statistics {sorted(partials)} over ranks, but its `reduces` says that it has none: "
                "override `reduces` to be True"
            )
        merged = self.reducer.reduce({f"{self.part}/{name}": value for name, value in partials.items()})
        return {name: merged[f"{self.part}/{name}"] for name in partials}


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """Something that adds: ``values [k]``; shorter ones are padded with zeros.

    >>> from assay.objective import Sum
    >>> Sum(np.array([1.0])).merge(Sum(np.array([2.0, 3.0]))).values.tolist()
    [3.0, 3.0]
    """

    values: F

    def merge(self, other: Sum) -> Sum:
        """The sum of both."""
        size = max(len(self.values), len(other.values))
        return Sum(_pad_groups(self.values, size) + _pad_groups(other.values, size))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Count, mean and sum of squared deviations per key.

    Attributes:
        count, mean, m2: ``[k]``; keys without values have count 0 and mean 0.

    >>> from assay.objective import Moments
    >>> m = Moments.of(np.array([1.0, 0.0, 0.0, 0.0]))
    >>> float(m.mean[0]), float(m.std(ddof=1)[0])
    (0.25, 0.5)
    """

    count: F
    mean: F
    m2: F

    @staticmethod
    def of(values: F, keys: NDArray[np.int64] | None = None, size: int = 1) -> Moments:
        """Moments of ``values [n]`` by ``keys [n]`` in ``[0, size)``; all under key 0 when None."""
        keys = np.zeros(len(values), np.int64) if keys is None else keys
        count = tally(keys, np.ones_like(values), size)
        low = np.full(len(count), np.inf)
        np.minimum.at(low, keys, values)
        low[count == 0] = 0.0
        safe = np.maximum(count, 1.0)
        mean = low + tally(keys, values - low[keys], size) / safe
        m2 = tally(keys, (values - mean[keys]) ** 2, size)
        return Moments(count, mean, m2)

    def merge(self, other: Moments) -> Moments:
        """Moments of the union (Chan's formula)."""
        size = max(len(self.count), len(other.count))
        n1, n2 = _pad_groups(self.count, size), _pad_groups(other.count, size)
        a, b = _pad_groups(self.mean, size), _pad_groups(other.mean, size)
        total = np.maximum(n1 + n2, 1.0)
        delta = b - a
        mean = np.where(n1 == 0, b, a + delta * n2 / total)
        m2 = _pad_groups(self.m2, size) + _pad_groups(other.m2, size) + delta**2 * n1 * n2 / total
        return Moments(n1 + n2, mean, m2)

    def std(self, ddof: int) -> F:
        """``[k]`` standard deviations; 0 where there are too few values for one."""
        return np.sqrt(self.m2 / np.maximum(self.count - ddof, 1.0)) * (self.count > ddof)


@dataclass(frozen=True, slots=True, eq=False)
class Lowest:
    """The smallest of many rows of numbers, compared by the first column, then the next, and so on: order statistics over ranks.

    The union's ``size`` smallest rows are among those of its parts, so a rank never sends more. Further columns break ties;
    between equal rows `holds` takes all that are equal to the last one. Negate for the largest.

    Attributes:
        rows: ``[at most size, w]``, ascending.
        size: how many are kept.

    >>> from assay.objective.reducers import Lowest
    >>> both = Lowest.of(np.array([3.0, 1.0]), 2).merge(Lowest.of(np.array([2.0, 5.0]), 2))
    >>> both.rows[:, 0].tolist(), both.bound, both.holds(np.array([0.5, 2.0, 2.5])).tolist()
    ([1.0, 2.0], 2.0, [True, True, False])
    """

    rows: F
    size: int

    @staticmethod
    def of(values: F, size: int) -> Lowest:
        """The ``size`` smallest of ``values [n]`` or ``[n, w]``; all of them where there are fewer."""
        rows = _rows(values)
        if 0 < size < len(rows):
            rows = rows[rows[:, 0] <= np.partition(rows[:, 0], size - 1)[size - 1]]
        order = np.lexsort(rows.T[::-1])
        return Lowest(rows[order[:size]], size)

    def merge(self, other: Lowest) -> Lowest:
        """The ``size`` smallest of both."""
        return Lowest.of(np.concatenate([self.rows, other.rows]), self.size)

    @property
    def bound(self) -> float:
        """First column of the largest row that is kept; minus infinity when none is."""
        return float(self.rows[-1, 0]) if len(self.rows) else -np.inf

    def holds(self, values: F) -> NDArray[np.bool_]:
        """``[n]`` whether rows ``[n]`` or ``[n, w]`` are not larger than the largest that is kept."""
        rows = _rows(values)
        if not len(self.rows):
            return np.zeros(len(rows), np.bool_)
        held = np.ones(len(rows), np.bool_)
        for column, last in zip(rows.T[::-1], self.rows[-1][::-1], strict=True):
            held = (column < last) | ((column == last) & held)
        return held


def _rows(values: F) -> F:
    return np.asarray(values[:, None] if values.ndim == 1 else values, np.float64)


def tally(keys: NDArray[Any], values: F, size: int = 0) -> F:
    """``[max(size, largest key + 1)]`` sums of ``values [n]`` by ``keys [n]``.

    >>> tally(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0]), 4).tolist()
    [1.0, 0.0, 5.0, 0.0]
    """
    return np.asarray(np.bincount(keys, values, size), np.float64)


def _pad_groups(values: F, size: int) -> F:
    return np.concatenate([values, np.zeros(size - len(values))])
