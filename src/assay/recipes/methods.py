"""The cells of the study that trains every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from assay.core.errors import UnknownNameError
from assay.core.places import cache_folder
from assay.core.protocols import BatchComposer
from assay.core.rollout import Sampling
from assay.guide import Compose, Plain, Privileged, SuccessVariance
from assay.lab.brought import AsStream, WithColumns, WithStored
from assay.lab.cells import Cell
from assay.lab.controls import RandomReward, Rewarded
from assay.lab.methods import CONTROLS, EXPERTS, READS, SEED, STEPS, TEACHER, models_of, objective_of, updates_of
from assay.lab.solved import Solved
from assay.objective.methods import methods
from assay.objective.objective import Objective
from assay.recipes.sorting import SHOWN, base
from assay.runtime.anchors import Anchor, Every
from assay.runtime.settings import AdamW, LearnerSettings, Schedule, Trunk, ValueHead
from assay.tasks import SortDigits
from assay.train.models import Built
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp

__all__ = ["method_cell", "reader"]

SCHEDULE = Schedule(kind="linear", warmup=5, start=0.5, floor=0.1)

RATE = 3e-4

_FIRST = AdamW(lr=3e-3)

HEADS: Mapping[str, tuple[ValueHead, ...]] = {
    "archer": (
        *(ValueHead(name=name, trunk="critic", tau=0.1, init=0.1, optimizer=_FIRST) for name in ("v1", "v2")),
        *(ValueHead(name=name, trunk="critic", tau=0.1, init=0.1, optimizer=_FIRST, behind=True) for name in ("q1", "q2")),
    ),
    "b_coder": (ValueHead(tau=0.1, optimizer=_FIRST),),
    "vapo": (ValueHead(optimizer=_FIRST),),
}
"""Heads that say more than their shape; all others are made from what the loss fits."""

TRUNKS: Mapping[str, tuple[Trunk, ...]] = {"archer": (Trunk(tau=0.1, optimizer=AdamW(lr=1e-3)),)}
"""Models of critics' own."""

RATES: Mapping[str, float] = {"archer": 3e-5}
"""Learning rates of the policy that are not the study's."""

POLICY_AFTER: Mapping[str, int] = {"archer": 40, "b_coder": 15, "vapo": 20}
"""Optimiser steps in which the heads learn alone, for methods whose source has them learn first."""

GROUPS: Mapping[str, tuple[int, int]] = {"grpo_passk": (128, 2)}
"""Prompts and attempts at each, where they are not the study's."""

_PRIVILEGED = "{solution};{prompt}"
"""What a privileged teacher reads."""

SOLVED = ((3, 0.89), (4, 0.89), (5, 0.95), (6, 0.36), (7, 0.0), (8, 0.0), (9, 0.0), (10, 0.0))
"""Level and the base's accuracy there, sampled, as the quickstart's evidence has it: the value of a prompt to the base."""

COMPOSERS: Mapping[str, BatchComposer] = {
    "a2po": WithColumns(names=("optimal_value",), solved=SOLVED),
    "a_lol": AsStream(stream="offline", inner=WithColumns(names=("value_ref",), solved=SOLVED)),
    "dph_rl": WithStored(levels=SHOWN),
    "grpo_process": WithColumns(names=("process_reward", "segment")),
    "grpo_s": WithColumns(names=("hardness", "responsiveness")),
    "gui_g1": WithColumns(names=("difficulty",)),
    "hierarchical_grpo": WithColumns(names=("peers",)),
    "pairwise_rl": WithColumns(names=("win", "loss")),
    "r_gold": AsStream(stream="offline"),
    "rae": WithColumns(names=("role",)),
    "weighted_bc": AsStream(stream="offline"),
}
"""What brings the rows and columns that a method asks for; `assay.lab.methods.BROUGHT` says it in words."""


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
        stages=(_supervised(objective, count) if kind == "nll" else _practised(kind, objective, count),),
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


def _practised(name: str, objective: Objective, steps: int) -> Reinforce:
    groups, size = GROUPS.get(name, (32, 8))
    return Reinforce(
        steps=steps, groups=groups, group_size=size, minibatches=updates_of(objective), objective=objective,
        composer=COMPOSERS.get(name, Compose()), experts=name in EXPERTS,
        guidance=Privileged(text=_PRIVILEGED) if "privileged" in models_of(objective) else Plain(),
        curriculum=SuccessVariance(floor=0.1),
        learner=LearnerSettings(
            optimizer=AdamW(lr=RATES.get(name, RATE)), schedule=SCHEDULE, anchors=_anchors(objective),
            heads=HEADS.get(name, _heads(objective)), trunks=TRUNKS.get(name, ()), policy_after=POLICY_AFTER.get(name, 0),
        ),
    )  # fmt: skip


def _supervised(objective: Objective, steps: int) -> WarmUp:
    """Likelihood of the family's own answers, on all levels."""
    return WarmUp(steps=steps, batch=64, demonstrations=10_000, noise=0.0, objective=objective,
        learner=LearnerSettings(optimizer=AdamW(lr=RATE), schedule=SCHEDULE),
    )  # fmt: skip


def _anchors(objective: Objective) -> tuple[Anchor, ...]:
    """The reference, and the models that an objective reads besides."""
    teacher = cache_folder() / "studies" / "methods" / f"{TEACHER}-{SEED}"
    known = {
        "mask": Anchor("mask", refresh=Every(steps=10)),
        "privileged": Anchor("privileged", privileged=True),
        "teacher": Anchor("teacher", model=str(teacher)),
    }
    return (Anchor(), *(known[name] for name in models_of(objective)))


def _heads(objective: Objective) -> tuple[ValueHead, ...]:
    """The heads that an objective's losses fit."""
    wanted = {name: spec for t in objective.losses for name, spec in t.heads.items()}
    return tuple(
        ValueHead(name=name) if form == "scalar" else ValueHead(name=name, form=form, outputs=outputs, low=low, high=high)
        for name, (form, outputs, low, high) in wanted.items()
    )
