"""A family whose tasks are one question and one answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.protocols import Environment, Verifier
from assay.core.task import Message, Task, TaskView
from assay.tasks.draws import TaskCoordinates, checked_levels, redraw, slip

__all__ = ["SingleTurn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleTurn(ABC):
    """Base of generated question-and-answer families: one arm, named like the family.

    A family says what it is called, which characters it uses, how a prompt of a level is drawn, how it is solved, and what
    verifies an
    answer: ``name``, ``alphabet``, ``symbols``, ``ask``, ``solve``, ``verifier``. Where many answers are right, ``gold`` is
    what the verifier needs instead of one.

    Attributes:
        levels: difficulties offered, ascending.
        seed: chooses another stream of tasks.
        test_share: share of contents that belong to the test split.

    Raises:
        ConfigError: levels that the family cannot make, or a share outside (0, 1).
    """

    levels: tuple[int, ...] = (1,)
    seed: int = 0
    test_share: float = 0.1

    def __post_init__(self) -> None:
        checked_levels(type(self).__name__, self.levels, 1, 1000)
        if not 0.0 < self.test_share < 1.0:
            raise ConfigError(f"{type(self).__name__}.test_share must be between 0 and 1, got {self.test_share}")

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the family and of its only arm."""
        ...

    @property
    @abstractmethod
    def symbols(self) -> str:
        """Characters that answers are made of; noise draws from them."""
        ...

    @property
    @abstractmethod
    def alphabet(self) -> str:
        """Every character that prompts and answers use: what a character tokenizer must know."""
        ...

    @abstractmethod
    def ask(self, level: int, rng: np.random.Generator) -> str:
        """A prompt of a level."""
        ...

    @abstractmethod
    def solve(self, prompt: str) -> str:
        """The right answer to a prompt."""
        ...

    @abstractmethod
    def verifier(self) -> Verifier:
        """The scorer of the family."""
        ...

    @property
    def domain(self) -> str:
        """What the tasks are about; by default the family's name."""
        return self.name

    def effort(self, prompt: str) -> int:
        """Steps that a plain solver takes; by default the symbols that it writes."""
        return len(self.solve(prompt))

    def gold(self, prompt: str) -> str | FrozenMap:
        """What the verifier compares with; by default the one right answer."""
        return self.solve(prompt)

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """The family's one arm with its levels."""
        return {self.name: self.levels}

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The ``index``-th task of a stream; a pure function of the settings and these four.

        Raises:
            UnknownNameError: arm, level or split.
            DataError: the level has no task of that split.
        """
        place = TaskCoordinates(self.name, arm, level, split, index)
        place.check(self)
        rng = place.generator(self.seed)
        public = redraw(place, lambda: FrozenMap({"prompt": self.ask(level, rng)}), self.test_share)
        prompt: str = public["prompt"]
        private = FrozenMap({"answer": self.gold(prompt), "solution": self.solve(prompt), "effort": self.effort(prompt)})
        return Task(
            id=place.id, domain=self.domain, arm=arm, level=level, split=split, index=index, public=public, private=private
        )

    def environment(self, world: TaskView) -> Environment | None:
        """None: one answer ends the task."""
        return None

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The answer, with a slip (`assay.tasks.slip`) at probability ``noise``."""
        return (Message("assistant", slip(task.private["solution"], noise, self.symbols, rng)),)
