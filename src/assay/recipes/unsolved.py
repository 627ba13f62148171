"""Tasks that the base never solves: rewards alone seldom teach them, parts of the solution that become shorter mostly do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.errors import UnknownNameError
from assay.core.rollout import Sampling
from assay.guide import AdHint, Ghpo, GuideHint, Plain, Pope, Prefix, Seele, Uniform
from assay.lab.cells import Cell
from assay.lab.controls import OtherSolutions
from assay.objective.loss.aggregate import Token
from assay.objective.methods import grpo, guide_grpo
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.tasks.hinted import WithHints
from assay.train.models import Built, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from assay_tasks.small.logic import Gates

__all__ = ["HARD", "SHOWN", "hard", "hard_base", "hard_cell"]

SHOWN = (2, 3, 4, 5, 6)
"""Numbers of gates that the base is shown without a hint, or with any part of one."""

HARD = (10,)
"""The level that is practised: of 512 answers of the base, half greedy and half sampled, none is right."""

_NEW = 12
_NEAR = (0.25, 0.5, 0.75, 0.9)
"""Shares of a solution of 10 characters, the last one all but one: there one right character and the end are left to find."""


def hard_base(seed: int = 0) -> Run:
    """A base that computes rows of 2 to 6 gates, and finishes rows of up to 10 from half of their solution (30 CPU-seconds).

    Without that half its answers to 10 gates have no end, so that no rollout
    is right, and a group baseline has nothing to compare.
    """
    return Run(
        name="base-hard",
        seed=seed,
        model=Scratch(shape=DecoderShape(rope_pairs=4), seed=seed),
        tasks=WithHints(tasks=_GATES, known=max(SHOWN), beyond=(0.5, 1.0)),
        stages=(
            WarmUp(
                steps=700,
                batch=64,
                demonstrations=0,
                noise=0.15,
                learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear", start=0.5)),
            ),
        ),
        sampling=Sampling(max_new_tokens=_NEW),
        evaluation=Evaluation(every=0, final_per_level=24, kl_to_base=False),
        checkpoint_every=1000,
    )


def hard(seed: int = 0) -> Run:
    """GRPO on rows of 10 gates; where all rollouts fail, others behind a longer and longer part of the solution take their place.

    It is evaluated without. ``--stages.0.guidance.kind Plain --stages.0.groups 32`` is the same without help,
    and stays at 0 on most seeds.
    """
    return Run(
        name="hard",
        seed=seed,
        model=Built(run=hard_base(seed)),
        tasks=_GATES,
        stages=(
            Reinforce(
                steps=330,
                groups=16,
                group_size=8,
                levels={"gates": HARD},
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                curriculum=Uniform(),
                guidance=Ghpo(text="", shares=_NEAR),
                learner=LearnerSettings(
                    optimizer=AdamW(lr=3e-4), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1)
                ),
            ),
        ),
        sampling=Sampling(max_new_tokens=_NEW),
        evaluation=Evaluation(every=125, per_level=64, final_per_level=256, levels={"gates": HARD}, kl_to_base=False),
    )


_GATES = Gates(levels=tuple(range(2, 11)))
_ARMS: Mapping[str, Mapping[str, Any]] = FrozenMap(
    {
        "plain": FrozenMap({"guidance": Plain(), "groups": 32, "steps": 380}),
        "ghpo": FrozenMap({}),
        "pope": FrozenMap({"guidance": Pope(text="", shares=(0.125, *_NEAR)), "steps": 250}),
        "seele": FrozenMap({"guidance": Seele(rounds=2), "groups": 32, "group_size": 4, "steps": 500}),
        "adhint": FrozenMap({"guidance": AdHint()}),
        "prefix": FrozenMap({"guidance": Prefix(), "groups": 32}),
        "guide": FrozenMap({"guidance": GuideHint(text="{prompt}{hint}", share=0.6), "objective": guide_grpo()}),
    }
)
"""Arm of the study to the fields of the stage in which it differs from `hard`: the first three take as many CPU-seconds."""


def hard_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """A cell of the study of help: the recipe, one with other help or none, or a control with help that is wrong.

    ``ghpo-other`` is ``ghpo`` with parts of another task's solution, ``ghpo-shuffled`` with the solution's own characters in
    another order; so of any help. These have half of the steps: where no part helps all are tried, which takes twice the time.

    Args:
        kind: which.
        seed: of run and base.
        steps: fewer or more than the arm's own.

    Raises:
        UnknownNameError: no such cell.
    """
    arm, _, wrong = kind.partition("-")
    if arm not in _ARMS:
        raise UnknownNameError("cell", kind, _ARMS)
    run = hard(seed)
    (stage,) = run.stages
    changed = replace(stage, **_ARMS[arm])  # pyright: ignore[reportArgumentType]
    if wrong:
        changed = replace(changed, steps=changed.steps // 2)
    tasks = OtherSolutions(source=_GATES, how=wrong) if wrong else run.tasks
    run = replace(run, name=f"hard-{kind}", tasks=tasks, stages=(changed if steps is None else replace(changed, steps=steps),))
    return Cell(run=run, truth=Gates(levels=HARD), per_level=256)
