"""Tasks that the base never solves: rewards alone teach nothing there, parts of the solution that become shorter do."""

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

HARD = (9,)
"""The level that is practised: of 512 answers of the base, half greedy and half sampled, none is right."""

_NEW = 12
_NEAR = (0.25, 0.5, 0.75, 0.9)
"""Shares of a solution of 9 characters, the last one all but one: the base finishes nothing that lacks more in its answer."""


def hard_base(seed: int = 0) -> Run:
    """A base that computes rows of 2 to 6 gates, and finishes rows of up to 10 from half of their solution (30 CPU-seconds).

    Without that half its answers to 7 gates and more end where those that it was shown alone ended, so that on 9 gates no rollout
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
    """GRPO on rows of 9 gates, behind as long a part of the solution as lets half of the rollouts succeed; evaluated without.

    ``--stages.0.guidance.kind Plain --stages.0.group_size 8`` is the same without help, and learns nothing.
    """
    return Run(
        name="hard",
        seed=seed,
        model=Built(run=hard_base(seed)),
        tasks=_GATES,
        stages=(
            Reinforce(
                steps=500,
                groups=32,
                group_size=4,
                levels={"gates": HARD},
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                curriculum=Uniform(),
                guidance=Seele(rounds=2),
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
        "plain": FrozenMap({"guidance": Plain(), "group_size": 8, "steps": 380}),
        "seele": FrozenMap({}),
        "pope": FrozenMap({"guidance": Pope(text="", shares=(0.125, *_NEAR)), "groups": 16, "group_size": 8, "steps": 250}),
        "ghpo": FrozenMap({"guidance": Ghpo(text="", shares=_NEAR), "groups": 16, "group_size": 8, "steps": 330}),
        "adhint": FrozenMap({"guidance": AdHint(), "groups": 16, "group_size": 8}),
        "prefix": FrozenMap({"guidance": Prefix(), "group_size": 8}),
        "guide": FrozenMap(
            {"guidance": GuideHint(text="{prompt}{hint}", share=0.6), "objective": guide_grpo(), "groups": 16, "group_size": 8}
        ),
    }
)
"""Arm of the study to the fields of the stage in which it differs from `hard`; `plain`, `pope` and `ghpo` take as many CPU-seconds."""


def hard_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """A cell of the study of help: the recipe, one with other help or none, or a control with help that is wrong.

    ``pope-other`` is ``pope`` with parts of another task's solution, ``pope-shuffled`` with the solution's own characters in
    another order; so of any help. These have half of the steps: `Pope` tries all parts then, which takes twice the time.

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
