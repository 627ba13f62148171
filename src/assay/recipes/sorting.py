"""The main job: a base model that was shown how to sort 3 to 5 digits learns, from a verifier alone, to sort up to 10."""

from __future__ import annotations

from assay.core.rollout import Sampling
from assay.recipes.embedded_stages import grpo_stage, warm_up_stage
from assay.runtime.settings import DecoderShape
from assay.train.models import Built, Scratch
from assay.train.run import Evaluation, Run
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
        stages=(warm_up_stage(steps=600, demonstrations=10_000, levels=SHOWN, noise=0.1),),
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
        stages=(grpo_stage(steps=400, groups=32),),
        sampling=Sampling(max_new_tokens=14),
    )
