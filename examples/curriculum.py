"""A curriculum of your own: which levels a step draws from, and what it learns from their outcomes.

python examples/curriculum.py                  # about a minute: builds the embedded base first
assay train quickstart --stages.0.curriculum.kind examples/curriculum.py:Progress
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray

from assay.guide import CellRule, Memory, Standing
from assay.recipes import quickstart
from assay.testing import check_curriculum
from assay.train import Folder, Reinforce, Run, train


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(CellRule):
    """Prefers levels whose success is far below its best so far: what the policy forgets, it practises.

    Attributes:
        floor: weight that every level keeps.
    """

    floor: float = 0.1

    @property
    def memory(self) -> Memory:
        return Memory(decay=0.8)

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        return np.maximum(0.0, standing.best - standing.success) + self.floor


def my_recipe(steps: int = 100, model: str | None = None, seed: int = 0) -> Run:
    """The quickstart with this curriculum."""
    run = quickstart(seed)
    (stage,) = run.stages
    assert isinstance(stage, Reinforce)
    stage = replace(stage, steps=steps, curriculum=Progress())
    return replace(run, name="progress", stages=(stage,), model=Folder(model) if model else run.model)


def main(steps: int = 100, model: str | None = None, folder: Path | None = None) -> None:
    """Check the curriculum, then train with it, from the embedded base where no model folder is given."""
    print("curriculum:", *check_curriculum(Progress(), {"sort": (3, 4, 5)}).passed, sep=" | ")
    done = train(my_recipe(steps, model), folder)
    last = done.history[-1] if isinstance(done.history, list) else done.history.iloc[-1]
    print({name.rpartition("/")[2]: round(last[name], 3) for name in sorted(last) if name.startswith("curriculum/share/")})


if __name__ == "__main__":
    tyro.cli(main)
