"""The comparisons of this repository, and their cells. Another one is another value in `COMPARISONS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from assay.core import Sampling, UnknownNameError
from assay.guide import SuccessVariance
from assay.lab import Arm, Cell, Comparison
from assay.objective import Center, Token, grpo
from assay.recipes import base
from assay.runtime import AdamW, LearnerSettings, LearningRateSchedule
from assay.train import Built, Evaluation, Reinforce, Run
from assay_tasks import SortDigits

__all__ = ["COMPARISONS", "comparison_cell"]

_SCALED = Reinforce(
    steps=60,
    groups=32,
    group_size=8,
    objective=replace(grpo(kl=0.0), aggregate=Token()),
    curriculum=SuccessVariance(floor=0.1),
    learner=LearnerSettings(optimizer=AdamW(), schedule=LearningRateSchedule(kind="linear", warmup=5, start=0.5, floor=0.1)),
)

COMPARISONS: Mapping[str, Comparison] = {
    "group_std": Comparison(
        name="group_std",
        question="Does dividing GRPO's advantage by the group's standard deviation help?",
        rung="L0",
        predicted="higher",
        because="prompts that are seldom solved have a small spread, so that the division weighs their few successes up, "
        "and those are the prompts that lead to longer answers",
        arms=(
            Arm(name="centred", stage=replace(_SCALED, objective=replace(_SCALED.objective, credit=(Center("group"),)))),
            Arm(name="scaled", stage=_SCALED),
        ),
        rates=(1.5e-4, 3e-4, 6e-4),
        tuning=(5, 6),
        test=(0, 1, 2, 3, 4),
    ),
}


def comparison_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """An arm of a comparison at a learning rate, from the quickstart's base of the seed.

    Args:
        kind: ``COMPARISON~ARM~RATE``.
        seed: of run and base.
        steps: fewer or more than the arm's own.

    Raises:
        UnknownNameError: no such comparison or arm.
    """
    name, arm, rate = kind.split("~")
    if name not in COMPARISONS:
        raise UnknownNameError("comparison", name, COMPARISONS)
    stage = COMPARISONS[name].arm(arm).stage
    learner = replace(stage.learner, optimizer=replace(stage.learner.optimizer, lr=float(rate)))
    stage = replace(stage, steps=steps or stage.steps, learner=learner)
    run = Run(
        name=kind,
        seed=seed,
        model=Built(run=base(seed)),
        tasks=SortDigits(),
        stages=(stage,),
        sampling=Sampling(max_new_tokens=14),
        evaluation=Evaluation(every=0, final_per_level=16, kl_to_base=False),
        prove_weights=False,
    )
    return Cell(run=run, truth=run.tasks)
