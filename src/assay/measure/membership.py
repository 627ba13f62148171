"""Has a model seen these items? Scores of one item each, and how well a score tells members from others.

Every score is larger where an item is more likely to have been trained on. A score by itself says little: only a comparison with
items that the model cannot have seen, drawn from the same distribution, does.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.core.errors import ConfigError, DataError
from assay.measure.intervals import Interval, mean_interval

__all__ = ["auc", "gap", "mean_auc", "mean_log_prob", "min_k_prob", "self_critique", "zlib_ratio"]

_NORMAL = NormalDist()
_SEARCH = 60
"""Halvings: more than a float64 has bits."""


def self_critique(first: ArrayLike, second: ArrayLike) -> float:
    """How alike a model's entropies run in two answers to an item, where the second was asked to go another way.

    ``cos(e1, e2) * min(|e1|, |e2|) / max(|e1|, |e2|)``, the shorter one padded with zeros for the cosine. Entropies are not
    negative, so it lies in [0, 1]; a model that knows an item by heart answers it the same way again, and scores high. Where one
    is empty, or zero throughout, as an answer without any doubt is, there is no angle, and the score is 0; both zero throughout
    and equally long are the same answer, and score 1.

    Args:
        first, second: ``[T]`` entropies of greedy answers, token by token, nats.

    Raises:
        DataError: an entropy that is negative or not finite.

    Source: Self-Critique (arXiv 2510.09259).

    >>> round(self_critique([1, 2, 2], [1, 2]), 4), self_critique([3, 1], [3, 1]), self_critique([1, 0], [0, 1])
    (0.4969, 1.0, 0.0)
    """
    a, b = _entropies(first), _entropies(second)
    if not len(a) or not len(b):
        return 0.0
    n, longest = min(len(a), len(b)), max(len(a), len(b))
    if not a.any() and not b.any():
        return n / longest
    norm = sqrt(float(a @ a) * float(b @ b))
    return min(1.0, float(a[:n] @ b[:n]) / norm) * n / longest if norm else 0.0


def mean_log_prob(logp: ArrayLike) -> float:
    """Mean log-probability of an item's tokens: minus the logarithm of its perplexity.

    Raises:
        DataError: no token, or a value that is not finite.

    Source: the loss attack of Yeom et al. 2018 (arXiv 1709.01604).

    >>> mean_log_prob([-1.0, -3.0])
    -2.0
    """
    return float(_logps(logp).mean())


def min_k_prob(logp: ArrayLike, share: float = 0.2) -> float:
    """Mean log-probability of the least likely ``share`` of an item's tokens, one at least.

    ``1 / |E| * sum_(t in E) log p(x_t | x_<t)``, ``E`` the ``max(1, floor(share * n))`` least likely of ``n`` tokens.

    Raises:
        ConfigError: a share outside (0, 1].
        DataError: no token, or a value that is not finite.

    Source: Min-K% Prob (arXiv 2310.16789), whose default is 20 %.

    >>> min_k_prob([-1.0, -5.0, -0.5, -2.0], share=0.5)
    -3.5
    """
    if not 0.0 < share <= 1.0:
        raise ConfigError(f"min_k_prob: share={share}; use a share of the tokens in (0, 1]")
    x = np.sort(_logps(logp))
    return float(x[: max(1, int(share * len(x)))].mean())


def zlib_ratio(logp: ArrayLike, text: str) -> float:
    """Log-probability of an item over the bytes that ``zlib`` needs for its text: likely beyond being easily said.

    Args:
        logp: of its tokens.
        text: what they spell.

    Raises:
        DataError: no token, or a value that is not finite.

    Source: Carlini et al. 2021 (arXiv 2012.07805).

    >>> zlib_ratio([-4.0, -6.0], "ab")
    -1.0
    """
    return float(_logps(logp).sum()) / len(zlib.compress(text.encode("utf-8", "surrogatepass")))


def auc(members: ArrayLike, others: ArrayLike, confidence: float = 0.95) -> Interval:
    """The probability that a member's score exceeds another item's, ties counted by half: 1/2 says nothing, 1 tells all apart.

    The interval is DeLong's. It is blind where the two are told apart without an error: at 0 and 1 Newcombe's interval takes
    its place, which depends on the numbers of items alone.

    Args:
        members: ``[m]`` scores of items that the model may have seen.
        others: ``[n]`` scores of items that it has not.
        confidence: nominal coverage.

    Raises:
        DataError: less than two items of either kind, or a score that is not finite.
        ConfigError: ``confidence`` outside (0, 1).

    Sources: DeLong et al. 1988; Newcombe 2006 (method 5).

    >>> str(auc([3, 4, 5, 6], [1, 2, 3, 4]))
    '0.875 [0.630, 1.000]'
    >>> str(auc([3, 4, 5, 6], [1, 2, 2, 1]))
    '1.000 [0.582, 1.000]'
    """
    return mean_auc([(members, others)], confidence)


def mean_auc(pairs: Sequence[tuple[ArrayLike, ArrayLike]], confidence: float = 0.95) -> Interval:
    """The mean of several models' AUCs, each of items of its own, with the interval of `auc`.

    Args:
        pairs: by model the scores of members, and of others.
        confidence: nominal coverage.

    Raises:
        DataError, ConfigError: as `auc`; or no models.

    >>> mean_auc([([3, 4], [1, 2]), ([1, 2], [3, 4])]).value
    0.5
    """
    if not 0.0 < confidence < 1.0:
        raise ConfigError(f"confidence={confidence}; use a number between 0 and 1, for example 0.95")
    if not pairs:
        raise DataError("a mean of AUCs needs the scores of at least one model")
    made = [_delong(_scores(m, "members"), _scores(o, "others")) for m, o in pairs]
    value, variance = float(np.mean([v for v, _ in made])), sum(v for _, v in made) / len(made) ** 2
    m, n = (sum(len(np.asarray(pair[side])) for pair in pairs) for side in (0, 1))
    z = _NORMAL.inv_cdf(0.5 + confidence / 2)
    if variance == 0.0 and value in (0.0, 1.0):
        reach = _newcombe(m, n, z)
        low, high = (1.0 - reach, 1.0) if value else (0.0, reach)
        return Interval(value, low, high, confidence, m + n)
    half = z * sqrt(variance)
    return Interval(value, max(0.0, value - half), min(1.0, value + half), confidence, m + n)


def gap(seen: ArrayLike, fresh: ArrayLike, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Accuracy on items that a model may have seen, minus that on fresh ones of the same kind.

    Interval above 0: what the model is better at is these items, not this kind of item. The two ends add in squares how far
    those of the two means lie off (`mean_interval`), which holds also where all items are solved, or none.

    Args:
        seen, fresh: ``[m]`` and ``[n]``: per item the share of rollouts that pass.
        confidence: nominal coverage.
        seed: of the resampling.

    Raises:
        DataError: no items of either kind, or a value that is not finite.

    Source: Newcombe 1998 (method 10) and its general form, Zou and Donner 2008; fresh items as in RandomCalculation (arXiv
        2507.10532).

    >>> str(gap([1.0] * 20, [1.0] * 10 + [0.0] * 10))
    '0.500 [0.243, 0.700]'
    """
    a, b = mean_interval(seen, confidence, seed), mean_interval(fresh, confidence, seed)
    value = a.value - b.value
    low = value - sqrt((a.value - a.low) ** 2 + (b.high - b.value) ** 2)
    high = value + sqrt((a.high - a.value) ** 2 + (b.value - b.low) ** 2)
    return Interval(value, low, high, confidence, a.n + b.n)


