"""The two stages of recipes that train a model of a few hundred thousand weights: a warm-up on traces, then GRPO."""

from __future__ import annotations

from dataclasses import replace

from assay.guide import SuccessVariance
from assay.objective import Token, grpo
from assay.runtime.settings import AdamW, LearnerSettings, LearningRateSchedule, Muon
from assay.train.reinforce import Reinforce
from assay.train.warmup import WarmUp

__all__ = ["grpo_stage", "warm_up_stage"]


def warm_up_stage(*, steps: int, demonstrations: int, levels: tuple[int, ...], noise: float = 0.05) -> WarmUp:
    """Demonstrations of the oracle's with slips at probability ``noise``, by Muon, until 0.3 of the answers are right."""
    return WarmUp(
        steps=steps,
        batch=64,
        demonstrations=demonstrations,
        noise=noise,
        levels=levels,
        gate=0.3,
        learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear")),
    )


def grpo_stage(*, steps: int, groups: int = 16) -> Reinforce:
    """GRPO without a KL term, its loss averaged over tokens, groups of 8, levels by the variance of success."""
    return Reinforce(
        steps=steps,
        groups=groups,
        group_size=8,
        objective=replace(grpo(kl=0.0), aggregate=Token()),
        curriculum=SuccessVariance(floor=0.1),
        learner=LearnerSettings(optimizer=AdamW(lr=5e-4), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1)),
    )
