"""The cells of the study that trains on items on purpose, and asks whether anybody can tell."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from assay.core import Sampling, UnknownNameError
from assay.lab import Cell
from assay.objective import Token, grpo
from assay.recipes import base
from assay.runtime import AdamW, LearnerSettings, LearningRateSchedule, Muon
from assay.train import Built, Evaluation, Reinforce, Run, WarmUp
from evidence.contamination_page import items

__all__ = ["contamination_cell"]

BATCH, GROUPS = 64, 32
"""Items per step of supervised training, and of RL."""


def contamination_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """The quickstart's base, trained on the members of a set of items alone.

    Args:
        kind: ``sort-sft-4``: which items, how, and how often each is seen; ``sft``: with their answers; ``rl``: with a verifier,
            8 attempts each time.
        seed: of items, run and base.
        steps: other than those that make so many epochs.

    Raises:
        UnknownNameError: no such cell.
    """
    what, _, rest = kind.partition("-")
    how, _, epochs = rest.partition("-")
    if how not in ("sft", "rl") or not epochs.isdecimal() or int(epochs) < 1:
        raise UnknownNameError("cell", kind, ("sort-sft-4", "facts-sft-4", "sort-rl-4"))
    source = items(what, seed)
    members, seen = source.size(what, 1, "train"), int(epochs)
    if how == "sft":
        stage = WarmUp(
            steps=steps or ceil(seen * members / BATCH),
            batch=BATCH,
            demonstrations=members,
            noise=0.0,
            learner=LearnerSettings(optimizer=Muon(lr=2e-3), schedule=LearningRateSchedule(kind="linear", floor=0.1)),
        )
    else:
        stage = Reinforce(
            steps=steps or ceil(seen * members / GROUPS),
            groups=GROUPS,
            group_size=8,
            objective=replace(grpo(kl=0.0), aggregate=Token()),
            learner=LearnerSettings(optimizer=AdamW(lr=5e-4), schedule=LearningRateSchedule(kind="linear", floor=0.1)),
        )
    run = Run(
        name=f"contamination-{kind}",
        seed=seed,
        model=Built(run=base(seed)),
        tasks=source,
        stages=(stage,),
        sampling=Sampling(max_new_tokens=14),
        evaluation=Evaluation(every=0, final_per_level=64, kl_to_base=False),
    )
    return Cell(run=run, truth=source)
