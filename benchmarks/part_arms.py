"""Arms of `benchmarks.parts`: a part beside its control, and runs of the quickstart and of small families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from assay.core import CurriculumSpec, Sampling, TaskSource
from assay.guide import Uniform
from assay.lab import Inverted, RandomReward, Rewarded
from assay.objective import Token, grpo
from assay.recipes import quickstart
from assay.tasks import Problems
from assay.train import Evaluation, Reinforce, Run
from benchmarks.part_tasks import base_of, slow

__all__ = ["Arm", "EVEN", "QUIET", "RANDOM", "Runs", "SORT", "against_random", "of_family", "sorting"]

EVENLY = Uniform()
QUIET = Evaluation(every=0, final_per_level=1, kl_to_base=False)
Runs = Callable[[int, Path], Run]
"""Seed and a folder for what the run needs before it, to the run."""


def sorting(**parts: Any) -> Runs:
    """The quickstart with fields of its stage; 100 steps of 32 prompts with 8 rollouts, uniform draws, unless they say else."""

    def made(seed: int, folder: Path) -> Run:
        run = quickstart(seed)
        stage = replace(cast(Reinforce, run.stages[0]), **{"steps": 100, "curriculum": Uniform(), **parts})
        return replace(run, stages=(stage,), evaluation=QUIET)

    return made


def of_family(
    tasks: Problems,
    levels: tuple[int, ...],
    new: int,
    reward: str = "true",
    shown: int = 200,
    curriculum: CurriculumSpec = EVENLY,
    evaluation: Evaluation = QUIET,
) -> Runs:
    """RL on all levels of a small family, from a base that was shown some of them, under the true or another reward."""

    def made(seed: int, folder: Path) -> Run:
        other = {"random": RandomReward(seed), "inverted": Inverted(tasks.verifier())}
        stage = Reinforce(
            steps=60,
            groups=16,
            group_size=8,
            objective=replace(grpo(kl=0.0), aggregate=Token()),
            curriculum=curriculum,
            learner=slow(3e-4),
        )
        return Run(
            name=f"{tasks.name}-{reward}",
            seed=seed,
            model=base_of(tasks, seed, levels=levels, steps=shown, new=new),
            tasks=tasks if reward == "true" else Rewarded(source=tasks, scorer=other[reward]),
            stages=(stage,),
            sampling=Sampling(max_new_tokens=new),
            evaluation=evaluation,
        )

    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A part beside its control.

    Attributes:
        runs: with the part.
        control: without.
        truth: what both are judged by.
        against: the control, in words.
        predicted: sign of the difference in held-out accuracy, the part's less its control's.
        why: the reason for the prediction.
    """

    runs: Runs
    control: Runs
    truth: TaskSource
    against: str
    predicted: str
    why: str


SORT = quickstart(0).tasks
RANDOM = "the same run, paid at random"
EVEN = "the same run with uniform draws"


def against_random(tasks: Problems, levels: tuple[int, ...], new: int, why: str, shown: int = 200) -> Arm:
    """A family under the right reward, beside one that is drawn."""
    runs = (of_family(tasks, levels, new, reward, shown) for reward in ("true", "random"))
    return Arm(runs=next(runs), control=next(runs), truth=tasks, against=RANDOM, predicted="higher", why=why)
