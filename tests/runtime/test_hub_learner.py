import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hub_cases import DENSE, FAMILIES, hub_model
from learner_cases import Likelihood, Weighted, random_batch

import assay.runtime.kernels.row_attention as rows_module
import assay.runtime.learner.hub_decoder as hub_decoder
from assay.core.errors import ConfigError, DataError
from assay.core.plan import Plan
from assay.core.rollout import ids_of
from assay.core.seeds import generator
from assay.runtime.learner.hub_decoder import HubDecoder
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.models.hf import load_model, save_model
from assay.runtime.models.hub_model import Adapter, HubModel, merge_adapter
from assay.runtime.settings import AdamW, LearnerSettings, Lora, Trunk, ValueHead
from assay.testing import random_model

LORA = Lora(rank=4)
DORA, RSLORA = replace(LORA, dora=True), replace(LORA, rslora=True)
FULL = LearnerSettings(optimizer=AdamW(lr=3e-3), micro_tokens=80)


def learner(model, settings=FULL, **changes):
    return TorchLearner(model, replace(settings, **changes), total_steps=100)


def rows():
    draw = generator("hub-rows", 0)
    return [ids_of(draw.integers(0, 96, n)) for n in (3, 30, 1, 11, 30, 17)]


def plain_logp(model, row, module=None):
    """``[len(row) - 1]`` by transformers alone."""
    with torch.no_grad():
        logits = (module or model.module())(input_ids=torch.from_numpy(row.astype(np.int64))[None]).logits[0, :-1].float()
    return torch.log_softmax(logits, 1).gather(1, torch.from_numpy(row[1:].astype(np.int64))[:, None])[:, 0].numpy()


@pytest.mark.slow
@pytest.mark.parametrize("concatenate", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_log_probabilities_are_those_of_transformers(family, concatenate):
    """Rows side by side, also beyond a window of attention, and as rectangles."""
    model = hub_model(family)
    made = learner(model)
    if not concatenate:
        made.policy.concatenated = False
    assert isinstance(made.policy, HubDecoder) and made.policy.note == ""
    for row, found in zip(rows(), made.score(rows()), strict=True):
        np.testing.assert_allclose(found[1:], plain_logp(model, row), atol=2e-5)
        assert found[0] == 0.0


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_those_of_transformers(family):
    """Of a weighted likelihood with an entropy bonus, whatever way the head makes its logits."""
    model, batch, loss = hub_model(family), random_batch(4), Weighted(bonus=0.3)
    made = learner(model, clip_norm=0.0)
    made.optimizer.step = lambda factor: None  # the gradient alone
    made.step(batch, Plan(live=("logp_new", "entropy")), loss)
    module = model.module()
    total = torch.zeros(())
    for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        ids = torch.from_numpy(batch.token("ids")[a:b].astype(np.int64))
        table = torch.log_softmax(module(input_ids=ids[None]).logits[0, :-1], 1)
        mask = torch.from_numpy(batch.token("mask")[a + 1 : b])
        logp, entropy = table.gather(1, ids[1:, None])[:, 0], -(table.exp() * table).sum(1)
        weight = torch.from_numpy(batch.token("advantage")[a + 1 : b])
        total = total - ((weight * logp + 0.3 * entropy) * mask).sum() / batch.counts.tokens
    total.backward()
    for name, parameter in module.named_parameters():
        wanted = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(made.parameters[name].grad, wanted, atol=3e-6, rtol=3e-3, msg=name)


@pytest.mark.parametrize(
    ("family", "adapter"),
    [pytest.param(f, a, marks=[] if f in DENSE else pytest.mark.prove) for f in FAMILIES for a in (None, LORA)],
    ids=lambda x: x if isinstance(x, str) else "lora" if x else "full",
)
def test_it_learns_and_goes_on_bit_for_bit(family, adapter, tmp_path):
    model, batch = hub_model(family), random_batch(6)
    first = learner(model, adapter=adapter)
    start = {n: p.detach().clone() for n, p in first.policy.weights().items()}
    losses = [first.step(batch, Plan(), Likelihood()).metrics["loss/total"] for _ in range(6)]
    assert losses[-1] < losses[0] - 0.1
    moved = {n for n, p in first.policy.weights().items() if not torch.equal(p, start[n])}
    assert moved and moved <= first.parameters.keys()
    if adapter is not None:
        assert all("lora_" in name for name in first.publish().tensors)
    first.save(tmp_path)
    second = learner(hub_model(family), adapter=adapter)
    second.load(tmp_path)
    assert second.state_digest() == first.state_digest()
    for made in (first, second):
        made.step(random_batch(6, seed=1), Plan(), Likelihood())
    assert second.state_digest() == first.state_digest()
    assert second.publish() == first.publish()


# ---- the probe ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "name", "broken", "note"),
    [
        (
            "llama",
            "_bucket",
            lambda module, q, k, v, bucket, others: q.flatten(1) * 0,
            "rows side by side differ from rows alone",
        ),
        ("mistral", "_visible", lambda length, window, device: None, "rows side by side differ from rows alone"),
        ("phi", "_bucket", lambda *given: 1 / 0, r"cannot be taken over \(ZeroDivisionError\)"),
    ],
    ids=["attention", "window", "error"],
)
def test_rows_are_rectangles_where_attention_cannot_be_taken_over(family, name, broken, note, monkeypatch):
    """The numbers stay right, and the reason is told."""
    model = hub_model(family)
    monkeypatch.setattr(rows_module, name, broken)
    made = learner(model)
    assert not made.policy.concatenated and re.search(note, made.policy.note)
    for row, found in zip(rows(), made.score(rows()), strict=True):
        np.testing.assert_allclose(found[1:], plain_logp(model, row), atol=2e-5)


