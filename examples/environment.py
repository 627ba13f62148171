"""A task of several turns: the policy guesses a number, the environment answers "more" or "less", the last guess counts."""

import re
from dataclasses import replace
from pathlib import Path

import tyro

from assay.core import FrozenMap, Message, Task, TaskView
from assay.core.protocols import Obs, Step
from assay.recipes import on_rows
from assay.tasks import Rows
from assay.train import Run, Scratch, train
from assay_tasks.phases import SingleUse


class Answers(SingleUse):
    """Hears guesses and answers them."""

    def __init__(self, world: TaskView) -> None:
        super().__init__(world.id)
        self.number, self.left = world.world["number"], 5

    async def step(self, action: str) -> Step:
        self._enter("open", "step")
        self.left -= 1
        guess = int(action) if re.fullmatch("[0-9]{1,6}", action.strip()) else None
        over = guess == self.number or not self.left
        self._phase = "over" if over else "open"
        hint = "Not a number." if guess is None else "more" if guess < self.number else "less"
        return Step(obs=Obs(() if over else (Message("tool", hint),)), done=over)


class Guessing(Rows):
    """Rows that are played with the environment, which may know the number."""

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        task = super().task(arm, level, split, index)
        return replace(task, world=FrozenMap({"number": int(task.private["answer"])}))

    def environment(self, world: TaskView) -> Answers:
        return Answers(world)


def my_recipe(model: str | None = None, steps: int = 100, seed: int = 0) -> Run:
    """One hundred numbers; the reward, by default of rows, is whether the last guess is right."""
    rows = [{"prompt": f"Game {n}: guess my number, 0 to 99.", "answer": str(n * 37 % 100)} for n in range(100)]
    run = on_rows(rows, model=model or Scratch(), max_new_tokens=8, steps=steps, groups=4, group_size=4, seed=seed)
    return replace(run, name="guessing", tasks=Guessing(rows))


def main(steps: int = 3, model: str | None = None, folder: Path | None = None) -> None:
    """Train; small random weights, which learn nothing, when no model is given."""
    print(train(my_recipe(model, steps), folder).sentence)


if __name__ == "__main__":
    tyro.cli(main)
