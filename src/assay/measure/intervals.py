"""How sure a number is: intervals over tasks, and paired differences of two models on the same tasks.

Rollouts at one task are not independent, so the unit of resampling is the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.core.errors import ConfigError, DataError
from assay.core.seeds import generator
from assay.core.util.wilson import wilson_bounds

__all__ = ["Interval", "Paired", "bootstrap", "mean_interval", "paired_difference", "student", "wilson"]

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its confidence interval.

    Attributes:
        value: the estimate.
        low, high: ends of the interval.
        confidence: its nominal coverage.
        n: number of independent units (tasks) behind it.

    >>> str(Interval(0.5, 0.4, 0.6))
    '0.500 [0.400, 0.600]'
    """

    value: float
    low: float
    high: float
    confidence: float = 0.95
    n: int = 0

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Paired:
    """Two models on the same tasks: second minus first.

    Attributes:
        difference: mean of the per-task differences, with its interval over tasks.
        p_value: two-sided sign-flip p-value of "no difference".
        better, worse, same: tasks on which the second scores higher, lower, equal.
    """

    difference: Interval
    p_value: float
    better: int
    worse: int
    same: int


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion; unlike the bootstrap it is honest at 0 and n successes.

    Raises:
        DataError: ``n < 1`` or ``successes`` outside ``[0, n]``.

    Source: Wilson 1927.

    >>> str(wilson(0, 10))
    '0.000 [0.000, 0.278]'
    """
    _check_confidence(confidence)
    low, high = wilson_bounds(successes, n, confidence)
    return Interval(successes / n, low, high, confidence, n)


def bootstrap(values: ArrayLike, confidence: float = 0.95, seed: int = 0, resamples: int = 2000, method: str = "bca") -> Interval:
    """Bootstrap interval of the mean over tasks.

    Args:
        values: ``[T]``, one value per task.
        confidence: nominal coverage.
        seed: of the resampling; equal seeds give equal intervals.
        resamples: bootstrap samples.
        method: ``bca`` (bias-corrected, accelerated) or ``percentile``.

    Raises:
        DataError: no values, or one that is not finite.
        ConfigError: unknown method, or ``confidence`` outside (0, 1).

    Source: Efron 1987, "Better bootstrap confidence intervals".

    >>> interval = bootstrap([0.0, 1.0] * 50)
    >>> interval.value, 0.38 < interval.low < 0.43, 0.57 < interval.high < 0.62
    (0.5, True, True)
    """
    x = _check_values(values)
    _check_confidence(confidence)
    if method not in ("bca", "percentile"):
        raise ConfigError(f"bootstrap method {method!r}: use 'bca' or 'percentile'")
    mean = float(x.mean())
    if _even(x):
        return Interval(mean, mean, mean, confidence, len(x))
    means = _resampled_means(x, seed, resamples)
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if method == "bca":
        tails = _bca_tails(x, means, mean, tails)
    low, high = np.quantile(means, tails)
    return Interval(mean, float(low), float(high), confidence, len(x))


def mean_interval(values: ArrayLike, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Interval of a mean over tasks: `bootstrap`, except where it would be blind.

    When every value is 0, or every value is 1, resampling sees no spread; `wilson` then says how much could have stayed unseen.

    >>> str(mean_interval([1.0] * 16))
    '1.000 [0.806, 1.000]'
    """
    x = _check_values(values)
    if x[0] in (0.0, 1.0) and bool((x == x[0]).all()):
        return wilson(int(x.sum()), len(x), confidence)
    return bootstrap(x, confidence, seed)


