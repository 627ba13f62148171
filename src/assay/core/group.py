"""Rollouts that share a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import DataError
from assay.core.rollout import Rollout
from assay.core.score import LEARNED, Score
from assay.core.task import Task

__all__ = ["Draw", "Group", "Outcome"]


@dataclass(frozen=True, slots=True)
class Draw:
    """What a curriculum chose.

    Attributes:
        arm, level: which stream of tasks.
        propensity: the probability with which all of this was chosen, the index too where it is named.
        index: which task of the stream; None leaves it to the stage's `assay.core.protocols.IndexPolicy`.

    >>> Draw("sort", 4, 0.25), Draw("sort", 4, 0.01, index=7).index
    (Draw(arm='sort', level=4, propensity=0.25, index=None), 7)
    """

    arm: str
    level: int
    propensity: float
    index: int | None = None


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
        """Whether valid rollouts differ in what is learned from: a group baseline leaves a signal.

        That is the primary metric unless a verdict says otherwise (`LEARNED`).
        """
        valid = [s for s in self.scores if s.valid]
        paid = next((s.info[LEARNED] for s in valid if LEARNED in s.info), None)
        return len({s.components.get(paid, s.primary) for s in valid} if paid else set(self.values)) > 1

    @property
    def row(self) -> tuple[str, int, int]:
        """Arm, level and index of the task: which row of the data it is."""
        return self.task.arm, self.task.level, self.task.index


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What became of a graded group in a step: what curricula and guidance observe.

    Attributes:
        group: all of its rollouts, as they were graded.
        advantages: ``[rollouts]`` float64, after credit; NaN where a rollout was not learned from. None where no rollout of the
            group was, or where the objective has no advantages.
        kept: whether a rollout of the group stands in the step's batch.

    Raises:
        DataError: another number of advantages than of rollouts.
    """

    group: Group
    advantages: NDArray[np.float64] | None = None
    kept: bool = False

    def __post_init__(self) -> None:
        if self.advantages is not None and self.advantages.shape != (len(self.group.rollouts),):
            raise DataError(
                f"group {self.group.key}: advantages of shape {self.advantages.shape} for {len(self.group.rollouts)} rollouts"
            )

    @property
    def magnitudes(self) -> tuple[float, ...]:
        """Absolute advantages of the rollouts learned from. Where a group was left out because its rollouts are all alike, a
        baseline would have left 0 of each; where it was left out otherwise, nothing is known and nothing is told.
        """
        if self.advantages is not None:
            return tuple(np.abs(self.advantages[np.isfinite(self.advantages)]).tolist())
        return () if self.group.informative else (0.0,) * len(self.group.values)
