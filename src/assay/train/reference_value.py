"""What the reference would be paid at a prompt: a column that its methods subtract from the reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.train.columns import Live, Moment, with_values

__all__ = ["ReferenceValue"]

F = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceValue:
    """What the reference would be paid at the prompt: ``E R`` (A-LoL's ``V_ref``), or ``b log E exp(R / b)`` (A*-PO's ``V*``).

    Estimated from the group's own rollouts, each weighted by ``pi_ref / pi`` of its tokens (self-normalised importance
    sampling): exact on average while policy and reference are alike, noisier the further they part. ``R`` is the primary metric.

    Attributes:
        name: ``value_ref`` or ``optimal_value``, or a column of your own.
        temperature: ``b``; 0 for the plain mean.
        solved: (level, accuracy) of the reference where it was measured: then nothing is estimated, and rewards are 0 and 1.
        model: name of the reference among the learner's anchors.

    Raises:
        ConfigError: a negative temperature.
    """

    name: str = "value_ref"
    temperature: float = 0.0
    solved: tuple[tuple[int, float], ...] = ()
    model: str = "ref"
    moment: ClassVar[Moment] = "group"

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise ConfigError(f"ReferenceValue.temperature={self.temperature}; use 0 for the mean, or a number above 0")

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """One number for all rollouts of a group; 0 where none is valid."""
        found = [self._measure_group(g) for g in rows] if self.solved else self._estimate_values(live, rows)
        return [with_values(g, self.name, [v] * len(g.scores)) for g, v in zip(rows, found, strict=True)]

    def _measure_group(self, group: Group) -> float:
        known = dict(self.solved)
        if group.task.level not in known:
            raise ConfigError(f"{self}: solved has levels {sorted(known)}, and a task is of level {group.task.level}; add it")
        share = known[group.task.level]
        b = self.temperature
        return float(b * np.log1p(share * np.expm1(1.0 / b))) if b else share

    def _estimate_values(self, live: Live, rows: Sequence[Group]) -> list[float]:
        calls = [(i, j, c) for i, g in enumerate(rows) for j, r in enumerate(g.rollouts) for c in r.calls]
        shift = [np.zeros(len(g.rollouts)) for g in rows]
        ratios = zip(
            live.logprobs([c.tokens for _, _, c in calls], self.model),
            live.logprobs([c.tokens for _, _, c in calls]),
            strict=True,
        )
        for (i, j, call), (ref, now) in zip(calls, ratios, strict=True):
            shift[i][j] += float((ref - now)[len(call.prefix) :].sum(dtype=np.float64))
        return [self._value(g, w) for g, w in zip(rows, shift, strict=True)]

    def _value(self, group: Group, log_weight: F) -> float:
        valid = [i for i, x in enumerate(group.scores) if x.valid]
        if not valid:
            return 0.0
        weight = np.exp(log_weight[valid] - log_weight[valid].max())
        reward = np.array([group.scores[i].primary for i in valid])
        b, share = self.temperature, weight / weight.sum()
        if not b:
            return float(share @ reward)
        top = float(reward.max())  # the largest exponent is 0, so that none overflows
        return top + b * float(np.log(share @ np.exp((reward - top) / b)))
