"""What published methods say a training row is worth, as plain functions of numbers that a run or a probe has measured."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.core.errors import ConfigError, DataError

__all__ = [
    "angle_concentration",
    "central_rows",
    "donod",
    "fill_gaps",
    "gain_shift",
    "gain_weights",
    "history_deviation",
    "influence",
    "learning_impact",
    "topsis",
]

Floats = NDArray[np.float64]


def fill_gaps(history: ArrayLike) -> Floats | None:
    """A history of rewards whose missing epochs (NaN) take the next epoch's value; None where the last is missing.

    >>> fill_gaps([float("nan"), 0.5, 1.0]).tolist()
    [0.5, 0.5, 1.0]
    """
    found = np.array(history, np.float64)
    for k in range(len(found) - 2, -1, -1):
        if np.isnan(found[k]):
            found[k] = found[k + 1]
    return None if not len(found) or np.isnan(found).any() else found


def learning_impact(histories: ArrayLike) -> Floats:
    """LIMR: how closely each row's learning curve follows the average one; 1 where the two are the same.

    ``1 - sum_k (r_ik - m_k)^2 / sum_k (1 - m_k)^2``, with ``m_k`` the mean over rows. A row that is always solved scores 0.

    Args:
        histories: ``[rows, epochs]`` mean rewards in [0, 1].

    Returns:
        ``[rows]``, at most 1; all 0 where every row was always solved.

    Source: LIMR (arXiv 2502.11886).

    >>> learning_impact([[0, 0.5, 1], [1, 1, 1], [0, 0, 0]]).round(4).tolist()
    [0.7241, 0.0, 0.0]
    """
    r = _matrix("learning_impact", histories)
    mean = r.mean(0)
    scale = float(np.square(1 - mean).sum())
    return np.zeros(len(r)) if scale == 0 else 1 - np.square(r - mean).sum(1) / scale


def history_deviation(histories: ArrayLike) -> Floats:
    """One-shot RLVR: standard deviation of each row's accuracy over a run (of the population, not a sample).

    Args:
        histories: ``[rows, epochs]``.

    Source: arXiv 2504.20571; its variance gives the same ranking.

    >>> history_deviation([[0, 1, 0, 1], [0.4, 0.6, 0.4, 0.6], [1, 1, 1, 1]]).round(6).tolist()
    [0.5, 0.1, 0.0]
    """
    return _matrix("history_deviation", histories).std(1)


def angle_concentration(question: ArrayLike, before: ArrayLike | None = None, factor: float = 8.0) -> float:
    """GAIN-RL: how much the token vectors of a question point one way; larger is learned sooner.

    ``C_intra + factor * C_inter``: the mean cosine among the question's tokens (each with itself included), and that between them
    and the tokens before (system prompt, examples). Without tokens before, ``C_intra`` alone.

    Args:
        question: ``[tokens, width]`` vectors that enter the last layer's MLP.
        before: ``[tokens, width]`` of what stands before the question.
        factor: weight of the second mean.

    Raises:
        DataError: no tokens, or a vector of length 0.

    Source: GAIN-RL (arXiv 2506.02281), block means as meant. UNSURE: whether the paper's factor is its code's 8.

    >>> angle_concentration([[1, 0], [0, 2]]), angle_concentration([[1, 0]], [[0, 1], [3, 0]])
    (0.5, 5.0)
    """
    q = _directions(question)
    intra = float((q @ q.T).mean())
    if before is None or not len(np.asarray(before)):
        return intra
    return intra + factor * float((q @ _directions(before).T).mean())


def gain_shift(
    accuracy: float, signal: float, *, step: float = 500.0, sharpness: float = 2.0, target: float = 0.5, most: float = 1000.0
) -> float:
    """GAIN-RL: how far the centre of its curriculum moves after an epoch, in ranks; never back.

    ``clamp(step * tanh(sharpness * (accuracy - target)) + step * tanh(sharpness * signal), 0, most)``

    Args:
        accuracy: of the epoch, in [0, 1].
        signal: its mean angle signal.
        step, sharpness, target, most: the constants ``n_0``, ``alpha``, ``beta`` and the clamp.

    >>> round(gain_shift(1.0, 0.0), 2), round(gain_shift(0.5, 0.1), 2), gain_shift(0.0, 0.1)
    (380.8, 98.69, 0.0)
    """
    moved = step * np.tanh(sharpness * (accuracy - target)) + step * np.tanh(sharpness * signal)
    return float(np.clip(moved, 0.0, most))


def gain_weights(count: int, centre: float, width: float = 1000.0) -> Floats:
    """GAIN-RL: probability of drawing the row at each rank, a bell around ``centre``.

    Returns:
        ``[count]``, sums to 1.

    >>> gain_weights(3, 1.0, width=1.0).round(4).tolist()
    [0.2741, 0.4519, 0.2741]
    """
    if count < 1 or width <= 0:
        raise ConfigError(f"gain_weights: count={count}, width={width}; both are above 0")
    exponent = -0.5 * np.square((np.arange(count) - centre) / width)
    weights = np.exp(exponent - exponent.max())
    return weights / weights.sum()


def central_rows(scores: ArrayLike, low: float = 0.25, high: float = 0.75) -> NDArray[np.bool_]:
    """Rubicon: which rows are neither too easy nor too hard, by the score that a critic gives to a base model's answers.

    A row is kept where its score lies between two quantiles of all scores, both ends included.

    Args:
        scores: ``[rows]``; NaN where the critic gave none: such a row is left out, and counts for no quantile.
        low, high: the quantiles.

    Returns:
        ``[rows]``.

    Raises:
        ConfigError: quantiles out of range or order.
        DataError: no row has a score.

    Source: Rubicon (arXiv 2508.12790), which speaks of a central quantile. UNSURE: its bounds.

    >>> central_rows([0.1, 0.9, 0.4, 0.5, 0.6]).tolist()
    [False, False, True, True, True]
    """
    if not 0.0 <= low < high <= 1.0:
        raise ConfigError(f"central_rows: low={low}, high={high}; use 0 <= low < high <= 1")
    found = np.asarray(scores, np.float64)
    known = found[~np.isnan(found)]
    if not len(known):
        raise DataError(f"central_rows: none of {len(found)} rows has a score; let a critic judge a base model's answers first")
    least, most = np.quantile(known, (low, high))
    return (found >= least) & (found <= most)  # a comparison with NaN is False


def donod(before: ArrayLike, after: ArrayLike) -> tuple[float, float]:
    """DONOD: what one update on a row does to a block of weights: change of its norm, and norm of its change.

    Args:
        before, after: the weights ``W`` and ``W'``, of any one shape.

    Returns:
        ``(|W'| - |W|, |W' - W|)``, Frobenius norms; the first is never larger than the second in size.

    Source: DONOD (arXiv 2504.14810).

    >>> [round(x, 4) for x in donod([3, 4], [3, 5])]
    [0.831, 1.0]
    """
    w, v = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if w.shape != v.shape:
        raise DataError(f"donod: weights of shape {w.shape} before and {v.shape} after; give one block twice")
    return float(np.linalg.norm(v) - np.linalg.norm(w)), float(np.linalg.norm(v - w))


def topsis(criteria: ArrayLike, better: tuple[Literal["low", "high"], ...]) -> Floats:
    """Closeness of each row to the best value of every criterion at once, in [0, 1]; 1 is best in all.

    Criteria are divided by their norms; ``D- / (D+ + D-)`` with the distances to the point that is best in all and to that which
    is worst. Where all rows are alike every one scores 1.

    Args:
        criteria: ``[rows, criteria]``.
        better: for each criterion which end is better.

    Source: Hwang and Yoon 1981, as DONOD uses it. UNSURE: DONOD's directions and weights (here equal).

    >>> topsis([[0.0, 1.0], [1.0, 2.0]], ("low", "low")).tolist()
    [1.0, 0.0]
    """
    x = _matrix("topsis", criteria)
    if x.shape[1] != len(better) or set(better) - {"low", "high"}:
        raise ConfigError(f"topsis: better={better} for {x.shape[1]} criteria; give 'low' or 'high' for each")
    norms = np.linalg.norm(x, axis=0)
    x = x / np.where(norms == 0, 1, norms) * np.where(np.array(better) == "high", 1.0, -1.0)
    good, bad = np.linalg.norm(x - x.max(0), axis=1), np.linalg.norm(x - x.min(0), axis=1)
    return np.where(good + bad == 0, 1.0, bad / np.where(good + bad == 0, 1, good + bad))


def influence(gradients: ArrayLike, validation: ArrayLike) -> Floats:
    """How much a step on each row would raise the likelihood of a validation set: ``<g(z), mean g_val>``.

    Args:
        gradients: ``[rows, width]`` gradients of the log-likelihood, projected or not.
        validation: ``[items, width]`` those of the validation items.

    Returns:
        ``[rows]``.

    Source: influence functions of first order, as Vision-G1 (arXiv 2508.12680) selects data. UNSURE: its estimator.

    >>> influence([[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [3.0, 1.0]]).tolist()
    [2.0, 2.0]
    """
    g, v = _matrix("influence", gradients), _matrix("influence", validation)
    if g.shape[1] != v.shape[1]:
        raise DataError(f"influence: gradients of width {g.shape[1]} and {v.shape[1]}; project both alike")
    return g @ v.mean(0)


def _matrix(name: str, values: ArrayLike) -> Floats:
    found = np.asarray(values, np.float64)
    if found.ndim != 2 or not found.shape[1] or not len(found):
        raise DataError(f"{name}: numbers of shape {found.shape}; give a table, a row each")
    return found


def _directions(vectors: ArrayLike) -> Floats:
    found = _matrix("angle_concentration", vectors)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    if not lengths.all():
        raise DataError("angle_concentration: a token's vector has length 0, so it points nowhere")
    return found / lengths
