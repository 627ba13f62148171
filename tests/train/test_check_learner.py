"""What `check_learner` holds every learner to, and what it finds wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.core.manifest import Manifest, manifest_of
from assay.core.protocols import Learner
from assay.objective.methods import gspo, nll
from assay.runtime.distributed.mesh import MeshLearner
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.models.hub_model import hub_of
from assay.runtime.models.model import Model, init_model
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, Lora, Mesh, Muon
from assay.runtime.text.tokenizer import char_tokenizer
from assay.testing import ContractError, FakeLearner, check_learner

SHAPE = DecoderShape(
    vocab_size=16, hidden_size=24, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, intermediate_size=40, max_positions=48
)


def small() -> Model:
    return init_model(SHAPE, char_tokenizer("0123456789>"), 0, init="fan_in")


def torch_learner(model: Callable[[], Any] = small, **changes: Any) -> Callable[[], Learner]:
    settings = LearnerSettings(**({"optimizer": AdamW(lr=1e-2)} | changes))
    return lambda: TorchLearner(model(), settings, total_steps=4)


KINDS: dict[str, Callable[[], Learner]] = {
    "fake": lambda: FakeLearner(16),
    "own decoder": torch_learner(),
    "muon": torch_learner(optimizer=Muon(lr=1e-2)),
    "micro-batches": torch_learner(micro_tokens=16),
    "transformers": torch_learner(lambda: hub_of(small())),
    "adapter": torch_learner(lambda: hub_of(small()), adapter=Lora(rank=4), optimizer=AdamW(lr=5e-2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_learners_keep_the_contract(kind: str) -> None:
    report = check_learner(KINDS[kind], 16)
    assert report.skipped == () and len(report.passed) == 11
    assert report.numbers["largest change of a log-probability by a step, nats"] > 1e-3


@pytest.mark.parametrize("objective", [gspo(), nll()], ids=["gspo", "nll"])
def test_by_other_objectives(objective: Any) -> None:
    assert "resumes exactly" in check_learner(KINDS["own decoder"], 16, objective=objective).passed


@pytest.mark.prove
def test_a_learner_of_two_processes_keeps_the_contract() -> None:
    settings = LearnerSettings(optimizer=AdamW(lr=1e-2))
    report = check_learner(lambda: MeshLearner(small(), settings, total_steps=4, mesh=Mesh(data=2)), 16)
    assert "resumes exactly" in report.passed


# ---- what is found --------------------------------------------------------------------------------------------------------


class Stale(FakeLearner):
    """Publishes what it started from."""

    def __init__(self) -> None:
        super().__init__(8)
        self.start = {n: a.copy() for n, a in self.weights.items()}

    def publish(self, dtype: str = "float32", digests: str = "blake2b") -> Manifest:
        return manifest_of(self.version, self.start).round_to(dtype)


class Forgets(FakeLearner):
    """Saves no version."""

    def load(self, folder: Path) -> None:
        super().load(folder)
        self.version = 0


class Drifts(FakeLearner):
    """Takes the weights of skipped updates for nothing."""

    def skip(self, updates: int) -> None:
        self.version += updates


class OneRate(FakeLearner):
    """Moves as far at any rate."""

    def step(self, batch: Any, plan: Any, loss: Any, observer: Any = None, rate: float = 1.0) -> Any:
        return super().step(batch, plan, loss, observer)


class Unseeded(FakeLearner):
    """Each has a step length of its own."""

    made = 0

    def __init__(self) -> None:
        Unseeded.made += 1
        super().__init__(8, lr=1.0 + 0.1 * Unseeded.made)


class Positive(FakeLearner):
    """Log-probabilities above 0."""

    def score(self, rows: Any, model: str = "policy") -> Any:
        return [np.abs(x) for x in super().score(rows, model)]


class Idle(FakeLearner):
    """Counts steps, and makes none."""

    def __init__(self) -> None:
        super().__init__(8, lr=0.0)


@pytest.mark.parametrize(
    ("wrong", "finding"),
    [
        (Stale, "published a step's weights under the digests before it"),
        (lambda: Forgets(8), "loaded, it is at version 0, not 1"),
        (lambda: OneRate(8), "a step at rate 0 moved a weight"),
        (lambda: Drifts(8), "skip changed the weights or their version"),
        (Unseeded, "two alike differ after the same step"),
        (lambda: Positive(8), "log-probabilities are finite, at most 0"),
        (Idle, "changed no log-probability"),
    ],
)
def test_a_wrong_learner_is_found(wrong: Callable[[], Learner], finding: str) -> None:
    with pytest.raises(ContractError, match=finding):
        check_learner(wrong, 8)
