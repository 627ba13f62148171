"""Mismatch: an engine's log-probabilities of what it sampled, against the learner's of the same tokens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from assay.core.protocols import Engine, Request
from assay.core.rollout import Ids, Sampling, ids_of
from assay.core.seeds import generator
from assay.runtime.engine.settings import EngineSpec, InProcess, Native
from assay.runtime.settings import LearnerSettings
from assay.selftest.selftest_part import SelftestContext, SelftestFinding
from assay.selftest.small_models import SHAPE, decoder

if TYPE_CHECKING:
    from assay.runtime.learner.learner import TorchLearner

__all__ = ["AGREEMENT_BAR", "compare_with_learner", "in_process", "native", "vllm"]

AGREEMENT_BAR = 1e-4
"""Nats by which two float32 paths may differ in one token."""
PROMPTS, NEW = 16, 64


def native(context: SelftestContext) -> SelftestFinding:
    """Assay's own engine."""
    return _here(Native())


def in_process(context: SelftestContext) -> SelftestFinding:
    """Transformers beside the learner."""
    return _here(InProcess())


def vllm(context: SelftestContext) -> SelftestFinding:
    """A vLLM server, started for this."""
    from assay.selftest.vllm_server import served_model

    with served_model(decoder(), context.folder, SHAPE.max_positions, context.say) as settings:
        return _here(settings)


def _here(spec: EngineSpec) -> SelftestFinding:
    from assay.runtime.learner.learner import TorchLearner

    learner = TorchLearner(decoder(), LearnerSettings(), total_steps=1)
    return compare_with_learner(spec.build(learner), learner, AGREEMENT_BAR)


def compare_with_learner(engine: Engine, learner: TorchLearner, bar: float) -> SelftestFinding:
    """Samples, and scores what was sampled by the learner.

    Args:
        engine, learner: with the same weights.
        bar: nats by which they may differ in one token.

    Returns:
        ``tokens``, ``max_nats``, ``mean_nats`` (of the absolute differences) and ``dtype``; a failure above the bar, and where
        what was sampled is too little to say anything.
    """
    rng = generator("selftest/prompts", 0)
    prompts = [ids_of(rng.integers(2, engine.info().vocabulary, 8)) for _ in range(PROMPTS)]
    requests = [Request(id=f"{i}", prompt=p, seed=i, sampling=Sampling(max_new_tokens=NEW)) for i, p in enumerate(prompts)]

    async def sample() -> list[tuple[Ids, Ids, np.ndarray]]:
        done = await asyncio.gather(*(engine.generate(r) for r in requests))
        return [(r.prompt, c.ids, c.logp_engine) for r, c in zip(requests, done, strict=True)]

    drawn = asyncio.run(sample())
    scored = learner.score([ids_of(np.concatenate([p, ids])) for p, ids, _ in drawn])
    gaps = np.concatenate([np.abs(s[len(p) :] - logp) for s, (p, _, logp) in zip(scored, drawn, strict=True)])
    most, mean = float(gaps.max()), float(gaps.mean())
    failures = [f"{most:.3g} nats in one token, above {bar}"] if not most <= bar else []
    if len(gaps) < PROMPTS * NEW // 4:
        failures.append(f"only {len(gaps)} tokens were sampled")
    numbers = {"tokens": len(gaps), "max_nats": most, "mean_nats": mean, "dtype": engine.info().dtype}
    return SelftestFinding(numbers=numbers, failures=tuple(failures))