def test_a_head_that_is_not_known_is_refused(monkeypatch):
    monkeypatch.setattr(hub_decoder, "_head_constants", lambda config: (0.5, 0.0))
    with pytest.raises(ConfigError, match=r"LlamaForCausalLM: its logits are not its head's weight, bias, scale and soft cap"):
        learner(hub_model("llama"))


def test_families_that_call_their_sizes_otherwise_are_read(tmp_path):
    """By their folders; what is no model with attention is refused by what its config lacks."""
    sizes = {
        "gpt_neo": {
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_layers": 2,
            "num_heads": 2,
            "max_position_embeddings": 32,
            "attention_types": [[["global"], 2]],
        },
        "mpt": {"d_model": 16, "n_heads": 2, "n_layers": 2, "max_seq_len": 32},
        "xglm": {"d_model": 16, "ffn_dim": 16, "num_layers": 2, "attention_heads": 2, "max_position_embeddings": 32},
    }
    for kind, of in sizes.items():
        save_model(random_model(kind, of), tmp_path / kind)
        made = load_model(tmp_path / kind)
        shape = made.shape
        assert (shape.hidden_size, shape.num_layers, shape.num_kv_heads, shape.max_positions) == (16, 2, 2, 32)
        row = ids_of(range(2, 12))
        np.testing.assert_allclose(learner(made).score([row])[0][1:], plain_logp(made, row), atol=1e-5)
    with pytest.raises(ConfigError, match="has no 'num_attention_heads': assay trains models with attention"):
        random_model("mamba", {"hidden_size": 16, "num_hidden_layers": 1, "state_size": 4})


def test_a_decoder_under_another_name_than_its_prefix_is_found():
    """Llama 4's text model: transformers' own `base_model` is then the whole."""
    sizes = {"hidden_size": 16, "intermediate_size": 16, "intermediate_size_mlp": 16, "num_hidden_layers": 1, "head_dim": 8}
    model = random_model("llama4_text", {**sizes, "num_attention_heads": 2, "num_key_value_heads": 1, "num_local_experts": 2})
    row = ids_of(range(2, 12))
    np.testing.assert_allclose(learner(model).score([row])[0][1:], plain_logp(model, row), atol=1e-5)


def test_a_model_that_looks_ahead_is_refused(monkeypatch):
    """One whose states depend on what stands behind a row."""
    body = HubDecoder._body
    monkeypatch.setattr(rows_module, "_bucket", lambda *given: 1 / 0)
    monkeypatch.setattr(HubDecoder, "_body", lambda self, ids, places, **others: body(self, ids, places, **others) * ids.shape[0])
    with pytest.raises(ConfigError, match="tokens behind a row change what it gives"):
        learner(hub_model("llama"))


@pytest.mark.parametrize(("noise", "refused"), [(3e-5, False), (1e-2, True)])
def test_rounding_of_a_large_model_is_no_leak(monkeypatch, noise, refused):
    """A decoder of 28 layers of 2048 on a GPU rounds by 1.1e-5 of the logits' spread when a row is padded."""
    rectangles = HubDecoder._rectangles
    rng = torch.Generator().manual_seed(0)

    def rounded(self, ids, packing):
        states = rectangles(self, ids, packing)
        return states * (1 + noise * torch.rand(states.shape, generator=rng).sub(0.5))

    monkeypatch.setattr(
        HubDecoder, "_concatenate_rows", lambda *given, **others: 1 / 0
    )  # the way of models with attention of their own
    monkeypatch.setattr(HubDecoder, "_rectangles", rounded)
    if refused:
        with pytest.raises(ConfigError, match="tokens behind a row change what it gives"):
            learner(hub_model("llama"))
    else:
        assert learner(hub_model("llama"))


