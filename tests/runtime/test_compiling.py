"""Compiled layers: the same numbers, few graphs whatever the rows, and where they are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hub_cases import FAMILIES, hub_model
from learner_cases import Weighted, random_batch, small_model

from assay.core.errors import ConfigError
from assay.core.plan import Plan
from assay.runtime import LearnerSettings, Lora, Mesh, TorchLearner
from assay.runtime.kernels import compile as compiling
from assay.runtime.learner.hub_decoder import HubDecoder
from assay.runtime.learner.packing import pack_offsets

ROWS = ([0, 7, 20], [0, 7, 14, 20, 33], [0, 40], [0, 9, 11, 30, 60])


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> object:
    """Graphs are captured and run as they are: what a compiler makes of them is its own affair."""
    monkeypatch.setattr(compiling, "BACKEND", "eager")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield torch._dynamo.utils.counters
    torch._dynamo.reset()


@pytest.mark.prove
def test_compiled_layers_compute_the_same_by_few_graphs_for_any_rows(
    captured: dict[str, dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, options = FAMILIES["qwen3"]
    monkeypatch.setitem(FAMILIES, "qwen3", (kind, {**options, "num_hidden_layers": 6}))
    model = hub_model("qwen3")
    plain, made = HubDecoder(model), HubDecoder(model, compile=True)
    for lengths in ROWS:
        offsets = np.array(lengths)
        ids, where = torch.arange(2, 2 + offsets[-1]), torch.tensor([3, 5, int(offsets[-1]) - 1])
        found: list[list[torch.Tensor]] = []
        for decoder in (plain, made):
            decoder.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                logp = decoder.columns(ids, pack_offsets(offsets), where)[0]
            logp.sum().backward()
            gradient = torch.cat([p.grad.flatten() for p in decoder.trainable_parameters().values() if p.grad is not None])
            found.append([logp.detach(), gradient])
        assert torch.equal(found[0][0], found[1][0])
        assert float((found[0][1] - found[1][1]).norm()) < 1e-3 * float(found[0][1].norm())
    graphs = captured["stats"]["unique_graphs"]
    assert 2 <= graphs <= 6  # before and behind attention, not for each of the layers
    with torch.no_grad():  # what is exact stays as it was
        assert torch.equal(
            made.columns(ids, pack_offsets(offsets), where)[0], plain.columns(ids, pack_offsets(offsets), where)[0]
        )
    assert captured["stats"]["unique_graphs"] == graphs


@pytest.mark.parametrize("adapter", [None, pytest.param(Lora(rank=2), marks=pytest.mark.prove)])
def test_a_learner_steps_by_compiled_layers(adapter: Lora | None, captured: dict[str, dict[str, int]]) -> None:
    settings = LearnerSettings(precision="bf16", anchors=(), compile=True, adapter=adapter)
    weights: list[torch.Tensor] = []
    for each in (settings, replace(settings, compile=False, checkpointing=True)):  # both by transformers
        made = TorchLearner(small_model(), each, total_steps=2)
        for _ in range(2):
            made.step(random_batch(), Plan(), Weighted())
        weights.append(torch.cat([p.detach().flatten() for p in made.parameters.values()]))
    assert captured["stats"]["unique_graphs"] >= 2
    assert float((weights[0] - weights[1]).abs().max()) < 2e-3  # Adam's steps are of the size of the rate


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"precision": "bf16", "checkpointing": True}, "checkpointing=True"), ({}, "precision='fp32'")],
)
def test_layers_are_not_compiled_for_nothing(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LearnerSettings(compile=True, **settings)


def test_what_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Mixtral.* is not compiled: its routers"):
        HubDecoder(hub_model("mixtral"), compile=True)
    with pytest.raises(ConfigError, match="not compiled; leave it"):
        Mesh(data=2).check(LearnerSettings(precision="bf16", compile=True))
