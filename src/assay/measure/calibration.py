"""Whether stated confidences fit how often answers are right: Brier score, expected calibration error, AUROC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.core.errors import DataError

__all__ = ["Calibration", "auroc", "brier_score", "calibration_error", "calibration_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How well confidences fit correctness.

    Attributes:
        answers: that stated a confidence.
        stated: their share of all answers.
        confidence: mean of what they stated.
        accuracy: share of them that is right.
        ece: `calibration_error`, 10 bins.
        brier: `brier_score`.
        auroc: `auroc`; None where all are right, or none.
    """

    answers: int
    stated: float
    confidence: float
    accuracy: float
    ece: float
    brier: float
    auroc: float | None


def brier_score(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Mean of ``(q - c)^2``: 0 is best, 0.25 that of a constant 0.5.

    Args:
        confidence: ``[n]`` in [0, 1].
        correct: ``[n]`` in [0, 1].

    Raises:
        DataError: no answers, different numbers of them, or a value outside [0, 1].

    >>> round(brier_score([0.95, 0.95, 0.15, 0.15], [1, 0, 0, 1]), 4)
    0.4125
    """
    q, c = _check_pairs(confidence, correct)
    return float(np.mean((q - c) ** 2))


def calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 10) -> float:
    """Expected calibration error: ``sum_b n_b / n |mean c in b - mean q in b|`` over bins of equal width, a bin with its upper
    end.

    With few answers in a bin it is above 0 by chance alone, about ``sqrt(p (1 - p) / n_b)``: compare runs at equal numbers.

    Raises:
        DataError: as `brier_score`, or no bins.

    >>> round(calibration_error([0.95, 0.95, 0.15, 0.15], [1, 0, 0, 1]), 4)
    0.4
    """
    q, c = _check_pairs(confidence, correct)
    if bins < 1:
        raise DataError(f"calibration_error(bins={bins}); use at least 1 bin")
    # rounded, or 0.7 * 10 = 7.000000000000001 would put 0.7 among the confidences above it
    where = np.clip(np.ceil(np.round(q * bins, 9)) - 1, 0, bins - 1).astype(np.int64)
    gap = np.bincount(where, weights=c - q, minlength=bins)
    return float(np.abs(gap).sum() / len(q))


def auroc(confidence: ArrayLike, correct: ArrayLike) -> float | None:
    """Probability that a right answer states more confidence than a wrong one, ties counted half; None without both kinds.

    Raises:
        DataError: as `brier_score`, or an answer that is neither right (1) nor wrong (0).

    >>> auroc([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
    0.875
    """
    q, c = _check_pairs(confidence, correct)
    if not np.isin(c, (0.0, 1.0)).all():
        raise DataError("auroc needs answers that are right (1) or wrong (0); apply a threshold first")
    right, wrong = q[c == 1.0], np.sort(q[c == 0.0])
    if not len(right) or not len(wrong):
        return None
    below, upto = np.searchsorted(wrong, right, "left"), np.searchsorted(wrong, right, "right")
    return float((below + upto).mean() / 2.0 / len(wrong))


def calibration_of(items: Iterable[Mapping[str, Any]], threshold: float = 1.0) -> Calibration | None:
    """Of the items of an evaluation whose answers state confidences (field ``confidence``); None where none does.

    Args:
        items: as in ``evals.jsonl``: ``values``, and ``confidence`` for the same answers, None where one states none.
        threshold: an answer is right when its value reaches it.

    >>> found = calibration_of([{"values": [1, 0], "confidence": [0.9, None]}, {"values": [0], "confidence": [0.2]}])
    >>> found.answers, round(found.stated, 2), found.accuracy, found.auroc
    (2, 0.67, 0.5, 1.0)
    """
    q: list[float] = []
    c: list[float] = []
    total = 0
    for item in items:
        values: Sequence[float] = item["values"]
        said: Sequence[float | None] = item.get("confidence") or [None] * len(values)
        total += len(values)
        for value, stated in zip(values, said, strict=True):
            if stated is not None:
                q.append(stated)
                c.append(float(value >= threshold))
    if not q:
        return None
    return Calibration(
        answers=len(q),
        stated=len(q) / total,
        confidence=float(np.mean(q)),
        accuracy=float(np.mean(c)),
        ece=calibration_error(q, c),
        brier=brier_score(q, c),
        auroc=auroc(q, c),
    )


def _check_pairs(confidence: ArrayLike, correct: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    q, c = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    if q.ndim != 1 or q.shape != c.shape or not len(q):
        raise DataError(f"{q.shape} confidences and {c.shape} verdicts; give one of each per answer, and at least one")
    if not (((q >= 0) & (q <= 1)).all() and ((c >= 0) & (c <= 1)).all()):
        raise DataError("a confidence or a verdict lies outside [0, 1]")
    return q, c
