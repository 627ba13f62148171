"""A family whose answers stand behind a thought, and runs whose rewards are no verifier's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tiny_runs import SCHEDULE, SHAPE, warm_up

from assay.core.canon import FrozenMap
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout, Sampling
from assay.core.score import Score
from assay.core.task import Message, Task
from assay.guide import Uniform
from assay.objective.methods import grpo
from assay.runtime.settings import AdamW, LearnerSettings, Muon
from assay.scorers import FromTasks, ReferenceProbability
from assay.tasks.single import SingleTurn
from assay.train.models import Folder, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run


@dataclass(frozen=True, slots=True)
class Behind:
    """``correct`` is 1 when what stands behind ``=`` is the gold."""

    @property
    def trusted(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        return ("correct",)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        return Score(components={"correct": float(rollout.text.partition("=")[2] == task.private["answer"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought(SingleTurn):
    """``K37>`` asks for ``7``; a demonstration thinks of a digit and says it: ``7=7``, or with noise ``2=2``.

    The private ``decoy`` is the other digit, which nobody asked for.
    """

    @property
    def name(self) -> str:
        return "thought"

    @property
    def symbols(self) -> str:
        return "0123456789"

    @property
    def alphabet(self) -> str:
        return "0123456789K>="

    def ask(self, level: int, rng: np.random.Generator) -> str:
        return f"K{rng.integers(10)}{rng.integers(10)}>"

    def solve(self, prompt: str) -> str:
        return prompt[-2]

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        made = SingleTurn.task(self, arm, level, split, index)
        return replace(made, private=FrozenMap({**made.private, "decoy": made.public["prompt"][1]}))

    def verifier(self) -> Verifier:
        return Behind()

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        digit = str(rng.integers(10)) if rng.random() < noise else task.private["answer"]
        return (Message("assistant", f"{digit}={digit}"),)


BY_REFERENCE = ReferenceProbability(opening="=", closing="", spread=None)


def warmed(seed: int = 0) -> Run:
    """A model that thinks of the right digit two times in five, and says what it thinks."""
    stage = warm_up(steps=200, levels=(1,), learner=LearnerSettings(optimizer=Muon(lr=8e-3), schedule=SCHEDULE))
    return Run(
        name="warmed",
        seed=seed,
        model=Scratch(shape=SHAPE, seed=seed),
        tasks=Thought(),
        stages=(replace(stage, noise=0.6, demonstrations=2000, batch=64),),
        sampling=Sampling(max_new_tokens=4),
        evaluation=Evaluation(every=0, per_level=8, final_per_level=8, n=8),
        checkpoint_every=1000,
    )


def scored(model: Path, reward: Any = FromTasks(), steps: int = 12, **stage: Any) -> Run:  # noqa: B008
    """RL by ``reward`` from a model of `warmed`."""
    given: dict[str, Any] = {
        "steps": steps,
        "groups": 16,
        "group_size": 8,
        "objective": grpo(),
        "curriculum": Uniform(),
        "reward": reward,
        "learner": LearnerSettings(optimizer=AdamW(lr=3e-3)),
    }
    return replace(
        warmed(),
        name="scored",
        model=Folder(path=str(model)),
        stages=(Reinforce(**(given | stage)),),
        checkpoint_every=4,
        rollouts_every=4,
    )
