"""Whether training reaches problems that the model before it did not: expansion, shrinkage and preservation at k rollouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.core.errors import DataError
from assay.measure.accuracy_at_k import pass_at_k
from assay.measure.intervals import wilson

__all__ = ["Boundary", "BoundaryRate", "boundary", "boundary_of", "boundary_set"]

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryRate:
    """A share with its interval.

    Attributes:
        value: the share; None where no problem is counted below.
        low: lower end of the bootstrap interval over problems; of Wilson's where all of them are alike.
        high: upper end.
        floor: what a second model of the same abilities as the first gives by the chance of sampling alone; None where fewer
            than 2k rollouts of the first model cannot say.
    """

    value: float | None
    low: float | None
    high: float | None
    floor: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """What a second model solves within k rollouts beside what a first one does.

    Attributes:
        k: rollouts per problem in which one right answer counts as solved.
        problems: that both were tried on.
        before: expected number that the first solves.
        after: expected number that the second solves.
        expansion: of the problems that the first does not solve, the share that the second does.
        shrinkage: of those that the first solves, the share that the second does not.
        preservation: of those that the first solves, the share that the second does too.
    """

    k: int
    problems: int
    before: float
    after: float
    expansion: BoundaryRate
    shrinkage: BoundaryRate
    preservation: BoundaryRate


def boundary_set(items: Iterable[Mapping[str, Any]], threshold: float = 1.0) -> tuple[str, ...]:
    """Problems that a model did not solve in any of its rollouts, by id, in order.

    Args:
        items: per problem ``id`` and ``values``, as `assay.train.Policy.evaluate` gives them; one without values is left out.
        threshold: value from which on an answer is right.

    >>> boundary_set([{"id": "a", "values": [0, 0]}, {"id": "b", "values": [0, 1]}, {"id": "c", "values": []}])
    ('a',)
    """
    return tuple(str(i["id"]) for i in items if i["values"] and max(i["values"]) < threshold)


def boundary(n: ArrayLike, before: ArrayLike, after: ArrayLike, k: int, seed: int = 0) -> Boundary:
    """Expansion, shrinkage and preservation of what is solved within k rollouts.

    With ``R`` the problems of ``D`` that a model solves within k rollouts, expansion is ``|R_after - R_before| / |D - R_before|``
    and shrinkage ``|R_before - R_after| / |R_before|``. Each count is its exact expectation over the k of n rollouts that could
    have been taken, so at ``k = n`` it is the count itself. The floor is the same rate between two disjoint sets of k rollouts of
    the first model: problems at the edge of its abilities fall to either side by chance, and a model that has learned nothing
    shows that much.

    Args:
        n: rollouts per problem by each model, a number or one per problem, shape ``[problems]``.
        before: right ones of the first model, shape ``[problems]``.
        after: right ones of the second model on the same problems, shape ``[problems]``.
        k: rollouts in which one right answer counts as solved.
        seed: of the bootstrap over problems.

    Raises:
        DataError: no problem, arrays of different lengths, or k outside ``[1, n]``.

    Source: MATH-Beyond, Mayilvahanan et al. 2025 (arXiv:2510.11653). Its expansion counts problems at one k; what it calls
    consolidation is not in its text, and preservation here is the plain share.

    >>> found = boundary(4, [1, 1, 1] + [0] * 7, [0, 1, 1, 1, 1] + [0] * 5, k=4)
    >>> round(found.expansion.value, 4), round(found.shrinkage.value, 4), round(found.preservation.value, 4)
    (0.2857, 0.3333, 0.6667)
    >>> found.expansion.floor is None, round(boundary(4, [1, 2, 0], [1, 2, 0], k=2).expansion.floor, 4)
    (True, 0.4)
    """
    first, second = np.atleast_1d(np.asarray(before)), np.atleast_1d(np.asarray(after))
    if not first.size or first.shape != second.shape:
        raise DataError(f"boundary: {first.size} problems before and {second.size} after; give the same ones, at least 1")
    rollouts = np.broadcast_to(np.asarray(n, np.int64), first.shape)
    a, b = pass_at_k(rollouts, first, k), pass_at_k(rollouts, second, k)
    # two disjoint sets of k rollouts: neither holds a right one where 2k drawn at once hold none
    miss_both = 1 - pass_at_k(rollouts, first, 2 * k) if 2 * k <= int(rollouts.min()) else None
    crossed = None if miss_both is None else (1 - a) - miss_both  # the first set misses, the second hits
    kept = None if crossed is None else a - crossed
    return Boundary(
        k=k,
        problems=first.size,
        before=float(a.sum()),
        after=float(b.sum()),
        expansion=_rate((1 - a) * b, 1 - a, crossed, seed),
        shrinkage=_rate(a * (1 - b), a, crossed, seed),
        preservation=_rate(a * b, a, kept, seed),
    )


def boundary_of(
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    threshold: float = 1.0,
    k: int | None = None,
    seed: int = 0,
) -> Boundary:
    """`boundary` of two evaluations, on the problems that both have verdicts of.

    Args:
        before: items of the first model: per problem ``id`` and ``values``.
        after: items of the second.
        threshold: value from which on an answer is right.
        k: as in `boundary`; half of the rollouts when not given, which leaves the other half for the floor.
        seed: of the bootstrap.

    Raises:
        DataError: they share no problem, or k is larger than the number of rollouts of one.

    >>> one = [{"id": "a", "values": [0, 0]}, {"id": "b", "values": [1, 1]}]
    >>> boundary_of(one, [{"id": "a", "values": [1, 1]}, {"id": "b", "values": [1, 1]}]).expansion.value
    1.0
    """
    second = {i["id"]: i["values"] for i in after if i["values"]}
    both = [(i["values"], second[i["id"]]) for i in before if i["values"] and i["id"] in second]
    if not both:
        raise DataError("boundary: the two evaluations have no problem in common; evaluate both on the same tasks")
    n = min(len(v) for pair in both for v in pair)  # faults leave some with fewer: all are cut to the fewest
    right = np.array([[sum(x >= threshold for x in v[:n]) for v in pair] for pair in both])
    return boundary(n, right[:, 0], right[:, 1], k if k is not None else max(1, n // 2), seed)


def _rate(
    counted: NDArray[np.float64], of: NDArray[np.float64], by_chance: NDArray[np.float64] | None, seed: int
) -> BoundaryRate:
    total = float(of.sum())
    if total <= 0:
        return BoundaryRate(value=None, low=None, high=None, floor=None)
    drawn = np.random.default_rng(seed).integers(0, of.size, (_RESAMPLES, of.size))
    below = of[drawn].sum(1)
    shares = counted[drawn].sum(1)[below > 0] / below[below > 0]  # a resample without such a problem says nothing
    low, high = (float(x) for x in np.quantile(shares, (0.025, 0.975)))
    if low == high:  # problems that are all alike leave resampling no spread, which is no certainty
        few = wilson(min(round(float(counted.sum())), max(1, round(total))), max(1, round(total)))
        low, high = few.low, few.high
    floor = None if by_chance is None else max(0.0, float(by_chance.sum()) / total)
    return BoundaryRate(value=float(counted.sum()) / total, low=low, high=high, floor=floor)