def student(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Student's interval of a mean over a few runs, as of seeds: the bootstrap is too narrow for so few.

    Args:
        values: ``[N]``, one value per run.
        confidence: nominal coverage.

    It takes the values for draws of a normal distribution; values that are all alike give an interval without width.

    Raises:
        DataError: fewer than two values, or one that is not finite.
        ConfigError: ``confidence`` outside (0, 1).

    Source: Student 1908.

    >>> str(student([0.80, 0.85, 0.90, 0.95, 1.00]))
    '0.900 [0.802, 0.998]'
    """
    x = _check_values(values)
    _check_confidence(confidence)
    if len(x) < 2:
        raise DataError("an interval over runs needs two values or more: one says nothing of the others")
    half = _student_quantile(confidence, len(x) - 1) * float(x.std(ddof=1)) / float(np.sqrt(len(x)))
    mean = float(x.mean())
    return Interval(mean, mean - half, mean + half, confidence, len(x))


def _student_quantile(confidence: float, freedom: int) -> float:
    """Where Student's distribution holds ``confidence`` of its mass between there and its mirror, by bisection of the angle."""
    low, high = 0.0, np.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_mass(middle, freedom) < confidence else (low, middle)
    return float(np.sqrt(freedom) * np.tan(low))


def _student_mass(angle: float, freedom: int) -> float:
    """Mass of Student's distribution between -t and t, ``angle = atan(t / sqrt(freedom))`` (Abramowitz and Stegun 26.7.3-4)."""
    odd = freedom % 2
    cosine, total = float(np.cos(angle)), 0.0
    term = cosine if odd else 1.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine**2 * (k - 1) / k
    return (2 / np.pi) * (angle + np.sin(angle) * total) if odd else float(np.sin(angle)) * total


def paired_difference(
    first: Mapping[str, float], second: Mapping[str, float], confidence: float = 0.95, seed: int = 0, flips: int = 10000
) -> Paired:
    """Difference of two models on the tasks that both were evaluated on.

    Args:
        first, second: task id to score.
        confidence: of the interval.
        seed: of resampling and sign flips.
        flips: random sign flips; with at most 12 tasks that differ, all sign patterns are counted instead.

    Where scores lie in [0, 1] and no task differs from another in its difference, resampling sees no spread; the share of
    tasks that could
    differ unseen (`wilson`) bounds the interval instead.

    Raises:
        DataError: no task in common.

    >>> p = paired_difference({"a": 0.0, "b": 0.0, "c": 1.0}, {"a": 1.0, "b": 1.0, "c": 1.0})
    >>> round(p.difference.value, 3), p.p_value, (p.better, p.worse, p.same)
    (0.667, 0.5, (2, 0, 1))
    """
    shared = sorted(first.keys() & second.keys())
    if not shared:
        raise DataError("a paired comparison needs evaluation items that both runs have; the ids have none in common")
    pairs = np.array([(first[i], second[i]) for i in shared], np.float64)
    d = pairs[:, 1] - pairs[:, 0]
    bounded = bool(((pairs >= 0) & (pairs <= 1)).all())
    return Paired(
        difference=_unseen(d, confidence) if bounded and _even(d) else bootstrap(d, confidence, seed),
        p_value=_sign_flip(d, seed, flips),
        better=int((d > 0).sum()),
        worse=int((d < 0).sum()),
        same=int((d == 0).sum()),
    )


def _unseen(d: NDArray[np.float64], confidence: float) -> Interval:
    """Interval of a difference that is the same on all ``n`` tasks: up to a share u of all tasks may behave in any other way."""
    value, u = float(d[0]), wilson(0, len(d), confidence).high
    return Interval(value, max(-1.0, value - u * (1 + value)), min(1.0, value + u * (1 - value)), confidence, len(d))


def _even(x: NDArray[np.float64]) -> bool:
    """Whether all values are the same but for rounding."""
    return float(np.ptp(x)) <= 1e-12 * max(1.0, float(np.abs(x).max()))


def _check_values(values: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(values, np.float64).reshape(-1)
    if not len(x):
        raise DataError("an interval needs at least one value")
    if not np.isfinite(x).all():
        raise DataError(f"an interval needs finite values; {int((~np.isfinite(x)).sum())} of {len(x)} are not")
    return x


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ConfigError(f"confidence={confidence}; use a number between 0 and 1, for example 0.95")


def _resampled_means(x: NDArray[np.float64], seed: int, resamples: int) -> NDArray[np.float64]:
    """``[resamples]`` means, in slices that keep the index matrix below about 16 MB."""
    rng = generator("measure/bootstrap", seed)
    out, step = np.empty(resamples), max(1, 2_000_000 // len(x))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        out[start : start + size] = x[rng.integers(0, len(x), (size, len(x)))].mean(axis=1)
    return out


def _bca_tails(
    x: NDArray[np.float64], means: NDArray[np.float64], mean: float, tails: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The quantiles to read instead of ``tails``."""
    below = float(((means < mean).sum() + 0.5 * (means == mean).sum()) / len(means))
    bias = _NORMAL.inv_cdf(min(max(below, 1e-9), 1 - 1e-9))
    left_out = (x.sum() - x) / max(len(x) - 1, 1)
    d = left_out.mean() - left_out
    spread = float((d**2).sum())
    acceleration = float((d**3).sum()) / (6 * spread**1.5)
    z = np.array([_NORMAL.inv_cdf(float(t)) for t in tails]) + bias
    return np.array([_NORMAL.cdf(float(bias + v / (1 - acceleration * v))) for v in z])


def _sign_flip(d: NDArray[np.float64], seed: int, flips: int) -> float:
    """Two-sided p-value: how often random signs give a sum at least as far from 0."""
    d = d[d != 0]
    if not len(d):
        return 1.0
    observed = abs(float(d.sum())) - 1e-9 * float(np.abs(d).sum())
    if len(d) <= 12:
        patterns: NDArray[np.int64] = np.arange(1 << len(d), dtype=np.int64)[:, None] >> np.arange(len(d), dtype=np.int64)
        sums = (1.0 - 2.0 * (patterns % 2)) @ d
        return float((np.abs(sums) >= observed).mean())
    rng = generator("measure/sign-flip", seed)
    hits, step = 0, max(1, 2_000_000 // len(d))
    for start in range(0, flips, step):
        signs = rng.integers(0, 2, (min(step, flips - start), len(d)), dtype=np.int8).astype(np.float64) * 2 - 1
        hits += int((np.abs(signs @ d) >= observed).sum())
    return (hits + 1) / (flips + 1)
