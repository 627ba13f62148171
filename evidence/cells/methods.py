"""The cells of the study that trains every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from assay.core import BatchComposer, Sampling, UnknownNameError, cache_folder
from assay.guide import Compose, Privileged, SuccessVariance
from assay.lab import Cell, RandomReward, Rewarded
from assay.objective import Objective
from assay.objective.methods import methods
from assay.recipes import base
from assay.recipes.sorting import SHOWN
from assay.runtime import AdamW, LearnerSettings, LearningRateSchedule
from assay.train import (
    Built,
    ColumnProvider,
    Evaluation,
    NamedMethod,
    ReferenceValue,
    Reinforce,
    Run,
    WarmUp,
    WithStored,
    models_of,
    updates_of,
    wire,
)
from assay_tasks import SortDigits
from evidence.methods import CONTROLS, READS, SEED, SETTINGS, STEPS, TEACHER, objective_of
from evidence.solved import Solved

__all__ = ["method_cell", "reader"]

SCHEDULE = LearningRateSchedule(kind="linear", warmup=5, start=0.5, floor=0.1)

RATE = 3e-4

RATES: Mapping[str, float] = {"archer": 3e-5}
"""Learning rates of the policy that are not the study's."""

POLICY_AFTER: Mapping[str, int] = {"archer": 40, "b_coder": 15, "vapo": 20}
"""Optimiser steps in which the heads learn alone, for methods whose source has them learn first: what the study has time for."""

GROUPS: Mapping[str, tuple[int, int]] = {"grpo_passk": (128, 2)}
"""Prompts and attempts at each, where they are not the study's."""

_PRIVILEGED = "{solution};{prompt}"
"""What a privileged teacher reads."""

SOLVED = ((3, 0.89), (4, 0.89), (5, 0.95), (6, 0.36), (7, 0.0), (8, 0.0), (9, 0.0), (10, 0.0))
"""Level and the base's accuracy there, sampled, as the quickstart's evidence has it: the value of a prompt to the base."""

COLUMNS: Mapping[str, tuple[ColumnProvider, ...]] = {
    "a2po": (ReferenceValue(name="optimal_value", temperature=0.5, solved=SOLVED),),
    "a_lol": (ReferenceValue(solved=SOLVED),),
}
"""Columns whose values the study knows better than a run can estimate them."""

COMPOSERS: Mapping[str, BatchComposer] = {"dph_rl": WithStored(levels=SHOWN)}
"""What stands beside the rows, where the study knows better than a run what the base masters."""


def method_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """A method under the study's settings, from the quickstart's base, with the quickstart's learner and curriculum.

    Args:
        kind: name of a method, or of one of the controls, which learn under a coin toss.
        seed: of run and base.
        steps: fewer or more than the study's.

    Raises:
        UnknownNameError: neither a method nor a control.
    """
    known = methods()
    name = kind.removeprefix("random_") if kind in CONTROLS else kind
    if name not in known:
        raise UnknownNameError("cell", kind, (*CONTROLS, *known))
    objective, count, truth = objective_of(name), steps or STEPS, SortDigits()
    run = Run(
        name=f"methods-{kind}",
        seed=seed,
        model=Built(run=reader(seed) if name in READS else base(seed)),
        tasks=truth,
        stages=(_supervised_stage(objective, count) if kind == "nll" else _practice_stage(kind, count),),
        sampling=Sampling(max_new_tokens=14),
        evaluation=Evaluation(every=max(1, count // 4), per_level=16, final_per_level=16, kl_to_base=False),
        prove_weights=False,
    )
    if kind in CONTROLS:  # the run's own evaluation would use the wrong reward
        quiet = Evaluation(every=0, final_per_level=1, kl_to_base=False)
        run = replace(run, tasks=Rewarded(source=truth, scorer=RandomReward(seed)), evaluation=quiet)
    return Cell(run=run, truth=truth)


def reader(seed: int = 0) -> Run:
    """The quickstart's base, which has also read prompts behind their solution, on all levels, and can copy it.

    Behind no solution it was shown what the quickstart's base was shown: three to five digits.
    """
    plain = base(seed)
    (stage,) = plain.stages
    assert isinstance(stage, WarmUp)
    source = Solved(source=plain.tasks, plain=SHOWN, text=_PRIVILEGED)
    return replace(plain, name="base-reader", tasks=source, stages=(replace(stage, steps=1000, levels=()),))


def _practice_stage(name: str, steps: int) -> Reinforce:
    """The method by its name, as anybody's run has it, under the study's settings."""
    groups, size = GROUPS.get(name, (32, 8))
    method = name.removeprefix("random_")
    teacher = str(cache_folder() / "studies" / "methods" / f"{TEACHER}-{SEED}")
    teaches = {"teacher_model": teacher} if "teacher" in models_of(objective_of(method)) else {}
    plain = Reinforce(
        steps=steps,
        groups=groups,
        group_size=size,
        minibatches=2 if groups > 1 and updates_of(objective_of(method)) > 1 else 1,
        curriculum=SuccessVariance(floor=0.1),
        composer=COMPOSERS.get(name, Compose()),
        columns=COLUMNS.get(name, ()),
        learner=LearnerSettings(optimizer=AdamW(lr=RATES.get(name, RATE)), schedule=SCHEDULE),
    )
    given = frozenset(("composer",) if name in COMPOSERS else ())
    stage, _ = wire(plain, NamedMethod(method=method, settings={**SETTINGS.get(method, {}), **teaches}, given=given))
    assert isinstance(stage, Reinforce)
    guidance = Privileged(text=_PRIVILEGED) if isinstance(stage.guidance, Privileged) else stage.guidance
    return replace(stage, guidance=guidance, learner=replace(stage.learner, policy_after=POLICY_AFTER.get(name, 0)))


def _supervised_stage(objective: Objective, steps: int) -> WarmUp:
    """Likelihood of the family's own answers, on all levels."""
    return WarmUp(
        steps=steps,
        batch=64,
        demonstrations=10_000,
        noise=0.0,
        objective=objective,
        learner=LearnerSettings(optimizer=AdamW(lr=RATE), schedule=SCHEDULE),
    )
