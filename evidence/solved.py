"""A family with its own answers before some of its prompts: what a base must have read to be its own teacher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from assay.core import Environment, Message, Task, TaskSource, TaskView, Verifier, derive

__all__ = ["Solved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """A task family in whose prompts the solution stands, as a privileged teacher reads it (`assay.guide.Privileged`).

    Attributes:
        source: the family, with one user turn and an ``answer``.
        plain: levels of which every second task, by a hash of its content, is left as it is; in the others all hold the solution.
        text: the turn; ``{prompt}`` and ``{solution}`` stand for those of the task.

    >>> from assay_tasks import SortDigits
    >>> Solved(source=SortDigits()).task("sort", 3, "train", 0).public["prompt"]
    '004;S400>'
    """

    source: TaskSource
    plain: tuple[int, ...] = ()
    text: str = "{solution};{prompt}"

    @property
    def name(self) -> str:
        """The family's name."""
        return self.source.name

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """The family's arms."""
        return self.source.arms()

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The family's task, of the same split, with its solution."""
        task = self.source.task(arm, level, split, index)
        if level in self.plain and derive("solved", 0, split, task.content) & 1:
            return task
        prompt = self.text.format(prompt=task.public["prompt"], solution=task.private["answer"])
        return replace(task, id=f"{task.id}-solved", public=type(task.public)({**task.public, "prompt": prompt}))

    def verifier(self) -> Verifier:
        """The family's verifier."""
        return self.source.verifier()

    def environment(self, world: TaskView) -> Environment | None:
        """The family's environment."""
        return self.source.environment(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        """The family's oracle, asked without the solution."""
        return self.source.trace(self.source.task(task.arm, task.level, task.split, task.index), noise, rng)
