"""Scores of several runs on several tasks: interquartile means, stratified intervals, who improves on whom.

Source: Agarwal et al. 2021, arXiv 2108.13264.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.core import ConfigError, DataError, generator
from assay.measure import Interval

__all__ = [
    "Aggregate",
    "aggregate_scores",
    "improvement_probability",
    "interquartile_mean",
    "performance_profile",
    "rank_correlation",
]

Scores = NDArray[np.float64]


def _check_matrix(scores: ArrayLike) -> Scores:
    x = np.asarray(scores, np.float64)
    if x.ndim != 2 or not x.size or not np.isfinite(x).all():
        raise DataError(f"scores of shape {x.shape}; give finite numbers, a row for each run and a column for each task")
    return x


def interquartile_mean(values: ArrayLike) -> float:
    """Mean of the middle half: a quarter of the values, rounded down, is left out at each end.

    ``IQM = mean(x_(k+1) ... x_(n-k))`` of the sorted values, ``k = floor(n / 4)``.

    Raises:
        DataError: no values.

    >>> round(interquartile_mean([0, 0.1, 0.4, 0.5, 0.6, 0.7, 0.9, 1, 5]), 2)
    0.62
    """
    x = np.sort(np.asarray(values, np.float64).reshape(-1))
    if not len(x):
        raise DataError("an interquartile mean needs at least one value")
    cut = len(x) // 4
    return float(x[cut : len(x) - cut].mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Scores of runs on tasks, summed up.

    Attributes:
        iqm: interquartile mean over all runs and tasks, with a stratified bootstrap interval.
        mean, median: of the tasks' means, likewise.
    """

    iqm: Interval
    mean: Interval
    median: Interval


def aggregate_scores(scores: ArrayLike, confidence: float = 0.95, seed: int = 0, draws: int = 2000) -> Aggregate:
    """Sums up ``[runs, tasks]`` scores; intervals draw runs afresh within each task (percentile bootstrap).

    Raises:
        DataError: no table of finite numbers.
        ConfigError: a confidence that is none, or no draw.

    >>> print(aggregate_scores([[0.2, 0.5], [0.4, 0.7], [0.6, 0.9]]).iqm)
    0.550 [0.400, 0.700]
    """
    x = _check_matrix(scores)
    if not 0 < confidence < 1 or draws < 1:
        raise ConfigError(
            f"aggregate_scores(confidence={confidence}, draws={draws}): use a confidence in (0, 1), and a draw or more"
        )
    runs, tasks = x.shape
    index = generator("control/bootstrap", seed).integers(0, runs, (draws, runs, tasks))
    drawn = x[index, np.arange(tasks)]

    def interval(what: Callable[[Scores], float]) -> Interval:
        found = [what(sample) for sample in drawn]
        low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
        return Interval(what(x), float(low), float(high), confidence, runs * tasks)

    return Aggregate(
        iqm=interval(interquartile_mean),
        mean=interval(lambda s: float(s.mean())),
        median=interval(lambda s: float(np.median(s.mean(0)))),
    )


def improvement_probability(first: ArrayLike, second: ArrayLike) -> float:
    """Chance that a run of the first beats one of the second on a task: ``mean_tasks P(X > Y) + P(X = Y) / 2``.

    Raises:
        DataError: other tasks.

    >>> round(improvement_probability([[0.2, 0.2], [0.5, 0.1]], [[0.1, 0.2], [0.3, 0.4]]), 4)
    0.4375
    """
    x, y = _check_matrix(first), _check_matrix(second)
    if x.shape[1] != y.shape[1]:
        raise DataError(f"scores on {x.shape[1]} and {y.shape[1]} tasks; compare them on the same")
    difference = x[:, None] - y[None]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> Scores:
    """Share of runs and tasks with a score above each threshold.

    >>> performance_profile([[0.1, 0.9]], [0.0, 0.5, 1.0]).tolist()
    [1.0, 0.5, 0.0]
    """
    x = _check_matrix(scores)
    return (x[..., None] > np.asarray(thresholds, np.float64)).mean((0, 1))


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's: the correlation of the ranks, ties at their mean rank; 0 where one of them does not vary.

    ``ρ = cov(rank x, rank y) / (σ σ)``. Of a model's likelihood and the return of policies it says whether the one stands for the
    other (objective mismatch: Lambert et al. 2020, arXiv 2002.04523).

    Raises:
        DataError: lists of different lengths, or fewer than two numbers.

    >>> rank_correlation([1, 2, 3, 4], [10, 20, 15, 40]), rank_correlation([1, 2], [5, 5])
    (0.8, 0.0)
    """
    x, y = (np.asarray(v, np.float64).reshape(-1) for v in (first, second))
    if len(x) != len(y) or len(x) < 2:
        raise DataError(f"a correlation of {len(x)} and {len(y)} numbers; give two lists of one length, of two numbers or more")
    ranks = [(v[:, None] > v).sum(1) + 0.5 * (v[:, None] == v).sum(1) for v in (x, y)]
    a, b = (r - r.mean() for r in ranks)
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return round(float((a * b).sum()) / size, 12) if size else 0.0
