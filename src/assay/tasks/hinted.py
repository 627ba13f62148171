"""Tasks with the first part of their solution behind the prompt: what a base learns to read hints from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.core.canon import FrozenMap, plain
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Environment, TaskSource, Verifier
from assay.core.seeds import derive, uniforms
from assay.core.task import Message, Task, TaskView

__all__ = ["WithHints"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WithHints:
    """The tasks of another family, posed with the first part of their solution behind the prompt.

    For the warm-up of a base that is to read hints, and to judge whether a model reads them. Levels up to ``known`` have a hint
    of random length or none; on levels above it every task has one, of a share of the solution within ``beyond``: with 1 a
    demonstration shows how to follow a hint, with less also how to finish from it, and never how to solve the task alone. The
    split of a task is the family's own.

    Attributes:
        tasks: the family; its solutions are text.
        known: highest level that is shown without a hint, or with part of one.
        probability: of a hint there; its length is drawn evenly from 1 character to all of the solution.
        beyond: ``(low, high)``, shares of the solution between which hints above ``known`` are drawn evenly.
        share: of the solution that every hint is, on all levels; None for the above.
        mark: between prompt and hint.

    Raises:
        ConfigError: a probability or share outside [0, 1].

    >>> from assay_tasks.small.logic import Gates
    >>> source = WithHints(tasks=Gates(levels=(2, 9)), known=2)
    >>> task = source.task("gates", 9, "train", 0)
    >>> task.public["prompt"].endswith(">" + task.private["solution"])
    True
    """

    tasks: TaskSource
    known: int
    probability: float = 0.5
    beyond: tuple[float, float] = (1.0, 1.0)
    share: float | None = None
    mark: str = ""

    def __post_init__(self) -> None:
        low, high = self.beyond
        for name, value in (("probability", self.probability), ("share", self.share), ("beyond", low), ("beyond", high)):
            if (value is not None and not 0.0 <= value <= 1.0) or low > high:
                raise ConfigError(
                    f"WithHints.{name}={getattr(self, name)} must be in [0, 1], and of two shares the first the lower"
                )

    @property
    def name(self) -> str:
        """The family's."""
        return self.tasks.name

    @property
    def test_share(self) -> float:
        """Share of contents that belong to the test split."""
        return float(getattr(self.tasks, "test_share", 0.1))

    @property
    def alphabet(self) -> str:
        """Every character that prompts and answers use, sorted; empty where the family names none."""
        own: str = getattr(self.tasks, "alphabet", "")
        return "".join(sorted({*own, *self.mark})) if own else ""

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """The family's."""
        return self.tasks.arms()

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The family's task, with or without a hint behind its prompt.

        Raises:
            UnknownNameError: arm, level or split.
            DataError: the level has no task of that split, or the task no prompt or no solution that is text.
        """
        made = self.tasks.task(arm, level, split, index)
        solution = made.private.get("solution")
        if not isinstance(solution, str) or "prompt" not in made.public:
            raise DataError(f"task {made.id!r}: WithHints needs public['prompt'] and text in private['solution']")
        hint = solution[: self._length(made, len(solution))]
        if not hint:
            return made
        public: dict[str, Any] = plain(made.public)
        return replace(
            made, public=FrozenMap({**public, "prompt": f"{public['prompt']}{self.mark}{hint}", "facts": made.question})
        )

    def _length(self, task: Task, whole: int) -> int:
        """Characters of the hint."""
        if self.share is not None:
            return int(self.share * whole + 0.5)
        chance, where = uniforms(np.array([derive("hints", 0, "", task.id)], np.uint64), 0, 2)[0]
        if task.level > self.known:
            low, high = self.beyond
            return int((low + (high - low) * float(where)) * whole + 0.5)
        return 1 + int(float(where) * whole) if chance < self.probability else 0

    def verifier(self) -> Verifier:
        """The family's."""
        return self.tasks.verifier()

    def environment(self, world: TaskView) -> Environment | None:
        """The family's."""
        return self.tasks.environment(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        """The family's."""
        return self.tasks.trace(task, noise, rng)
