"""How good the answer is that a selector takes among k: best-of-k by a reward model, a judge or a rule, beside pass@k.

pass@k is what a perfect selector would reach. A selector that is used where no verifier is reaches less, and may reach less with
more answers: it also takes more often what it overrates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import comb
from typing import Any

import numpy as np

from assay.core.errors import DataError
from assay.measure.intervals import Interval, mean_interval

__all__ = ["SelectedAccuracy", "selected_of_k", "selected_accuracy"]


def selected_of_k(values: Sequence[float], scores: Sequence[float], k: int) -> float:
    """Expected value of the answer with the highest score among k chosen without replacement; ties are broken evenly.

    ``sum over distinct scores s of P(s is the highest) * mean value of the answers with score s``, where ``P`` is
    ``(C(answers up to s, k) - C(answers below s, k)) / C(n, k)``: exact over all k-subsets, so unbiased, and without a draw. It
    is `assay.measure.best_of_k` where the scores are the values, and the mean at ``k = 1``.

    Args:
        values: ``n`` of them, of the answers.
        scores: ``n`` of them, that the selector gives to the same answers; finite.
        k: answers it chooses from.

    Raises:
        DataError: lengths differ, a score is not finite, or ``k`` outside ``[1, n]``.

    >>> selected_of_k([1.0, 0.0, 0.0], [0.2, 0.9, 0.1], 2)  # the first wins against the third alone
    0.3333333333333333
    """
    if len(values) != len(scores):
        raise DataError(f"selected@{k}: {len(values)} values but {len(scores)} scores; give one of each per answer")
    if wrong := [s for s in scores if not math.isfinite(s)]:
        raise DataError(f"selected@{k}: a score is {wrong[0]}, and cannot be compared; leave that answer out")
    if not 1 <= k <= len(values):
        raise DataError(f"selected@{k} needs k from 1 to the {len(values)} answers there are: sample more or lower k")
    below, total = 0, 0.0
    for _, tied in groupby(sorted(zip(scores, values, strict=True), key=lambda pair: pair[0]), key=lambda pair: pair[0]):
        worth = [value for _, value in tied]
        total += (comb(below + len(worth), k) - comb(below, k)) * sum(worth) / len(worth)
        below += len(worth)
    return total / comb(len(values), k)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedAccuracy:
    """What a selector reaches on an evaluation.

    Attributes:
        selector: its name.
        metrics: ``selected@k`` to the share of tasks whose selected answer passes, with its interval over tasks; k is 1 and the
            powers of two up to the fewest scored answers of a task.
        tasks: that have a scored answer.
        unscored: answers that the selector failed on: they are left out, and never count as worst.
    """

    selector: str
    metrics: Mapping[str, Interval]
    tasks: int
    unscored: int


def selected_accuracy(
    items: Sequence[Mapping[str, Any]], selector: str, threshold: float = 1.0, seed: int = 0
) -> SelectedAccuracy:
    """What a selector reaches on the items of an evaluation.

    Args:
        items: as `assay.train.Policy.evaluate` gives with ``best_by``: ``values``, and ``selector`` for the same answers, None
            where the selector failed.
        selector: its name.
        threshold: an answer passes when its value reaches it.
        seed: of the bootstrap.

    Raises:
        DataError: an item without ``selector``, or no answer with a score.

    >>> found = selected_accuracy([{"id": "a", "values": [1, 0, 0], "selector": [0.2, 0.9, None]}], "length")
    >>> found.metrics["selected@1"].value, found.metrics["selected@2"].value, found.unscored
    (0.5, 0.0, 1)
    """
    scored: list[tuple[list[float], list[float]]] = []
    unscored = 0
    for item in items:
        if len(item.get("selector", ())) != len(item["values"]):
            raise DataError(f"evaluation item {item['id']!r}: give 'selector', a score or None for each of its values")
        pairs = [
            (float(v >= threshold), float(s)) for v, s in zip(item["values"], item["selector"], strict=True) if s is not None
        ]
        unscored += len(item["values"]) - len(pairs)
        if pairs:
            scored.append(([v for v, _ in pairs], [s for _, s in pairs]))
    if not scored:
        raise DataError(f"the selector {selector} gave no answer a score: try it on one with 'assay verify run'")
    ks = [2**p for p in range(min(len(values) for values, _ in scored).bit_length())]
    metrics = {f"selected@{k}": mean_interval(np.array([selected_of_k(v, s, k) for v, s in scored]), seed=seed) for k in ks}
    return SelectedAccuracy(selector=selector, metrics=metrics, tasks=len(scored), unscored=unscored)
