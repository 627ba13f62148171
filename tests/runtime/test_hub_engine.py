"""The engine for any Hugging Face causal LM: right in every family, whoever shares the batch, and served weights as said."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from shutil import which

import numpy as np
import pytest
import torch
from engine_families import CONTEXT, FAMILIES, VOCABULARY, arrays, build, configs, family, forced, gap, ragged
from engine_reference import agree, hub_model, pair, request, run
from hub_cases import hub_model as brought

from assay.core.errors import AssayError, ConfigError, EngineError, UnknownNameError, WeightProofError
from assay.core.manifest import manifest_of
from assay.core.protocols import SwapMode
from assay.core.rollout import Span, Stop
from assay.runtime.engine import hub_decode
from assay.runtime.engine.hub_engine import TransformersEngine
from assay.runtime.engine.native import NativeEngine
from assay.runtime.engine.settings import InProcess
from assay.train.proof import WeightProof, probe_rows

CLOSE = 1e-5


async def turns(engine, steps):
    while engine.counters["steps"] < steps:
        await asyncio.sleep(0)


# ---- every family ------------------------------------------------------------------------------------------------------


UNLIKE = ("qwen3", "gemma2", "gemma3", "gpt2", "phi", "mixtral")
"""Families that differ most; the others are for the proofs."""


@pytest.fixture(scope="module", params=[f if f in UNLIKE else pytest.param(f, marks=pytest.mark.prove) for f in FAMILIES])
def served(request):
    module = family(request.param)
    return module, TransformersEngine(module, CONTEXT, max_batch=4)


@pytest.mark.slow
def test_log_probabilities_are_those_of_a_plain_pass(served):
    """Ten requests of many lengths over four slots: rows join midway, leave, move, and go beyond the windows."""
    module, engine = served
    requests = ragged()
    done = run(engine, requests)
    assert max(gap(module, r, c) for r, c in zip(requests, done, strict=True)) <= CLOSE
    assert [len(c.ids) for c in done] == [r.sampling.max_new_tokens for r in requests]
    assert len({c.ids.tobytes() for c in done}) == len(done)


@pytest.mark.slow
def test_a_request_gives_the_same_tokens_alone_among_others_and_cut_in_two(served):
    _, engine = served
    requests = ragged(6, first=50)
    together = run(engine, requests)
    for r, c in zip(requests[1::2], together[1::2], strict=True):
        alone = run(engine, [r])[0]
        assert alone.ids.tolist() == c.ids.tolist()
        assert np.abs(alone.logp_engine - c.logp_engine).max() <= CLOSE

    async def cut():
        jobs = [asyncio.create_task(engine.generate(r)) for r in requests]
        await turns(engine, engine.counters["steps"] + 5)
        await engine.abort([requests[2].id])
        return (await asyncio.gather(*jobs))[2]

    part = asyncio.run(cut())
    r, t = requests[2], len(part.ids)
    assert part.stop == Stop.PARTIAL
    assert 0 < t < r.sampling.max_new_tokens
    rest = replace(
        r,
        prompt=np.concatenate([r.prompt, part.ids]),
        first=t,
        sampling=replace(r.sampling, max_new_tokens=r.sampling.max_new_tokens - t),
    )
    assert [*part.ids, *run(engine, [rest])[0].ids] == together[2].ids.tolist()


@pytest.mark.slow
def test_greedy_is_generate(served):
    module, engine = served
    for r, c in zip(some := ragged(4, temperature=0.0, max_new_tokens=14), run(engine, some), strict=True):
        prompt = torch.tensor([r.prompt.tolist()])
        wanted = module.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=14, eos_token_id=None, pad_token_id=0
        )
        assert c.ids.tolist() == wanted[0, len(r.prompt) :].tolist()


def test_score_is_a_plain_pass(served, monkeypatch):
    """Also when the logits of a row do not fit at once and it passes in pieces."""
    module, engine = served
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, VOCABULARY, n).astype(np.int32) for n in (9, 1, 40, 2, 0)]
    for held in (hub_decode._LOGIT_ELEMENTS, 7 * VOCABULARY * len(rows)):
        monkeypatch.setattr(hub_decode, "_LOGIT_ELEMENTS", held)
        for row, score in zip(rows, asyncio.run(engine.score(rows)), strict=True):
            assert (len(score), score[:1].any()) == (len(row), False)
            if len(row) > 1:
                assert np.abs(score[1:] - forced(module, row)).max() <= CLOSE


# ---- beside the native engine --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    hub, model = pair(tmp_path_factory.mktemp("hub") / "m", "qwen3", kv_heads=2)
    return hub, TransformersEngine(hub, 64), NativeEngine(model)


def test_tokens_are_the_native_engines_and_the_references(both):
    hub, engine, native = both
    kinds = [{}, {"top_k": 3}, {"top_p": 0.7}, {"min_p": 0.1}, {"temperature": 0.4}, {"stop_ids": (3, 4, 5)}]
    requests = [request(i, [2 + i % 3, 5, 9][: 1 + i % 3], max_new_tokens=9, **kinds[i % 5]) for i in range(15)]
    compared = 0
    for r, c, d in zip(requests, run(engine, requests), run(native, requests), strict=True):
        compared += agree(hub, r, c)
        assert (c.ids.tolist(), c.stop, c.spans) == (d.ids.tolist(), d.stop, d.spans)
        assert np.abs(c.logp_engine - d.logp_engine).max() <= CLOSE / min(1.0, r.sampling.temperature)
        assert np.abs(c.columns["entropy"].values - d.columns["entropy"].values).max() <= 1e-4
    assert compared > 80
    assert engine.counters == native.counters


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt": []},
        {"prompt": [5] * 60, "max_new_tokens": 5},
        {"prompt": [5, 41]},
        {"prompt": [-1]},
        {"prompt": [5], "seed": -1},
        {"prompt": [5], "first": -2},
    ],
)
def test_bad_requests_are_refused_in_the_same_words(both, wrong):
    said = []
    for engine in both[1:]:
        with pytest.raises(AssayError) as caught:
            run(engine, [request(1, **wrong)])
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]
    assert len(run(both[1], [request(1, [5] * 60, max_new_tokens=4)])[0].ids) == 4  # exactly the context is fine


def test_bad_rows_and_manifests_are_refused_in_the_same_words(both):
    name, good = "model.layers.0.mlp.down_proj.weight", arrays(both[0])
    manifests = [
        manifest_of(1, {n: a for n, a in good.items() if n != name}),
        manifest_of(1, {**good, "extra": good[name]}),
        manifest_of(1, {**good, name: good[name].T.copy()}),
        manifest_of(1, {**good, name: good[name].astype(np.float64)}),
        manifest_of(1, {name: good[name]}, base="no such digest"),
        replace(manifest_of(1, good), payload=None),
    ]
    rows = [np.zeros(65, np.int32), np.array([99], np.int32)]
    said = []
    for engine in both[1:]:
        heard = []
        for bad in manifests:
            with pytest.raises(EngineError) as caught:
                asyncio.run(engine.swap(bad))
            heard.append(str(caught.value))
        for row in rows:
            with pytest.raises(AssayError) as refused:
                asyncio.run(engine.score([row]))
            heard.append(str(refused.value))
        said.append(heard)
    assert said[0] == said[1]
    assert both[1].info() == both[2].info()
    assert asyncio.run(both[1].checksums()) == asyncio.run(both[2].checksums())


def test_bad_settings(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    module = family("llama")
    for options, words in (
        ({"max_batch": 0}, "max_batch=0"),
        ({"dtype": "float16"}, "not dtype='float16'"),
        ({"context": 1}, "context=1"),
        ({"context": CONTEXT + 1}, f"positions for 2 to {CONTEXT}"),
        ({"device": "cuda"}, "finds no CUDA device here"),
        ({"trained": ["lm_head.bias"]}, "'lm_head.bias' is no parameter of LlamaForCausalLM"),
        ({"columns": ("routed_experts",)}, "no routers of LlamaForCausalLM"),
        ({"columns": ("routed_experts",), "compile": True}, "drop one"),
    ):
        with pytest.raises(ConfigError, match=words):
            TransformersEngine(module, **{"context": CONTEXT, **options})
    with pytest.raises(UnknownNameError, match="did you mean 'entropy'"):
        TransformersEngine(module, CONTEXT, columns=("entropi",))
    module.lm_head.weight = torch.nn.Parameter(module.lm_head.weight.to(torch.int8), requires_grad=False)
    with pytest.raises(ConfigError, match=r"'lm_head\.weight' is torch\.int8: quantised"):
        TransformersEngine(module, CONTEXT)


# ---- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt2", "gemma3", "llama"])
def test_swaps_serve_what_the_manifest_names(name):
    module, new = family(name), family(name, seed=7)
    engine, published = TransformersEngine(module, CONTEXT), manifest_of(4, arrays(new))
    asyncio.run(engine.swap(published))
    served = dict(asyncio.run(engine.checksums()))
    head = served.pop("lm_head.weight", None) if new.config.tie_word_embeddings else served["lm_head.weight"]
    assert served == {n: t.digest for n, t in published.tensors.items()}
    embedding = next(n for n, p in new.named_parameters() if p is new.get_output_embeddings().weight)
    assert head == published.tensors[embedding].digest
    r = request(1, [5, 6], max_new_tokens=9)
    done = run(engine, [r])[0]
    assert done.spans == (Span(4, 0, 9),)
    assert gap(new, r, done) <= CLOSE

    changed = arrays(new)
    for tensor in sorted(changed)[::3]:
        changed[tensor] = changed[tensor] * np.float32(1.5)
    delta = {n: changed[n] for n in sorted(changed)[::3]}
    asyncio.run(engine.swap(manifest_of(5, delta, base=published.digest)))
    merged = manifest_of(5, changed)
    assert engine.weights.identity() == merged.digest
    with pytest.raises(EngineError, match=f"those with digest {merged.digest}"):
        asyncio.run(engine.swap(manifest_of(6, delta, base=published.digest)))


def test_checksums_digest_what_the_module_multiplies_with():
    """A changed parameter shows in its digest; a head that was tied and is a copy shows as a tensor that nobody publishes."""
    module = family("gpt2")
    engine = TransformersEngine(module, CONTEXT)
    before = dict(asyncio.run(engine.checksums()))
    with torch.no_grad():
        module.transformer.h[1].mlp.c_fc.weight[0, 0] += 1.0
    after = dict(asyncio.run(engine.checksums()))
    assert {n for n in before if before[n] != after[n]} == {"transformer.h.1.mlp.c_fc.weight"}
    module.transformer.h[1].mlp.c_fc.weight = torch.nn.Parameter(torch.zeros(32, 128))  # another object in its place is seen too
    assert asyncio.run(engine.checksums())["transformer.h.1.mlp.c_fc.weight"] not in (*before.values(), *after.values())
    module.lm_head.weight = torch.nn.Parameter(module.transformer.wte.weight.detach().clone())
    untied = TransformersEngine(module, CONTEXT)
    with pytest.raises(EngineError, match=r"lacks tensor 'lm_head.weight'"):
        asyncio.run(untied.swap(manifest_of(1, arrays(family("gpt2", seed=2)))))


class Publisher:
    """What a proof asks of a learner."""

    def __init__(self, module):
        self.module = module

    def score(self, rows):
        return [np.concatenate([np.zeros(1, np.float32), forced(self.module, row)]) for row in rows]


def test_a_proof_of_weights_holds_for_a_tied_head_under_another_name():
    """GPT-2 calls its embedding transformer.wte.weight; its head is checked as lm_head.weight all the same."""
    engine = TransformersEngine(family("gpt2"), CONTEXT)
    proof = WeightProof(probe_rows(VOCABULARY, CONTEXT, 0), perturb=False)
    asyncio.run(proof.calibrate(manifest_of(0, arrays(family("gpt2"))), engine, Publisher(family("gpt2"))))
    new = manifest_of(1, arrays(family("gpt2", seed=7)))
    asyncio.run(engine.swap(new))
    assert asyncio.run(proof.check(new, engine, Publisher(family("gpt2", seed=7))))
    digests = engine.weights.digests
    engine.weights.digests = lambda: {**digests(), "lm_head.weight": "that of a copy that was left behind"}
    with pytest.raises(WeightProofError, match=r"in 1 of 29: lm_head\.weight"):
        asyncio.run(proof.check(new, engine, Publisher(family("gpt2", seed=7))))


@pytest.mark.parametrize("mode", list(SwapMode))
def test_modes_of_a_swap(mode):
    old, new = family("gemma3"), family("gemma3", seed=7)
    engine = TransformersEngine(family("gemma3"), CONTEXT)
    running, late = request(1, [5, 6, 7], max_new_tokens=20), request(2, [5, 6, 7], max_new_tokens=8)

    async def go():
        task = asyncio.create_task(engine.generate(running))
        await turns(engine, 6)
        swap = asyncio.create_task(engine.swap(manifest_of(3, arrays(new)), mode))
        await asyncio.sleep(0)
        after = asyncio.create_task(engine.generate(late))
        await swap
        return await asyncio.gather(task, after)

    done, after = asyncio.run(go())
    cut = {
        SwapMode.DRAIN: (Span(0, 0, 20),),
        SwapMode.KEEP: (Span(0, 0, 6), Span(3, 6, 20)),
    }
    assert done.spans == cut[mode]
    assert after.spans == (Span(3, 0, 8),)
    assert gap(new, late, after) <= CLOSE
    if mode is not SwapMode.KEEP:
        assert gap(old, running, done) <= CLOSE
        return
    from transformers import DynamicCache

    cache = DynamicCache()
    with torch.no_grad():
        old(torch.tensor([[5, 6, 7, *done.ids[:5].tolist()]]), past_key_values=cache)
        logits = new(torch.tensor([done.ids[5:19].tolist()]), past_key_values=cache).logits[0]
    wanted = logits.log_softmax(-1)[torch.arange(14), torch.tensor(done.ids[6:].tolist())].numpy()
    assert np.abs(wanted - done.logp_engine[6:]).max() <= CLOSE


def test_bfloat16_takes_serves_and_digests_rounded_weights():
    engine = TransformersEngine(family("qwen3"), CONTEXT, dtype="bfloat16")
    new = family("qwen3", seed=7)
    whole = manifest_of(2, arrays(new))
    with pytest.raises(EngineError, match=r"is float32\(128, 32\), the engine serves bfloat16\(128, 32\)"):
        asyncio.run(engine.swap(whole))
    unnamed = manifest_of(2, whole.round_to("bfloat16").payload)  # the bits alone could be any 16-bit numbers
    with pytest.raises(EngineError, match=r"is uint16\(128, 32\), the engine serves bfloat16"):
        asyncio.run(engine.swap(unnamed))
    asyncio.run(engine.swap(whole.round_to("bfloat16")))
    rounded = whole.round_to("bfloat16")
    assert (engine.info().dtype, engine.info().version) == ("bfloat16", 2)
    assert asyncio.run(engine.checksums()).items() >= {n: t.digest for n, t in rounded.tensors.items()}.items()
    assert engine.weights.identity() == rounded.digest
    half, requests = new.to(torch.bfloat16), ragged(6)
    done = run(engine, requests)
    assert max(gap(half, r, c) for r, c in zip(requests, done, strict=True)) <= 0.1  # rounding of bfloat16 logits
    assert all(c.logp_engine.dtype == np.float32 for c in done)
    for c, r in zip(done, requests, strict=True):
        assert run(engine, [r])[0].ids[:1].tolist() == c.ids[:1].tolist()


class Lora(torch.nn.Module):
    """A linear layer with a low-rank addition, its parameters named as PEFT names them."""

    def __init__(self, base):
        super().__init__()
        self.base_layer = base
        self.lora_A = torch.nn.ModuleDict({"default": torch.nn.Linear(base.in_features, 2, bias=False)})
        self.lora_B = torch.nn.ModuleDict({"default": torch.nn.Linear(2, base.out_features, bias=False)})

    def forward(self, x):
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x))


def adapted(base, seed):
    """A model on the very parameters of another, with adapters of its own."""
    module = family("llama")
    for name, parameter in base.named_parameters():
        place, _, leaf = name.rpartition(".")
        setattr(module.get_submodule(place), leaf, parameter)
    torch.manual_seed(seed)
    for layer in module.model.layers:
        layer.self_attn.q_proj = Lora(layer.self_attn.q_proj)
    return module


def test_adapters_alone_travel_over_a_base_that_is_shared():
    base = family("llama")
    ours, theirs = adapted(base, 1), adapted(base, 2)
    names = [n for n, _ in ours.named_parameters() if "lora" in n]
    engine = TransformersEngine(ours, CONTEXT, trained=names)
    assert ours.lm_head.weight is theirs.lm_head.weight is base.lm_head.weight
    published = manifest_of(1, arrays(theirs, names))
    assert len(published.tensors) == 4
    with pytest.raises(EngineError, match=r"unknown tensor 'lm_head\.weight'"):
        asyncio.run(engine.swap(manifest_of(1, arrays(theirs))))
    frozen = arrays(base)
    asyncio.run(engine.swap(published))
    assert asyncio.run(engine.checksums()) == {n: t.digest for n, t in published.tensors.items()}
    r = request(3, [7, 8, 9], max_new_tokens=9)
    done = run(engine, [r])[0]
    assert gap(theirs, r, done) <= CLOSE < gap(base, r, done)
    assert all(np.array_equal(frozen[n], p.detach().numpy()) for n, p in base.named_parameters())


# ---- experts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mixtral", "qwen3moe"])
def test_routed_experts_are_those_of_the_position_behind_which_a_token_is_drawn(name):
    module = family(name)
    engine = TransformersEngine(family(name), CONTEXT, max_batch=3, columns=("entropy", "routed_experts"))
    requests = ragged(8)
    for r, c in zip(requests, run(engine, requests), strict=True):
        found = c.columns["routed_experts"]
        assert (found.values.shape, found.values.dtype, found.version) == ((len(c.ids), 2, 2), np.int16, 0)
        with torch.no_grad():
            logits = module(torch.tensor([[*r.prompt.tolist(), *c.ids.tolist()]]), output_router_logits=True).router_logits
        chosen = torch.stack([x.topk(2, -1).indices for x in logits], 1)[len(r.prompt) - 1 : -1]
        assert found.values.tolist() == chosen.tolist()


def test_an_abort_before_the_first_token_has_an_empty_column():
    engine = TransformersEngine(family("mixtral"), CONTEXT, max_batch=1, columns=("routed_experts",))

    async def go():
        tasks = [asyncio.create_task(engine.generate(request(i, [5], max_new_tokens=4))) for i in range(2)]
        await turns(engine, 1)
        await engine.abort(["1"])
        return await asyncio.gather(*tasks)

    done = asyncio.run(go())
    assert [c.columns["routed_experts"].values.shape for c in done] == [(4, 2, 2), (0, 2, 2)]
    assert "entropy" not in done[0].columns


# ---- models that do not fit ------------------------------------------------------------------------------------------------


def test_models_without_keys_and_values_of_attention_are_refused():
    from transformers import AutoModelForSeq2SeqLM, BloomConfig, Llama4TextConfig, MambaConfig, RwkvConfig, T5Config

    small = {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 2, "pad_token_id": 0}
    more = {"intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2, "num_local_experts": 2}
    for module, words in (
        (build(MambaConfig(**small, state_size=4)), "MambaForCausalLM cannot be decoded in this process: it has layers of type"),
        (build(RwkvConfig(**small, attention_hidden_size=16)), "keeps no keys and values.*vLLM engine"),
        (build(BloomConfig(vocab_size=32, hidden_size=16, n_layer=1, n_head=2)), "BloomForCausalLM .* fails at steps"),
        (build(Llama4TextConfig(**small, **more)), "'chunked_attention'"),
        (
            AutoModelForSeq2SeqLM.from_config(T5Config(vocab_size=32, d_model=16, d_ff=16, d_kv=8, num_layers=1, num_heads=2)),
            "T5ForConditionalGeneration .* encoder",
        ),
    ):
        with pytest.raises(ConfigError, match=words):
            TransformersEngine(module, 32)


@pytest.mark.parametrize("lost", ["position_ids", "attention_mask"])
def test_models_that_do_not_heed_positions_or_masks_are_refused(lost):
    module = family("llama")
    forward = module.forward

    def deaf(**given):
        return forward(**{**given, lost: None})

    module.forward = deaf
    with pytest.raises(ConfigError, match="single steps at a position and a mask per row give other log-probabilities"):
        TransformersEngine(module, CONTEXT)


def test_the_trial_sees_a_window_that_is_not_kept(monkeypatch):
    """However long the window is."""
    config = configs()["mistral"]()
    config.sliding_window = 64
    assert TransformersEngine(build(config), CONTEXT).info().context == CONTEXT
    assert config.sliding_window == 64
    monkeypatch.setattr(hub_decode.HubDecodePath, "_windows", lambda _: {"full_attention": None})
    with pytest.raises(ConfigError, match="other log-probabilities"):
        TransformersEngine(build(config), CONTEXT)
    assert config.sliding_window == 64


def test_attention_that_takes_no_mask_is_refused():
    module = family("llama")
    module.config._attn_implementation = "flash_attention_2"
    with pytest.raises(ConfigError, match='load the model with attn_implementation="sdpa" or "eager"'):
        TransformersEngine(module, CONTEXT)


def test_windows_that_a_module_counts_over_the_cache_are_refused_where_they_matter():
    """GPT-Neo's local layers see the last places of the cache, not of a row: short rows beside long ones would see nothing."""
    from transformers import GPTNeoConfig

    module = build(
        GPTNeoConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_layers=2,
            num_heads=4,
            window_size=40,
            max_position_embeddings=CONTEXT,
            attention_types=[[["global", "local"], 1]],
            initializer_range=0.15,
        )
    )
    with pytest.raises(ConfigError, match=r"its layers see the last 40 places of the cache, .*give a context of 40 or less"):
        TransformersEngine(module, 41)
    requests = ragged(4, max_new_tokens=9)
    for r, c in zip(requests, run(TransformersEngine(module, 40), requests), strict=True):
        assert gap(module, r, c) <= CLOSE


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_angles_that_depend_on_the_longest_row_are_refused_where_they_do(kind):
    from transformers import LlamaConfig

    turned = {"dynamic": {"factor": 2.0}, "longrope": {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4, "factor": 3.0}}[kind]
    module = build(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=1,
            num_attention_heads=4,
            max_position_embeddings=CONTEXT,
            initializer_range=0.15,
            rope_parameters={"rope_type": kind, "rope_theta": 100.0, "original_max_position_embeddings": 32, **turned},
        )
    )
    with pytest.raises(ConfigError, match="use context=32 or less, not 33"):
        TransformersEngine(module, 33)
    requests = ragged(4, max_new_tokens=9)
    for r, c in zip(requests, run(TransformersEngine(module, 32), requests), strict=True):
        assert gap(module, r, c) <= CLOSE


