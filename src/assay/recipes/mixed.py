"""assay-small: eight families, one model of a third of a million weights. Shown their easy levels, it climbs to the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from assay.core.canon import FrozenMap
from assay.core.errors import UnknownNameError
from assay.core.rollout import Sampling
from assay.guide import Frontier
from assay.lab.cells import Cell
from assay.lab.controls import FormatOnly, RandomReward, Rewarded
from assay.objective.loss.aggregate import Token
from assay.objective.methods import grpo
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, Muon, Schedule
from assay.tasks import Mixture, Reverse, SortDigits, family
from assay.train.models import Built, Scratch
from assay.train.run import Evaluation, Reinforce, Run, WarmUp

__all__ = ["AUXILIARY", "SHOWN", "assay_small", "mixed", "mixed_base", "mixed_cell"]

SHOWN: Mapping[str, tuple[int, ...]] = FrozenMap({
    "dedup": (3, 4, 5, 6), "gates": (2, 3, 4, 5, 6), "knights": (1, 2, 3, 4, 5), "largest": (2, 3, 4), "octal": (2, 3, 4, 5),
    "reverse": (2, 3, 4, 5, 6), "sort": (3, 4, 5, 6), "strip": (4, 5, 6, 7),
})  # fmt: skip
"""The levels of each scored family that the base is shown; all others it must find by itself."""

AUXILIARY: Mapping[str, tuple[int, ...]] = FrozenMap({"skip": (3, 4, 5, 6, 7, 8, 9, 10)})
"""Families that the base is shown at all levels, neither practised nor scored: they show that answers may be long."""


def assay_small(*, auxiliary: bool = True) -> Mixture:
    """The families of the suite.

    Args:
        auxiliary: with those that are only shown.

    >>> sorted(assay_small(auxiliary=False).arms()) == sorted(SHOWN)
    True
    """
    names = {*SHOWN, *(AUXILIARY if auxiliary else ())} - {"sort", "reverse"}
    reverse = Reverse(levels=tuple(range(2, 11)))
    return Mixture(name="assay-small", sources=(SortDigits(), reverse, *map(family, sorted(names))))


def mixed_base(seed: int = 0) -> Run:
    """The suite's base: 0.34M parameters, supervised on fresh traces of the easy levels (about 200 CPU-seconds).

    Of a head's 16 pairs of dimensions the 12 slow ones are blind to position: what they learn of short texts holds for longer.
    One trace in seven holds a slip, so that the base errs in length too: one that never does would never find a longer answer.
    The gate allows for these slips.
    """
    return Run(
        name="base-mixed",
        seed=seed,
        model=Scratch(shape=DecoderShape(rope_pairs=4), seed=seed),
        tasks=assay_small(),
        stages=(
            WarmUp(
                steps=1450, batch=128, demonstrations=0, noise=0.15, levels={**SHOWN, **AUXILIARY}, gate=0.6,
                learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=Schedule(kind="linear", start=0.5)),
            ),
        ),
        sampling=Sampling(max_new_tokens=20),
        evaluation=Evaluation(every=0, final_per_level=24, levels=assay_small(auxiliary=False).arms(), kl_to_base=False),
        checkpoint_every=200,
    )  # fmt: skip


def mixed(seed: int = 0) -> Run:
    """GRPO on eight families at once: each has a frontier, which begins one level past what the base was shown."""
    arms = assay_small(auxiliary=False).arms()
    return Run(
        name="mixed",
        seed=seed,
        model=Built(run=mixed_base(seed)),
        tasks=assay_small(),
        stages=(
            Reinforce(
                steps=600, groups=64, group_size=8, levels=arms,
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                curriculum=Frontier(start={arm: max(SHOWN[arm]) + 1 for arm in arms}),
                learner=LearnerSettings(optimizer=AdamW(lr=2e-4), schedule=Schedule(kind="linear", start=0.5, floor=0.1)),
            ),
        ),
        sampling=Sampling(max_new_tokens=20),
        evaluation=Evaluation(every=50, per_level=8, final_per_level=24, levels=arms, kl_to_base=False),
    )  # fmt: skip


def mixed_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """A cell of the suite's study: ``rl``, the recipe, or a control from the same base.

    ``random`` and ``format`` are the recipe under another reward; ``longer`` is the base's supervised stage once more, at half
    its learning rate.

    Args:
        kind: which.
        seed: of run and base.
        steps: fewer or more than the recipe's own.

    Raises:
        UnknownNameError: no such cell.
    """
    if kind not in ("rl", "random", "format", "longer"):
        raise UnknownNameError("cell", kind, ("rl", "random", "format", "longer"))
    run, truth = mixed(seed), assay_small(auxiliary=False)
    stage = cast(Reinforce, run.stages[0])
    stage = stage if steps is None else replace(stage, steps=steps)
    if kind == "rl":
        return Cell(run=replace(run, stages=(stage,)), truth=truth)
    # the run's own evaluation would use the wrong reward: the cell is judged afterwards, by the truth
    quiet = Evaluation(every=0, final_per_level=1, levels=run.evaluation.levels, kl_to_base=False)
    run = replace(run, name=f"mixed-{kind}", evaluation=quiet)
    if kind == "longer":
        shown = cast(WarmUp, mixed_base(seed).stages[0])
        learner = LearnerSettings(optimizer=Muon(lr=2e-3), schedule=Schedule(kind="linear"))
        return Cell(
            run=replace(run, stages=(replace(shown, steps=steps or shown.steps, gate=0.0, learner=learner),)), truth=truth
        )
    judge = run.tasks.verifier()
    scorer = RandomReward(seed) if kind == "random" else FormatOnly(judge)
    return Cell(run=replace(run, tasks=Rewarded(source=run.tasks, scorer=scorer), stages=(stage,)), truth=truth)
