"""Rewards that must not teach: the controls of a learning claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.errors import UnknownNameError
from assay.core.protocols import Environment, TaskSource, Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.seeds import derive, generator
from assay.core.task import Message, Task, TaskView

__all__ = ["FormatOnly", "Inverted", "OtherSolutions", "RandomReward", "Rewarded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewarded:
    """A task family under another reward; everything else is the family's own."""

    source: TaskSource
    scorer: Verifier

    @property
    def name(self) -> str:
        """The family's name."""
        return self.source.name

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """The family's arms."""
        return self.source.arms()

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The family's task."""
        return self.source.task(arm, level, split, index)

    def verifier(self) -> Verifier:
        """The other reward."""
        return self.scorer

    def environment(self, world: TaskView) -> Environment | None:
        """The family's environment."""
        return self.source.environment(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        """The family's oracle."""
        return self.source.trace(task, noise, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSolutions:
    """A task family whose tasks bring a wrong solution, and the right answer for the verifier: a control of hints and prefixes.

    Attributes:
        source: the family; its ``private["answer"]`` is what the verifier reads.
        how: ``other``: the solution of the next task of the stream; ``shuffled``: its own characters in another order.

    Raises:
        UnknownNameError: another way.

    >>> from assay_tasks import SortDigits
    >>> task = OtherSolutions(source=SortDigits(), how="shuffled").task("sort", 5, "train", 0)
    >>> sorted(task.private["solution"]) == sorted(task.private["answer"])
    True
    """

    source: TaskSource
    how: str = "other"

    def __post_init__(self) -> None:
        if self.how not in ("other", "shuffled"):
            raise UnknownNameError("wrong solution", self.how, ("other", "shuffled"))

    @property
    def name(self) -> str:
        """The family's name."""
        return self.source.name

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """The family's arms."""
        return self.source.arms()

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The family's task with a wrong solution."""
        own = self.source.task(arm, level, split, index)
        if self.how == "other":
            wrong = self.source.task(arm, level, split, index + 1).private["solution"]
        else:
            order = generator("other-solutions", 0, own.id).permutation(len(own.private["solution"]))
            wrong = "".join(own.private["solution"][i] for i in order)
        return replace(own, private=FrozenMap({**own.private, "solution": wrong}))

    def verifier(self) -> Verifier:
        """The family's."""
        return self.source.verifier()

    def environment(self, world: TaskView) -> Environment | None:
        """The family's environment."""
        return self.source.environment(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        """The family's oracle, asked about the task as the family has it."""
        return self.source.trace(self.source.task(task.arm, task.level, task.split, task.index), noise, rng)


@dataclass(frozen=True, slots=True)
class RandomReward:
    """1 with probability one half, whatever was answered; a pure function of the rollout's id."""

    seed: int = 0

    @property
    def trusted(self) -> bool:
        """Runs in process."""
        return True

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Heads or tails."""
        return Score(components={"correct": float(derive("random-reward", self.seed, "", rollout.id) & 1)})


@dataclass(frozen=True, slots=True)
class FormatOnly:
    """Pays the family's ``format`` component as if it were the answer."""

    inner: Verifier

    @property
    def trusted(self) -> bool:
        """Runs in process."""
        return True

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """The format, called correct."""
        return Score(components={"correct": self.inner(task, rollout).components["format"]})


@dataclass(frozen=True, slots=True)
class Inverted:
    """Pays what the family's verifier does not: 1 for a wrong answer, 0 for a right one."""

    inner: Verifier

    @property
    def trusted(self) -> bool:
        """Runs in process."""
        return True

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """One minus the truth."""
        return Score(components={"correct": 1.0 - self.inner(task, rollout).primary})