@pytest.mark.parametrize("context", [2, 3, 5])
def test_a_short_context_is_served_to_its_end(context):
    module = family("gemma2")
    r = request(1, [5], max_new_tokens=context - 1)
    assert gap(module, r, run(TransformersEngine(module, context), [r])[0]) <= CLOSE


# ---- static shapes -----------------------------------------------------------------------------------------------------------


def test_a_step_over_all_slots_gives_the_same_tokens(monkeypatch):
    """What is compiled elsewhere, run as it is: idle slots and the unused length change nothing, whatever they held."""
    shapes = []

    def plain(forward, device):
        def step(ids, positions, mask):
            shapes.append((tuple(ids.shape), tuple(mask["full_attention"].shape)))
            return forward(ids, positions, mask)

        return step

    monkeypatch.setattr(hub_decode, "_compile_forward", plain)
    module, requests = family("gemma3"), ragged()
    wanted = run(TransformersEngine(module, CONTEXT, max_batch=4), requests)
    for r, c, d in zip(
        requests, run(TransformersEngine(module, CONTEXT, max_batch=4, compile=True), requests), wanted, strict=True
    ):
        assert c.ids.tolist() == d.ids.tolist()
        assert gap(module, r, c) <= CLOSE
    assert len(set(shapes)) <= 3  # the cache grew twice at most
    assert len(shapes) > 20


@pytest.mark.prove
@pytest.mark.skipif(which("g++") is None, reason="steps are compiled by g++")
def test_a_compiled_step_gives_the_same_tokens():
    module, requests = hub_model(), [request(i, [5, 6 + i], max_new_tokens=5) for i in range(4)]
    wanted = run(TransformersEngine(module, 16), requests)
    for c, d in zip(run(TransformersEngine(module, 16, compile=True), requests), wanted, strict=True):
        assert c.ids.tolist() == d.ids.tolist()
        assert np.abs(c.logp_engine - d.logp_engine).max() <= CLOSE


def test_a_bounded_engine_refuses_longer_rows():
    """The bound is the engine's, and the model's own where that is smaller."""
    model = brought("qwen3")
    assert (
        InProcess(context=64).context_for(160) == 64
        and InProcess(context=640).context_for(160) == InProcess().context_for(160) == 160
    )
    engine = InProcess(context=24).serve(model)
    assert engine.info().context == 24
    with pytest.raises(ConfigError, match="exceeds the context of 24"):
        asyncio.run(engine.generate(request(1, [5] * 12, max_new_tokens=13)))
    with pytest.raises(ConfigError, match=r"InProcess\.context=-1"):
        InProcess(context=-1)
