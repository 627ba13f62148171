"""Tasks that the base never solves: rewards alone teach nothing there, prefixes of the solution that become shorter do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.errors import UnknownNameError
from assay.core.rollout import Sampling
from assay.guide import AdHint, Ghpo, Plain, Pope, Prefix, Quarters, Seele, Uniform
from assay.lab.cells import Cell
from assay.lab.controls import OtherSolutions
from assay.objective.loss.aggregate import Token
from assay.objective.methods import grpo
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.tasks import TaskMixture
from assay.train.models import Built, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from assay_tasks.small.logic import Gates
from assay_tasks.small.strings import EveryKth

__all__ = ["HARD", "SHOWN", "hard", "hard_base", "hard_cell"]

SHOWN = (2, 3, 4, 5, 6)
"""Numbers of gates that the base is shown."""

HARD = (8,)
"""The level that is practised: the base gives none of 512 right answers, greedily or sampled."""

_NEW = 20
_SHARES = (0.25, 0.5, 0.75)


def hard_base(seed: int = 0) -> Run:
    """A base that computes rows of 2 to 6 gates, and is shown long answers of another family alone (about 25 CPU-seconds).

    Three traces in a hundred hold a slip. Its answers end where those that it was shown ended, so that on 8 gates no rollout is
    right and a group baseline has nothing to compare.
    """
    return Run(
        name="base-hard",
        seed=seed,
        model=Scratch(shape=DecoderShape(rope_pairs=4), seed=seed),
        tasks=TaskMixture(name="gates-and-skip", sources=(Gates(), EveryKth())),
        stages=(
            WarmUp(
                steps=700,
                batch=64,
                demonstrations=0,
                noise=0.03,
                gate=0.6,
                levels={"gates": SHOWN, "skip": tuple(range(3, 11))},
                learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear", start=0.5)),
            ),
        ),
        sampling=Sampling(max_new_tokens=_NEW),
        evaluation=Evaluation(every=0, final_per_level=24, levels={"gates": SHOWN}, kl_to_base=False),
        checkpoint_every=200,
    )


def hard(seed: int = 0) -> Run:
    """GRPO on rows of 8 gates, three of four tasks behind a prefix of the solution of random length; evaluated without.

    ``--stages.0.guidance.kind Plain`` is the same without help, and learns nothing.
    """
    return Run(
        name="hard",
        seed=seed,
        model=Built(run=hard_base(seed)),
        tasks=Gates(),
        stages=(
            Reinforce(
                steps=300,
                groups=32,
                group_size=8,
                levels={"gates": HARD},
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                curriculum=Uniform(),
                guidance=Prefix(),
                learner=LearnerSettings(
                    optimizer=AdamW(lr=3e-4), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1)
                ),
            ),
        ),
        sampling=Sampling(max_new_tokens=_NEW),
        evaluation=Evaluation(every=100, per_level=64, final_per_level=256, levels={"gates": HARD}, kl_to_base=False),
    )


_ARMS: Mapping[str, Mapping[str, Any]] = FrozenMap(
    {
        "plain": FrozenMap({"guidance": Plain()}),
        "prefix": FrozenMap({}),
        "seele": FrozenMap({"guidance": Seele(rounds=2), "group_size": 4}),
        "ghpo": FrozenMap({"guidance": Ghpo(text="", shares=_SHARES), "groups": 16}),
        "pope": FrozenMap({"guidance": Pope(text="", shares=_SHARES), "groups": 16}),
        "adhint": FrozenMap({"guidance": AdHint(), "groups": 16}),
        "sparkle": FrozenMap({"guidance": Quarters(unit="")}),
        "other": FrozenMap({}),
        "shuffled": FrozenMap({}),
    }
)
"""Arm of the study to the fields of the stage in which it differs from `hard`."""


def hard_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """A cell of the study of help: the recipe, one with other help or none, or a control with help that is wrong.

    ``other`` is the recipe with prefixes of another task's solution, ``shuffled`` with its own characters in another order.

    Args:
        kind: which.
        seed: of run and base.
        steps: fewer or more than the stage's own.

    Raises:
        UnknownNameError: no such cell.
    """
    if kind not in _ARMS:
        raise UnknownNameError("cell", kind, _ARMS)
    run = hard(seed)
    (stage,) = run.stages
    changed = replace(stage, **_ARMS[kind])  # pyright: ignore[reportArgumentType]
    tasks = OtherSolutions(source=Gates(), how=kind) if kind in ("other", "shuffled") else run.tasks
    run = replace(run, name=f"hard-{kind}", tasks=tasks, stages=(changed if steps is None else replace(changed, steps=steps),))
    return Cell(run=run, truth=Gates(levels=HARD), per_level=512)
