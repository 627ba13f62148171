"""Forecasts whose outcome is chance: the best answer is right at a known rate, and no answer is right more often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import ascii_letters

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.protocols import Verifier
from assay.core.task import Task
from assay.tasks.draws import TaskCoordinates, checked_levels
from assay.tasks.single import SingleTurn
from assay.verify.exact import ExactMatch

__all__ = ["Urns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Urns(SingleTurn):
    """An urn holds ten balls of two colours, ``U7c3b>``; which colour will be drawn? The level is how many are of the commoner.

    One ball of the ten is drawn, anew for each task of the stream, so that the answer cannot be known: naming the commoner colour
    is right in ``level / 10`` of all tasks, and nothing is right more often. It is for learning and measuring calibration.

    >>> urns = Urns(levels=(7,))
    >>> task = urns.task("urns", 7, "train", 0)
    >>> task.public["prompt"], urns.solve(task.public["prompt"]), task.private["answer"]
    ('U7d3Y>', 'd', 'Y')
    """

    levels: tuple[int, ...] = (5, 7, 9)

    def __post_init__(self) -> None:
        SingleTurn.__post_init__(self)
        checked_levels("Urns", self.levels, 5, 9)

    @property
    def name(self) -> str:
        """``urns``."""
        return "urns"

    @property
    def symbols(self) -> str:
        """The colours: 52 letters."""
        return ascii_letters

    @property
    def alphabet(self) -> str:
        """The colours, digits, ``U`` and ``>``."""
        return self.symbols + "123456789U>"

    def ask(self, level: int, rng: np.random.Generator) -> str:
        """Two colours with their numbers, in any order."""
        colours = [self.symbols[i] for i in rng.choice(len(self.symbols), 2, replace=False)]
        counts = [level, 10 - level] if rng.random() < 0.5 else [10 - level, level]
        return f"U{counts[0]}{colours[0]}{counts[1]}{colours[1]}>"

    def solve(self, prompt: str) -> str:
        """The commoner colour; of two equal ones the first."""
        return prompt[2] if prompt[1] >= prompt[3] else prompt[4]

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """As the base, with an outcome that is drawn.

        Raises:
            UnknownNameError: arm, level or split.
            DataError: the level has no task of that split.
        """
        made = SingleTurn.task(self, arm, level, split, index)
        prompt = made.public["prompt"]
        ball = TaskCoordinates("urns/outcome", arm, level, split, index).generator(self.seed).integers(10)
        outcome = prompt[2] if ball < int(prompt[1]) else prompt[4]
        return replace(made, private=FrozenMap({**made.private, "answer": outcome}))

    def verifier(self) -> Verifier:
        """Exact match with the colour that was drawn."""
        return ExactMatch()
