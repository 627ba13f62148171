"""Small batches and loss programs for the learner's tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from assay.core.batch import Batch, pack_rows
from assay.core.columns import TokenColumn
from assay.core.sample import Sample
from assay.core.seeds import generator
from assay.runtime.models.model import Model, init_model
from assay.runtime.settings import DecoderShape
from assay.runtime.text.tokenizer import char_tokenizer

SHAPE = DecoderShape(
    vocab_size=16, hidden_size=24, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, intermediate_size=40, max_positions=48
)


def small_model(shape: DecoderShape = SHAPE, seed: int = 0) -> Model:
    return init_model(shape, char_tokenizer("0123456789>"), seed, init="fan_in")


def random_batch(rollouts: int = 12, rows_each: int = 1, seed: int = 0, longest: int = 24) -> Batch:
    """Random ids; the first third of a row is its prompt. Three rollouts a group; every third has advantage zero throughout."""
    rng = generator("learner-cases", seed)
    rows: list[tuple[int, Sample]] = []
    for rollout in range(rollouts):
        for _ in range(rows_each):
            n = int(rng.integers(4, longest))
            mask = np.arange(n) >= max(1, n // 3)
            advantage = (rng.standard_normal(n) * (rollout % 3 > 0)).astype(np.float32)
            columns = {"advantage": TokenColumn("advantage", advantage)}
            ids = rng.integers(0, SHAPE.vocab_size, n).astype(np.int32)
            rows.append((rollout, Sample(rollout=str(rollout), ids=ids, mask=mask, columns=columns)))
    return pack_rows(rows, {"group": np.arange(rollouts) // 3})


@dataclass
class Weighted:
    """Loss = -sum(advantage * logp) / loss tokens, minus ``bonus`` times the mean entropy. Remembers what it was shown."""

    bonus: float = 0.0
    poison: str = ""
    seen: list[Batch] = field(default_factory=list)

    def credit(self, batch: Batch) -> Batch:
        return batch

    def prepare(self, batch: Batch) -> Batch:
        return batch

    def active(self, batch: Batch) -> NDArray[np.bool_]:
        return np.add.reduceat(batch.token("advantage") != 0, batch.offsets[:-1]) > 0

    def micro(self, batch: Batch, live: Mapping[str, Any]) -> tuple[torch.Tensor, Mapping[str, float]]:
        self.seen.append(batch)
        mask = torch.from_numpy(batch.token("mask"))
        terms = -torch.from_numpy(batch.token("advantage")) * live["logp_new"]
        if self.bonus:
            terms = terms - self.bonus * live["entropy"]
        if self.poison == "loss":
            terms = terms * float("nan")
        if self.poison == "gradient":
            terms = terms + 0.0 * (live["logp_new"] * 0.0).sqrt()  # value 0, derivative 0 / 0
        return (terms * mask).sum() / batch.counts.tokens, {"terms": float(mask.sum())}


@dataclass
class Likelihood(Weighted):
    """Negative log-likelihood per loss token."""

    def active(self, batch: Batch) -> NDArray[np.bool_]:
        return np.ones(len(batch), np.bool_)

    def micro(self, batch: Batch, live: Mapping[str, Any]) -> tuple[torch.Tensor, Mapping[str, float]]:
        return -live["logp_new"].sum() / batch.counts.tokens, {}
