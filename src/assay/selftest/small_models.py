"""The models and runs that parts try things with: small enough for seconds, made here, with weights that are random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay.core.import_path import filed_as
from assay.core.rollout import Sampling
from assay.lab.controls import RandomReward, Rewarded
from assay.runtime.engine.settings import Auto, EngineSpec
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings
from assay.train.models import Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from assay_tasks import SortDigits

if TYPE_CHECKING:
    from assay.core.protocols import Engine
    from assay.runtime.distributed.mesh import AnyLearner
    from assay.runtime.models.model import Model

__all__ = ["SHAPE", "FaultyEngine", "decoder", "practice", "two_stages"]

SHAPE = DecoderShape(
    hidden_size=128,
    num_layers=4,
    num_heads=4,
    num_kv_heads=2,
    head_dim=32,
    intermediate_size=384,
    max_positions=128,
    tied=False,
)
"""Qwen3's architecture at 0.8M weights; the head is not tied, so that any engine can serve it."""

SOURCE = SortDigits(levels=(1, 2, 3))


def decoder(seed: int = 0) -> Model:
    """Random weights and a character tokenizer."""
    from assay.runtime.models.model import init_model
    from assay.train.models import scratch_tokenizer

    source = Scratch(shape=SHAPE, alphabet=SOURCE.alphabet)
    tokenizer = scratch_tokenizer(source)
    return init_model(replace(SHAPE, vocab_size=tokenizer.size), tokenizer, seed, init="fan_in")


def practice(engine: EngineSpec, steps: int = 6, lr: float = 1e-3) -> Run:
    """RL under coin tosses: each step has a signal, so that each changes the weights."""
    return Run(
        name="selftest",
        model=Scratch(shape=SHAPE, alphabet=SOURCE.alphabet),
        tasks=Rewarded(source=SOURCE, scorer=RandomReward()),
        stages=(Reinforce(steps=steps, groups=4, group_size=4, learner=LearnerSettings(optimizer=AdamW(lr=lr))),),
        sampling=Sampling(max_new_tokens=8),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
        engine=engine,
        checkpoint_every=100,
    )


def two_stages(warm: int = 12, rl: int = 12) -> Run:
    """A warm-up and RL with a checkpoint every four steps, to be killed and gone on with."""
    run = practice(Auto(), steps=rl)
    shown = WarmUp(steps=warm, batch=32, demonstrations=400, learner=LearnerSettings(optimizer=AdamW(lr=2e-3)))
    return replace(run, tasks=SOURCE, stages=(shown, *run.stages), checkpoint_every=4)


@filed_as("assay.lab.selftest.small:Planted")
@dataclass(frozen=True, slots=True)
class FaultyEngine:
    """An engine with a planted fault (`assay.testing.faults`).

    Attributes:
        engine: the healthy one.
        fault: ``StaleModel``, ``BaseWeights`` or ``StaleTensor``.
        healthy: weight swaps that pass untouched before the fault sets in.
    """

    engine: EngineSpec
    fault: str
    healthy: int = 3

    def build(self, learner: AnyLearner) -> Engine:
        """As `assay.runtime.engine.settings.EngineSpec.build`."""
        from assay.testing import faults

        inner = self.engine.build(learner)
        if self.fault == "StaleTensor":
            return faults.StaleTensor(inner, "model.layers.1.input_layernorm.weight", self.healthy)
        kind = {"StaleModel": faults.StaleModel, "BaseWeights": faults.BaseWeights}[self.fault]
        return kind(inner, self.healthy)
