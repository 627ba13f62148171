"""A tool agent in miniature: follow a key through a store, one look-up a turn, with the same loop as everything else."""

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
from assay_tasks import KeyValue

__all__ = ["lookups", "lookups_base"]


def lookups_base(seed: int = 0) -> Run:
    """A base that was shown noisy traces of one and two look-ups; three are never shown."""
    return Run(
        name="base-lookups",
        seed=seed,
        model=Scratch(shape=DecoderShape(), seed=seed),
        tasks=KeyValue(),
        stages=(
            WarmUp(
                steps=400,
                batch=64,
                demonstrations=10_000,
                noise=0.05,
                levels=(1, 2),
                gate=0.3,
                learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear")),
            ),
        ),
        sampling=Sampling(max_new_tokens=6),
        evaluation=Evaluation(every=0, final_per_level=32),
        checkpoint_every=200,
    )


def lookups(seed: int = 0) -> Run:
    """GRPO over whole episodes; tokens of the store's answers carry no loss."""
    return Run(
        name="lookups",
        seed=seed,
        model=Built(run=lookups_base(seed)),
        tasks=KeyValue(),
        stages=(
            Reinforce(
                steps=100,
                groups=16,
                group_size=8,
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                curriculum=SuccessVariance(floor=0.1),
                learner=LearnerSettings(
                    optimizer=AdamW(lr=5e-4), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1)
                ),
            ),
        ),
        sampling=Sampling(max_new_tokens=6),
        evaluation=Evaluation(every=20, final_per_level=32),
    )
