"""Rollouts that share a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from assay.core.errors import DataError
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task

__all__ = ["Draw", "Group"]


@dataclass(frozen=True, slots=True)
class Draw:
    """What a curriculum chose: arm, level, and the probability with which it chose them."""

    arm: str
    level: int
    propensity: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Graded rollouts with one ``group_key``.

    Attributes:
        key: the unit of baselines.
        task: the problem, with its private part.
        draw: how it was chosen.
        rollouts, scores: same length, same order.
    """

    key: str
    task: Task
    draw: Draw
    rollouts: tuple[Rollout, ...]
    scores: tuple[Score, ...]

    def __post_init__(self) -> None:
        if len(self.rollouts) != len(self.scores):
            raise DataError(f"group {self.key}: {len(self.rollouts)} rollouts but {len(self.scores)} scores")
        strangers = {r.context.group for r in self.rollouts} - {self.key}
        if strangers:
            raise DataError(f"group {self.key} holds rollouts of groups {sorted(strangers)}")

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Primary metric of the valid rollouts."""
        return tuple([s.primary for s in self.scores if s.valid])

    @cached_property
    def success(self) -> float | None:
        """Mean over valid rollouts of the primary metric, each clipped to [0, 1]; None when none is valid."""
        values = [min(1.0, max(0.0, v)) for v in self.values]
        return sum(values) / len(values) if values else None

    @property
    def informative(self) -> bool:
        """Whether valid rollouts differ in their primary metric: a group baseline leaves a signal."""
        return len(set(self.values)) > 1