# ---- adapters -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        pytest.param(f, s, marks=[] if s is LORA or (f, s) in (("gemma2", DORA), ("gpt2", RSLORA)) else pytest.mark.prove)
        for f in DENSE
        for s in (LORA, DORA, RSLORA)
    ],
    ids=lambda x: x if isinstance(x, str) else "dora" if x.dora else "rslora" if x.rslora else "lora",
)
def test_an_adapter_begins_as_its_base_and_the_reference_stays_there(family, settings):
    model, batch = hub_model(family), random_batch(6)
    made = learner(model, adapter=settings)
    for mine, base in zip(made.score(rows()), learner(model).score(rows()), strict=True):
        np.testing.assert_allclose(mine, base, atol=1e-5)
    before = made.score(rows())
    for _ in range(3):
        made.step(batch, Plan(), Likelihood())
    assert max(np.abs(a - b).max() for a, b in zip(made.score(rows()), before, strict=True)) > 1e-2
    for a, b in zip(made.score(rows(), "ref"), before, strict=True):
        np.testing.assert_array_equal(a, b)
    now = made.score(rows())
    whole = merge_adapter(replace(model, adapter=Adapter(settings, {n: p.detach() for n, p in made.parameters.items()})))
    assert whole.adapter is None and whole.tensors.keys() == model.tensors.keys()
    for a, b in zip(learner(whole).score(rows()), now, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_a_later_stage_goes_on_with_the_adapter_or_takes_it_into_the_weights():
    made = learner(hub_model("qwen3"), adapter=LORA)
    made.step(random_batch(6), Plan(), Likelihood())
    after, now = made.model(), made.score(rows())
    same, other, whole = (learner(after, adapter=a) for a in (LORA, Lora(rank=2), None))
    assert same.publish().tensors == made.publish().tensors
    assert other.publish().tensors != made.publish().tensors
    assert not any("lora_" in name for name in whole.parameters)
    for next_ in (same, other, whole):
        for a, b in zip(next_.score(rows()), now, strict=True):
            np.testing.assert_allclose(a, b, atol=2e-5)


def test_the_same_seed_draws_the_same_adapter_whatever_was_drawn_before():
    torch.manual_seed(1)
    first = learner(hub_model("llama"), adapter=LORA).publish()
    torch.rand(5)
    assert learner(hub_model("llama"), adapter=LORA).publish() == first
    assert learner(hub_model("llama"), adapter=replace(LORA, seed=1)).publish() != first


def test_what_an_adapter_leaves_frozen_is_bfloat16_under_that_precision():
    made = learner(hub_model("qwen3"), adapter=LORA, precision="bf16")
    kinds = {name: p.dtype for name, p in made.policy.weights().items()}
    assert {d for n, d in kinds.items() if "lora_" in n} == {torch.float32}
    assert {d for n, d in kinds.items() if "lora_" not in n} == {torch.bfloat16}
    batch = random_batch(6)
    losses = [made.step(batch, Plan(), Likelihood()).metrics["loss/total"] for _ in range(6)]
    assert losses[-1] < losses[0] - 0.1


def test_checkpointing_changes_no_number():
    plain, again = (learner(hub_model(f), checkpointing=c) for f, c in (("llama", False), ("llama", True)))
    for made in (plain, again):
        made.step(random_batch(6), Plan(), Likelihood())
    assert again.publish() == plain.publish()


def test_heads_and_trunks_stand_on_any_model():
    settings = replace(
        FULL, trunks=(Trunk(tau=0.1),), heads=(ValueHead(name="values"), ValueHead(name="q", trunk="critic", tau=0.1))
    )
    made = learner(hub_model("gpt_neox"), settings)
    assert "critic/embed_out.weight" not in made.heads.parameters
    assert made.step(random_batch(4), Plan(), Likelihood()).metrics["grad/values"] == 0.0


# ---- bad input ------------------------------------------------------------------------------------------------------------


def test_bad_adapters_and_models_are_refused():
    model = hub_model("llama")
    with pytest.raises(ConfigError, match=r"Lora.targets=\('query',\).*q_proj"):
        learner(model, adapter=Lora(targets=("query",)))
    trained = learner(model, adapter=LORA).publish().payload
    foreign = replace(hub_model("qwen3"), adapter=Adapter(LORA, {n: torch.from_numpy(a) for n, a in trained.items()}))
    with pytest.raises(DataError, match=r"does not fit its base.*another model"):
        learner(foreign, adapter=LORA)
    with pytest.raises(DataError, match=r"weights do not fit LlamaForCausalLM: model.norm.weight is missing"):
        learner(replace(model, tensors={n: t for n, t in model.tensors.items() if n != "model.norm.weight"}))
    with pytest.raises(ConfigError, match=r"code of its own \(auto_map\)"):
        HubModel(config={**model.config, "auto_map": {"AutoModel": "x.y"}}, tensors=model.tensors, tokenizer=model.tokenizer)
    with pytest.raises(ConfigError, match="transformers cannot read it"):
        HubModel(config={**model.config, "model_type": "nonesuch"}, tensors=model.tensors, tokenizer=model.tokenizer)
    with pytest.raises(ConfigError, match="98 ids, but the head of LlamaForCausalLM has 16 rows"):
        HubModel(config={**model.config, "vocab_size": 16}, tensors=model.tensors, tokenizer=model.tokenizer)
    with pytest.raises(ConfigError, match="PyTorch sees no CUDA device"):
        learner(model, device="cuda")