def _delong(members: NDArray[np.float64], others: NDArray[np.float64]) -> tuple[float, float]:
    """AUC and its variance, from the share of the other kind that each item lies above."""
    above = _rank_among(members, others)
    below = 1.0 - _rank_among(others, members)
    return float(above.mean()), float(above.var(ddof=1) / len(members) + below.var(ddof=1) / len(others))


def _rank_among(x: NDArray[np.float64], among: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(among)
    return (np.searchsorted(ordered, x, "left") + np.searchsorted(ordered, x, "right")) / (2 * len(among))


def _newcombe(m: int, n: int, z: float) -> float:
    """How far below 1 the least AUC lies that ``m`` and ``n`` items told apart without an error do not speak against."""

    def variance(area: float) -> float:
        more = (m + n) / 2 - 1
        return area * (1 - area) * (1 + more * ((1 - area) / (2 - area) + area / (1 + area))) / (m * n)

    low, high = 0.5, 1.0
    for _ in range(_SEARCH):
        middle = (low + high) / 2
        if 1 - middle > z * sqrt(variance(middle)):
            low = middle
        else:
            high = middle
    return 1 - low


def _scores(values: ArrayLike, what: str) -> NDArray[np.float64]:
    x = np.asarray(values, np.float64).reshape(-1)
    if len(x) < 2:
        raise DataError(f"an AUC needs at least two {what}, got {len(x)}")
    if not np.isfinite(x).all():
        raise DataError(f"an AUC needs finite scores; {int((~np.isfinite(x)).sum())} of the {len(x)} {what} are not")
    return x


def _entropies(values: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(values, np.float64).reshape(-1)
    if len(x) and not (np.isfinite(x).all() and float(x.min()) >= 0.0):
        raise DataError(f"entropies are finite and not negative; the least of these {len(x)} is {x.min()}")
    return x


def _logps(values: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(values, np.float64).reshape(-1)
    if not len(x) or not np.isfinite(x).all():
        raise DataError(f"log-probabilities of at least one token, all finite, are needed; got {len(x)} values")
    return x
