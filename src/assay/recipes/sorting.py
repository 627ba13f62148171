"""The main job: a base model that was shown how to sort 3 to 5 digits learns, from a verifier alone, to sort up to 10."""

from __future__ import annotations

from dataclasses import replace

from assay.core.rollout import Sampling
from assay.guide import SuccessVariance
from assay.objective.loss.aggregate import Token
from assay.objective.methods import grpo
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.train.models import Built, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from assay_tasks import SortDigits

__all__ = ["SHOWN", "base", "quickstart"]

SHOWN = (3, 4, 5)
"""Levels that the base is shown: lengths of the lists of digits."""


def base(seed: int = 0) -> Run:
    """The embedded base: 0.34M parameters, supervised on traces of the three easiest levels (about 25 CPU-seconds).

    One trace in ten holds a slip (a digit wrong, doubled, dropped or changed over): a policy that never errs in length would
    never find a longer answer. Levels 6 to 10 are never shown.
    """
    return Run(
        name="base-sort",
        seed=seed,
        model=Scratch(shape=DecoderShape(), seed=seed),
        tasks=SortDigits(),
        stages=(
            WarmUp(
                steps=600,
                batch=64,
                demonstrations=10_000,
                noise=0.1,
                levels=SHOWN,
                gate=0.3,
                learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear")),
            ),
        ),
        sampling=Sampling(max_new_tokens=14),
        evaluation=Evaluation(every=0),
        checkpoint_every=200,
    )


def quickstart(seed: int = 0) -> Run:
    """GRPO (mean over tokens, no KL) with a curriculum over all levels, from the embedded base; 400 steps of 32 x 8 rollouts."""
    return Run(
        name="quickstart",
        seed=seed,
        model=Built(run=base(seed)),
        tasks=SortDigits(),
        stages=(
            Reinforce(
                steps=400,
                groups=32,
                group_size=8,
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                curriculum=SuccessVariance(floor=0.1),
                learner=LearnerSettings(
                    optimizer=AdamW(lr=5e-4), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1)
                ),
            ),
        ),
        sampling=Sampling(max_new_tokens=14),
    )
