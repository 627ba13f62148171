"""A tool agent in miniature: follow a key through a store, one look-up a turn, with the same loop as everything else."""

from __future__ import annotations

from assay.core.rollout import Sampling
from assay.recipes.embedded_stages import grpo_stage, warm_up_stage
from assay.runtime.settings import DecoderShape
from assay.train.models import Built, Scratch
from assay.train.run import Evaluation, Run
from assay_tasks import KeyValue

__all__ = ["lookups", "lookups_base"]


def lookups_base(seed: int = 0) -> Run:
    """A base that was shown noisy traces of one and two look-ups; three are never shown."""
    return Run(
        name="base-lookups",
        seed=seed,
        model=Scratch(shape=DecoderShape(), seed=seed),
        tasks=KeyValue(),
        stages=(warm_up_stage(steps=400, demonstrations=10_000, levels=(1, 2)),),
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
        stages=(grpo_stage(steps=100),),
        sampling=Sampling(max_new_tokens=6),
        evaluation=Evaluation(every=20, final_per_level=32),
    )
