"""What learners compute on two ranks, for `test_mesh`: `main` is a rank, `computed` also a single process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from hub_cases import hub_model
from learner_cases import SHAPE
from two_ranks import Results, kept, rank_of_two

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import AssayError
from assay.core.rollout import ids_of
from assay.objective import Entropy, FullKl, HeadValue, Objective, StatLoss, TdLoss, grpo
from assay.runtime import (
    AdamW,
    Anchor,
    Collectives,
    Ema,
    LearnerSettings,
    Lora,
    TorchLearner,
    Trunk,
    ValueHead,
    char_tokenizer,
    init_model,
)
from assay.runtime.distributed.collectives import shared_by
from assay.runtime.kernels.typed import array_of
from assay.runtime.models.any_model import AnyModel
from assay.testing.batches import random_batch

BASE = LearnerSettings(optimizer=AdamW(lr=1e-3), clip_norm=0.05, micro_tokens=24, kernel=False)  # whose micro-batches ranks have
ROWS = [ids_of([1, 2, 3, 4, 5]), ids_of([7, 6]), ids_of([9])]


def odd() -> AnyModel:
    """A model whose embedding does not part evenly."""
    return init_model(replace(SHAPE, vocab_size=33), char_tokenizer("0123456789>"), seed=0, init="fan_in")


@dataclass(frozen=True)
class Case:
    """A learner's settings, and what it learns by."""

    model: Callable[[], AnyModel] = odd
    settings: LearnerSettings = BASE
    objective: Callable[[], Objective] = field(default=lambda: grpo(kl=0.1))


def family(name: str) -> Callable[[], AnyModel]:
    return lambda: hub_model(name)


def critics() -> Objective:
    own = TdLoss(value=HeadValue(name="own"), label="own")
    return replace(grpo(kl=0.0), terms=(TdLoss(), own, Entropy(coef=0.01)))


def whole_distribution() -> Objective:
    return replace(grpo(kl=0.0), terms=(StatLoss(FullKl(model="ref"), coef=0.1),))


CASES = {
    "grpo": Case(),
    "critics": Case(
        settings=replace(BASE, heads=(ValueHead(), ValueHead(name="own", trunk="critic")), trunks=(Trunk(),)), objective=critics
    ),
    "one micro-batch": Case(settings=replace(BASE, micro_tokens=10_000)),
    "whole distribution": Case(
        settings=replace(BASE, anchors=(Anchor("ref", refresh=Ema(decay=0.5)),)), objective=whole_distribution
    ),
    "checkpointing": Case(settings=replace(BASE, checkpointing=True)),
    "bf16": Case(family("qwen3"), settings=replace(BASE, precision="bf16")),
    "gpt2": Case(family("gpt2")),
    "gemma2": Case(family("gemma2")),
    "mixtral": Case(family("mixtral")),
    "routing replayed": Case(family("mixtral"), replace(BASE, replay_routing=True)),
    "lora": Case(family("qwen3"), replace(BASE, adapter=Lora(rank=4))),
    "dora": Case(family("llama"), replace(BASE, adapter=Lora(rank=3, dora=True), precision="bf16")),
}


def made(case: Case, ranks: Collectives | None) -> tuple[TorchLearner, Any, Batch]:
    """A learner, a compiled objective, and a batch that both have looked at."""
    learner = TorchLearner(case.model(), case.settings, total_steps=4, ranks=ranks)
    program = case.objective().compile(updates=3, offers=case.settings.offers)
    batch = random_batch(0, ("logp_engine", *program.plan.columns), groups=4, size=6)
    if case.settings.replay_routing:  # two of four experts in each of two layers; of every fifth token none is known
        experts = np.random.default_rng(0).permuted(np.tile(np.arange(4), (int(batch.offsets[-1]), 2, 1)), axis=-1)[..., :2]
        experts[::5] = -1
        batch = batch.with_tokens(TokenColumn("routed_experts", experts.astype(np.int16), "engine"))
    for forward in program.plan.forwards:
        if forward.when == "batch":
            batch = learner.annotate(batch, forward)
    return learner, program, program.credit(batch)


def computed(case: Case, ranks: Collectives | None, folder: Path, load: Path | None = None) -> dict[str, Any]:
    """Two optimiser steps, a checkpoint in ``folder``, one more step; what is published, scored and perturbed at the end."""
    learner, program, batch = made(case, ranks)
    metrics: list[Mapping[str, float]] = []
    if load is None:
        metrics = [learner.step(batch, program.plan, program).metrics for _ in range(2)]
        learner.save(folder)
    else:
        learner.load(load)
    saved = learner.state_digest()
    metrics.append(learner.step(batch, program.plan, program).metrics)
    effects: dict[str, Any] = {}
    noisy: dict[str, Any] = {}
    if load is None:
        with learner.perturbed_weights() as perturbed:
            effects = dict(perturbed.effects(ROWS))
            noisy = {n: a.copy() for n, a in (perturbed.manifest.payload or {}).items()}
    tensors = learner.tensors()
    return {
        "saved": saved,
        "digest": learner.state_digest(),
        "columns": {n: c.values for n, c in batch.tokens.items() if c.producer == "learner"},
        "metrics": [dict(m) for m in metrics],
        "weights": {n: array_of(t).copy() for n, t in learner.weights().items()},
        "critics": {n: array_of(t).copy() for n, t in tensors.get("heads", {}).items()},
        "parts": {n: tuple(t.shape) for n, t in tensors["weights"].items()},
        "scores": learner.score(ROWS),
        "effects": effects,
        "noisy": noisy,
    }


def refused(ranks: Collectives | None) -> str:
    """What a step says of an infinite advantage in a single row; the learner behind it is as before."""
    learner, program, batch = made(CASES["grpo"], ranks)
    before = learner.state_digest()
    values = np.array(batch.token("advantage"))
    values[int(np.flatnonzero(batch.token("mask"))[-1])] = np.inf
    try:
        learner.step(batch.with_tokens(TokenColumn("advantage", values, "credit")), program.plan, program)
    except AssayError as error:
        assert learner.state_digest() == before
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


def main(rank: int, folder: Path, alone: Path, names: Sequence[str], sharing: Sequence[str]) -> None:
    with rank_of_two(rank, folder):
        ranks = Collectives()
        out: Results = {name: computed(case, ranks, folder / name) for name, case in CASES.items() if name in names}
        resumed = [name for name in names if name in RESUMED]
        out["again"] = {name: computed(CASES[name], ranks, folder, load=folder / name) for name in resumed}
        out["from one"] = {name: computed(CASES[name], ranks, folder, load=alone / name) for name in resumed}
        out["refused"] = refused(ranks)
        beside = Collectives(share=shared_by(2))  # the two share rows instead of dealing them out
        out["context"] = {name: computed(CASES[name], beside, folder / f"{name} in context") for name in sharing}
        kept(rank, folder, out)


NEEDS = ("assay.runtime.learner.hub_decoder", "torch.distributed.checkpoint")
CONTEXT = ("grpo", "whole distribution", "checkpointing", "gpt2", "gemma2", "mixtral", "routing replayed", "lora", "bf16")
RESUMED = ("grpo", "critics", "whole distribution", "lora")
