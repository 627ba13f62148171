"""The cells of the study that asks whether levels grow harder."""

from __future__ import annotations

from assay.core import Sampling
from assay.lab import Cell
from assay.runtime import DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.tasks import family
from assay.train import Evaluation, Run, Scratch, WarmUp

__all__ = ["levels_cell"]

STEPS = 250

EVERY = 25
"""Steps between evaluations: what is easy is learned early, so a level's accuracy is averaged over all of them."""


def levels_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """A fresh model that is shown all levels of a family, equal parts of each, and evaluated while it learns.

    Args:
        kind: the family's name.
        seed: of the run.
        steps: other than `STEPS`.

    Raises:
        UnknownNameError: no such family.
    """
    source = family(kind)
    run = Run(
        name=f"levels-{kind}",
        seed=seed,
        model=Scratch(shape=DecoderShape(rope_pairs=4), seed=seed),
        tasks=source,
        stages=(
            WarmUp(
                steps=steps or STEPS,
                batch=64,
                demonstrations=0,
                noise=0.0,
                learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear", start=0.5)),
            ),
        ),
        sampling=Sampling(max_new_tokens=24),
        evaluation=Evaluation(every=EVERY, per_level=32, final_per_level=32, kl_to_base=False),
    )
    return Cell(run=run, truth=source)
