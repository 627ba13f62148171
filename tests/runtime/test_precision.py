"""How near the engines' log-probabilities are to one another and to float64, on a model that Muon has trained.

Random weights flatter: a trained model has logits up to 20 and states that cancel, so the last bits of its hidden states show.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from engine_reference import request, run
from learner_cases import Likelihood

from assay.core.batch import pack_rows
from assay.core.plan import Plan
from assay.core.rollout import ids_of
from assay.core.sample import supervised_sample
from assay.core.seeds import generator
from assay.runtime.engine.native import NativeEngine
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.models.hf import save_model
from assay.runtime.models.model import Model, init_model, with_arrays
from assay.runtime.settings import DecoderShape, LearnerSettings, Muon
from assay.runtime.text.tokenizer import char_tokenizer

if TYPE_CHECKING:
    from transformers import Qwen3ForCausalLM
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

TOKENIZER = char_tokenizer("0123456789>")
EOS = TOKENIZER.eos


def drawn(i: int) -> str:
    rng = generator("precision", 0, "digits", i)
    return "".join(map(str, rng.integers(0, 10, int(rng.integers(3, 6)))))


def trained(steps: int = 60) -> Model:
    """The quickstart's shape, shown how to sort digits for a few seconds."""
    model = init_model(DecoderShape(vocab_size=TOKENIZER.size), TOKENIZER, 0, init="fan_in")
    learner = TorchLearner(model, LearnerSettings(optimizer=Muon(lr=4e-3)), total_steps=steps)
    for step in range(steps):
        texts = [drawn(32 * step + i) for i in range(32)]
        rows = [
            supervised_sample(
                str(i), [(TOKENIZER.encode(f"{t}>"), False), (ids_of([*TOKENIZER.encode("".join(sorted(t))), EOS]), True)]
            )
            for i, t in enumerate(texts)
        ]
        learner.step(pack_rows(list(enumerate(rows)), {"group": np.arange(len(rows))}), Plan(), Likelihood())
    return with_arrays(model, learner.publish().payload)


@dataclass
class Measured:
    """Log-probabilities of the same sampled tokens by every path."""

    sampled: np.ndarray
    scored: np.ndarray
    learner: np.ndarray
    hub: np.ndarray
    exact: np.ndarray
    largest: float


class ExactNorm(torch.nn.Module):
    """transformers' norm computes in fp32 whatever the model's type."""

    def __init__(self, norm: Qwen3RMSNorm) -> None:
        super().__init__()
        self.weight, self.eps = norm.weight, norm.variance_epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def exactly(hub: Qwen3ForCausalLM) -> Qwen3ForCausalLM:
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

    hub = hub.double()
    for module in list(hub.modules()):
        for name, child in module.named_children():
            if isinstance(child, Qwen3RMSNorm):
                setattr(module, name, ExactNorm(child))
    return hub


@torch.no_grad()
def forced(hub: Qwen3ForCausalLM, rows: list[np.ndarray]) -> tuple[list[np.ndarray], float]:
    """Teacher-forced log-probabilities of each row, and the largest logit."""
    out: dict[int, np.ndarray] = {}
    largest = 0.0
    for length in {len(row) for row in rows}:  # rows of one length at once, so that none is padded
        which = [i for i, row in enumerate(rows) if len(row) == length]
        ids = torch.tensor(np.stack([rows[i] for i in which]), dtype=torch.long)
        logits = hub(ids).logits[:, :-1]
        largest = max(largest, float(logits.abs().max()))
        logp = logits.double().log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0].numpy()
        out |= {i: np.concatenate([[0.0], values]) for i, values in zip(which, logp, strict=True)}
    return [out[i] for i in range(len(rows))], largest


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    from transformers import Qwen3ForCausalLM

    model = trained()
    folder = tmp_path_factory.mktemp("precision") / "m"
    save_model(model, folder)
    engine = NativeEngine(model)
    prompts = [TOKENIZER.encode(f"{drawn(10_000 + i)}>") for i in range(64)]
    requests = [request(i, prompts[i // 4], max_new_tokens=8, stop_ids=(EOS,)) for i in range(256)]
    done = run(engine, requests)
    rows = [np.concatenate([r.prompt, c.ids]) for r, c in zip(requests, done, strict=True)]
    hub = Qwen3ForCausalLM.from_pretrained(folder).eval()

    def answers(values: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([v[len(r.prompt) :] for v, r in zip(values, requests, strict=True)]).astype(np.float64)

    theirs, largest = forced(hub, rows)
    return Measured(
        sampled=np.concatenate([c.logp_engine for c in done]).astype(np.float64),
        scored=answers(asyncio.run(engine.score(rows))),
        learner=answers(TorchLearner(model, LearnerSettings(), total_steps=1).score(rows)),
        hub=answers(theirs),
        exact=answers(forced(exactly(hub), rows)[0]),
        largest=largest,
    )


def test_the_model_is_a_trained_one(measured: Measured) -> None:
    assert measured.largest > 8.0
    assert 0.02 < -measured.sampled.mean() < 1.0
    assert len(measured.sampled) > 1000


PATHS = ("sampled", "scored", "learner")


@pytest.mark.parametrize("reference", ["hub", "exact"])
@pytest.mark.parametrize("path", PATHS)
def test_every_path_is_as_near_as_fp32_allows(measured: Measured, path: str, reference: str) -> None:
    """The bar that also holds over 97,000 tokens of the quickstart's base (`benchmarks/precision.py`)."""
    gap = np.abs(getattr(measured, path) - getattr(measured, reference))
    assert gap.mean() <= 1e-6
    assert np.quantile(gap, 0.999) <= 1e-5
    assert gap.max() <= 3e-5


@pytest.mark.parametrize("path", PATHS)
def test_no_path_is_much_further_from_float64_than_transformers(measured: Measured, path: str) -> None:
    ours, theirs = np.abs(getattr(measured, path) - measured.exact), np.abs(measured.hub - measured.exact)
    assert theirs.mean() > 0.0
    assert ours.mean() <= 3.0 * theirs.mean()
    assert ours.max() <= 3.0 * theirs.max()
