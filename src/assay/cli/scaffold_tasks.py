"""Modules and tests of the task families that ``assay init`` writes: single answers, and several turns."""

from __future__ import annotations

from assay.cli.scaffold_recipe import IMPORTS, RUN

__all__ = ["ENVIRONMENT", "ENVIRONMENT_TEST", "TASK", "TASK_TEST"]

TASK = (
    '''"""@about@"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core.protocols import Verifier
'''
    + IMPORTS.replace("from assay.train", "from assay.tasks import SingleTurn\nfrom assay.train")
    + '''from assay.verify import ExactMatch

FAMILIES = {"@name@": "@module@:@Class@"}  # what assay finds by the entry point of pyproject.toml


@dataclass(frozen=True, slots=True, kw_only=True)
class @Class@(SingleTurn):
    """@about@

    ``E4821>`` asks for every second digit, ``42``. The level is the number of digits.
    """

    levels: tuple[int, ...] = (3, 4, 5, 6)

    @property
    def name(self) -> str:
        return "@name@"

    @property
    def symbols(self) -> str:
        return "0123456789"

    @property
    def alphabet(self) -> str:
        return self.symbols + "E>"

    def ask(self, level: int, rng: np.random.Generator) -> str:
        return "E" + "".join(self.symbols[i] for i in rng.integers(0, 10, level)) + ">"

    def solve(self, prompt: str) -> str:
        return prompt[1:-1:2]

    def verifier(self) -> Verifier:
        return ExactMatch()
'''
    + RUN.replace("@tasks@", "@Class@()").replace("@levels@", "(3, 4)")
)

TASK_TEST = '''"""The family keeps the contract of task families, and its recipe is a run."""

from @module@ import @Class@, recipe

from assay.testing import check_task_source


def test_the_family_keeps_its_contract() -> None:
    assert check_task_source(@Class@()).passed


def test_an_example() -> None:
    assert @Class@().solve("E4821>") == "42"


def test_the_recipe_trains_on_it() -> None:
    assert recipe().tasks == @Class@()
'''

ENVIRONMENT = (
    '''"""@about@"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core import Message, Task, TaskView
from assay.core.protocols import Obs, Step, Verifier
'''
    + IMPORTS.replace("from assay.train", "from assay.tasks import SingleTurn, slip\nfrom assay.train")
    + '''from assay.verify import ExactMatch
from assay_tasks.phases import SingleUse

FAMILIES = {"@name@": "@module@:@Class@"}  # what assay finds by the entry point of pyproject.toml


def follow(number: str) -> str:
    """The number that stands behind a number."""
    return f"{(int(number) * 387 + 61) % 1000:03d}"


class Numbers(SingleUse):
    """``?123`` is answered with the number behind 123; anything else is the answer, and ends the rollout."""

    def __init__(self, world: TaskView) -> None:
        super().__init__(world.id)
        self.left = world.level + 2  # more questions than are needed

    async def step(self, action: str) -> Step:
        self._enter("open", "step")
        self.left -= 1
        asked = action[:1] == "?"
        self._phase = "open" if asked and self.left else "over"
        if not asked:
            return Step(done=True)
        known = len(action) == 4 and action[1:].isascii() and action[1:].isdigit()
        return Step(obs=Obs((Message("tool", f"={follow(action[1:])}>" if known else "!>"),)), done=not self.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class @Class@(SingleTurn):
    """@about@

    ``F2123>`` asks for the second number behind 123. The level is how many to follow.
    """

    levels: tuple[int, ...] = (1, 2)

    @property
    def name(self) -> str:
        return "@name@"

    @property
    def symbols(self) -> str:
        return "0123456789"

    @property
    def alphabet(self) -> str:
        return self.symbols + "F>?=!"

    def ask(self, level: int, rng: np.random.Generator) -> str:
        return f"F{level}{rng.integers(0, 1000):03d}>"

    def solve(self, prompt: str) -> str:
        number = prompt[2:-1]
        for _ in range(int(prompt[1])):
            number = follow(number)
        return number

    def verifier(self) -> Verifier:
        return ExactMatch()

    def environment(self, world: TaskView) -> Numbers:
        return Numbers(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        turns: list[Message] = []
        number = str(task.public["prompt"])[2:-1]
        for _ in range(task.level):
            turns += [Message("assistant", f"?{number}"), Message("tool", f"={follow(number)}>")]
            number = follow(number)
        return (*turns, Message("assistant", slip(number, noise, self.symbols, rng)))
'''
    + RUN.replace("@tasks@", "@Class@()").replace("@levels@", "(1,)")
)

ENVIRONMENT_TEST = '''"""The family and its environment keep their contracts, and its recipe is a run."""

from @module@ import @Class@, recipe

from assay.testing import check_environment, check_task_source


def test_the_family_keeps_its_contract() -> None:
    assert check_task_source(@Class@()).passed


def test_the_environment_keeps_its_contract() -> None:
    source = @Class@()
    assert check_environment(source, source.task("@name@", 2, "train", 0)).passed


def test_the_recipe_trains_on_it() -> None:
    assert recipe().tasks == @Class@()
'''
