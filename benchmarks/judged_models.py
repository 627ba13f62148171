"""Bases and judges of `benchmarks.judged`, made on the spot: two layers, 0.23M parameters."""

from __future__ import annotations

from dataclasses import replace

from assay.core import Sampling
from assay.guide import Uniform
from assay.objective import Token, grpo
from assay.runtime import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.train import Built, Evaluation, Reinforce, Run, Scratch, WarmUp
from benchmarks.judged_forms import Judgements
from benchmarks.judged_tasks import Shifts

__all__ = ["LINEAR", "base", "judge_run"]

LINEAR = LearningRateSchedule(kind="linear", start=0.5, floor=0.1)


def base(tasks: Shifts, seed: int, steps: int = 300, noise: float = 0.3) -> Run:
    """A policy that was shown attempts with slips."""
    return Run(
        name=f"base-{tasks.name}",
        seed=seed,
        model=Scratch(shape=DecoderShape(num_layers=2), seed=seed),
        tasks=tasks,
        stages=(shown(steps, noise),),
        sampling=Sampling(max_new_tokens=16),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
        checkpoint_every=1000,
    )


def shown(steps: int, noise: float) -> WarmUp:
    """Fresh traces, by Muon."""
    return WarmUp(
        steps=steps,
        batch=32,
        demonstrations=0,
        noise=noise,
        learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear")),
    )


def judge_run(form: str, steps: int, noise: float = 0.1, rl: int = 0, rate: float = 3e-4) -> Run:
    """A judge: shown judgements of which some are wrong, then trained by the form's rule for ``rl`` steps."""
    stage = Reinforce(
        steps=rl,
        groups=16,
        group_size=8,
        objective=replace(grpo(kl=0.0), aggregate=Token()),
        curriculum=Uniform(),
        learner=LearnerSettings(optimizer=AdamW(lr=rate), schedule=LINEAR),
    ) if rl else None
    first = Run(
        name=f"judge-{form}",
        model=Scratch(shape=DecoderShape(num_layers=2), seed=0),
        tasks=Judgements(form=form),
        stages=(shown(steps, noise),),
        sampling=Sampling(max_new_tokens=54),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
        checkpoint_every=1000,
    )
    return first if stage is None else replace(first, name=f"judge-{form}-rl", model=Built(run=first), stages=(stage,))
