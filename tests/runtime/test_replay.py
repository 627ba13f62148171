"""The engine's routing of a mixture of experts, told of every position and replayed in the learner."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hub_cases import exaggerated, hub_model
from learner_cases import Weighted

from assay.core.batch import Batch, pack_rows
from assay.core.canon import FrozenMap
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError
from assay.core.plan import Forward, Plan
from assay.core.protocols import Request
from assay.core.rollout import Call, Completion, Rollout, Sampling, Stop, ids_of
from assay.core.sample import samples
from assay.core.task import Context, Task
from assay.core.wire import rollout_from_wire, rollout_to_wire
from assay.runtime import Anchor, InProcess, LearnerSettings, Lora, TorchLearner
from assay.runtime.models.model import init_model
from assay.runtime.settings import AdamW, DecoderShape
from assay.runtime.text.tokenizer import char_tokenizer

MIXTURES = ("mixtral", "qwen3_moe")
SETTINGS = LearnerSettings(optimizer=AdamW(lr=1e-3), micro_tokens=160)


def learner(family: str, **changes: Any) -> TorchLearner:
    return TorchLearner(exaggerated(family), replace(SETTINGS, **changes), total_steps=10)


def attempt(call: Call, name: str) -> Rollout:
    task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "?"}))
    context = Context(key=name, group="g", task=task.public_view(), messages=())
    return Rollout(id=name, context=context, calls=(call,), stop=Stop.DONE, seed=0)


def sampled(family: str, dtype: str, n: int = 6) -> tuple[Batch, list[Rollout]]:
    """Rollouts of an engine as a batch, every advantage 1, prompts of several lengths, two of them shared."""
    engine = InProcess(dtype=dtype, routing=True).build(learner(family))
    rng = np.random.default_rng(0)
    prompts = [ids_of(rng.integers(2, 96, 3 + i // 2 * 4)) for i in range(n)]
    prompts = [prompts[i - i % 2] for i in range(n)]
    requests = [Request(id=str(i), prompt=p, seed=i, sampling=Sampling(max_new_tokens=24)) for i, p in enumerate(prompts)]

    async def work() -> list[Completion]:
        return list(await asyncio.gather(*map(engine.generate, requests)))

    done = asyncio.run(work())
    calls = [Call(id=0, parent=None, prefix=p, completion=c, text="") for p, c in zip(prompts, done, strict=True)]
    made = [attempt(call, str(i)) for i, call in enumerate(calls)]
    batch = pack_rows([(i, row) for i, r in enumerate(made) for row in samples(r)], {"group": np.arange(n)})
    return batch.with_tokens(TokenColumn("advantage", np.ones(int(batch.offsets[-1]), np.float32))), made


def own_routing(family: str, batch: Batch) -> np.ndarray:
    """``[N, layers, k]`` by the router of transformers, row by row, in float32."""
    module = exaggerated(family).module()
    out: list[np.ndarray] = []
    for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        with torch.no_grad():
            ids = torch.from_numpy(batch.token("ids")[a:b].astype(np.int64))[None]
            logits = module(ids, output_router_logits=True).router_logits
        out.append(torch.stack([x.topk(2, -1).indices for x in logits], 1).numpy())
    return np.concatenate(out)


def logp(made: TorchLearner, batch: Batch) -> np.ndarray:
    return made.annotate(batch, Forward("logp_old")).token("logp_old")[batch.token("mask")]


@pytest.mark.parametrize("family", MIXTURES)
def test_the_engine_tells_of_every_position_that_the_learner_computes(family: str) -> None:
    """Row for row what transformers' routers choose at the position before each token; nothing is before a row's first."""
    batch, made = sampled(family, "float32")
    column = batch.tokens["routed_experts"]
    assert (column.dtype, column.trailing, column.producer, column.fill) == (np.int16, (2, 2), "engine", -1)
    wanted = own_routing(family, batch)
    first = np.zeros(int(batch.offsets[-1]), np.bool_)
    first[batch.offsets[:-1]] = True
    assert (column.values[first] == -1).all()
    np.testing.assert_array_equal(np.sort(column.values[~first], -1), np.sort(wanted[np.flatnonzero(~first) - 1], -1))
    again = rollout_from_wire(rollout_to_wire(made[0]))
    (row,), (same,) = samples(made[0]), samples(again)
    np.testing.assert_array_equal(row.columns["routed_experts"].values, same.columns["routed_experts"].values)


@pytest.mark.slow
@pytest.mark.parametrize("family", MIXTURES)
def test_replay_in_float32_changes_nothing(family: str) -> None:
    batch, _ = sampled(family, "float32")
    plain, replays = learner(family), learner(family, replay_routing=True)
    np.testing.assert_allclose(logp(replays, batch), logp(plain, batch), atol=2e-6)
    plan, loss = Plan(live=("logp_new",)), Weighted()
    for made in (plain, replays):
        made.step(batch, plan, loss)
    np.testing.assert_allclose(replays.gradient.buffer.numpy(), plain.gradient.buffer.numpy(), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", MIXTURES)
def test_replay_brings_a_bfloat16_engine_nearer_and_teaches_the_gates(family: str) -> None:
    batch, _ = sampled(family, "bfloat16", 16)
    engine = batch.token("logp_engine")[batch.token("mask")]
    flips = (np.sort(own_routing(family, batch)[:-1], -1) != np.sort(batch.token("routed_experts")[1:], -1)).any(-1)
    assert 0.0 < flips[batch.token("mask")[1:]].mean() < 0.2, "rounding moves some tokens to other experts"
    replays = learner(family, replay_routing=True, clip_norm=0.0)
    apart, nearer = (np.abs(logp(made, batch) - engine) for made in (learner(family), replays))
    assert nearer.max() < 0.7 * apart.max() and nearer.mean() < apart.mean()
    before = {n: p.detach().clone() for n, p in replays.parameters.items()}
    replays.step(batch, Plan(live=("logp_new",)), Weighted())
    gates = [n for n in before if n.endswith("mlp.gate.weight")]
    assert len(gates) == 2
    for name in gates:
        assert replays.parameters[name].grad.abs().max() > 1e-4 and not torch.equal(before[name], replays.parameters[name])


@pytest.mark.slow
@pytest.mark.parametrize("checkpointing", [False, True])
def test_wrong_routing_is_obeyed_the_same_in_both_directions(checkpointing: bool) -> None:
    """Experts turned round: other log-probabilities; the gradient is that of the same routing, layers computed twice or once."""
    batch, _ = sampled("mixtral", "float32")
    turned = (batch.token("routed_experts") + 1) % 4
    turned[batch.token("routed_experts") < 0] = -1
    other = batch.with_tokens(replace(batch.tokens["routed_experts"], values=turned))
    made = learner("mixtral", replay_routing=True, checkpointing=checkpointing, clip_norm=0.0)
    assert np.abs(logp(made, other) - logp(made, batch)).max() > 0.1
    made.step(other, Plan(live=("logp_new",)), Weighted())
    once = learner("mixtral", replay_routing=True, clip_norm=0.0)
    once.step(other, Plan(live=("logp_new",)), Weighted())
    np.testing.assert_allclose(made.gradient.buffer.numpy(), once.gradient.buffer.numpy(), atol=1e-6)
    free = learner("mixtral", clip_norm=0.0)
    free.step(other, Plan(live=("logp_new",)), Weighted())
    assert np.abs(free.gradient.buffer.numpy() - once.gradient.buffer.numpy()).max() > 1e-3, "without replay nothing is obeyed"


def agreed(made: TorchLearner, batch: Batch) -> np.ndarray:
    inputs = made.passes.inputs(batch)
    found = made.passes.live(inputs, batch, Plan(live=("logp_new",)))
    return found["router_agreement"].detach().numpy()


def test_agreement_counts_tokens_and_layers() -> None:
    batch, _ = sampled("mixtral", "float32")
    made = learner("mixtral")
    assert (agreed(made, batch) == 1.0).all()
    mask = batch.token("mask")
    values = np.array(batch.token("routed_experts"))
    last = np.flatnonzero(mask)[-3:]
    values[last[0], 0] = (values[last[0], 0] + 1) % 4  # another set in one of the two layers
    values[last[1]] = values[last[1]][:, ::-1]  # the same sets in another order
    values[last[2]] = -1
    found = agreed(made, batch.with_tokens(replace(batch.tokens["routed_experts"], values=values)))
    assert found[-3:].tolist() == [0.5, 1.0, -1.0] and (found[:-3] == 1.0).all()


def test_rows_that_say_nothing_are_routed_by_the_learner() -> None:
    batch, _ = sampled("mixtral", "float32")
    made, free = learner("mixtral", replay_routing=True), learner("mixtral")
    nothing = np.full_like(batch.token("routed_experts"), -1)
    blank = batch.with_tokens(replace(batch.tokens["routed_experts"], values=nothing))
    np.testing.assert_array_equal(logp(made, blank), logp(free, batch))
    turned = (batch.token("routed_experts") + 1) % 4
    reposed = replace(batch, rows={**batch.rows, "reposed": np.ones(len(batch), np.bool_)})
    reposed = reposed.with_tokens(replace(batch.tokens["routed_experts"], values=turned))
    np.testing.assert_array_equal(logp(made, reposed), logp(free, batch))
    bare = replace(batch, tokens={n: c for n, c in batch.tokens.items() if n != "routed_experts"})
    np.testing.assert_array_equal(logp(made, bare), logp(free, batch))
    rows = [batch.token("ids")[:9]]
    logp(made, batch)
    np.testing.assert_array_equal(made.score(rows)[0], free.score(rows)[0])


@pytest.mark.parametrize("adapter", [None, Lora(rank=2)], ids=["full", "lora"])
def test_anchors_keep_their_own_routing(adapter: Lora | None) -> None:
    """Beside a policy that replays another routing, also where they share its base."""
    batch, _ = sampled("mixtral", "float32")
    turned = batch.with_tokens(replace(batch.tokens["routed_experts"], values=(batch.token("routed_experts") + 1) % 4))
    made = learner("mixtral", replay_routing=True, adapter=adapter, anchors=(Anchor(),))
    both = made.annotate(turned, Forward("logp_old"), Forward("logp_ref", "ref"))
    mask = batch.token("mask")
    np.testing.assert_allclose(both.token("logp_ref")[mask], logp(learner("mixtral"), batch), atol=2e-6)
    assert np.abs(both.token("logp_ref") - both.token("logp_old"))[mask].max() > 0.1


def test_what_cannot_be_replayed_is_refused() -> None:
    settings = replace(SETTINGS, replay_routing=True)
    with pytest.raises(ConfigError, match="replay_routing: GPT2LMHeadModel has no experts"):
        TorchLearner(hub_model("gpt2"), settings, total_steps=1)
    native = init_model(DecoderShape(vocab_size=14), char_tokenizer("0123456789"), seed=0)
    with pytest.raises(ConfigError, match="own decoder has no experts"):
        TorchLearner(native, settings, total_steps=1)
    batch, _ = sampled("mixtral", "float32", 2)
    column = batch.tokens["routed_experts"]
    one_layer, one_expert = column.values[:, :1], column.values[..., :1]
    for values, said in ((one_layer, "tells of 1 layers with experts, the model has 2"), (one_expert, "another model")):
        with pytest.raises(DataError, match=said):
            logp(learner("mixtral", replay_routing=True), batch.with_tokens(replace(column, values=values)))
