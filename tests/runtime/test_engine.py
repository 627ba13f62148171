"""The native engine: the right tokens whoever shares the batch, and weights that are what they are said to be."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
import torch
from engine_reference import agree, hub_model, pair, request, run, teacher_forced, write

from assay.core.errors import ConfigError, DataError, EngineError, UnknownNameError
from assay.core.manifest import Manifest, manifest_of
from assay.core.protocols import SwapMode
from assay.core.rollout import Span, Stop
from assay.runtime.compiled import decode_path
from assay.runtime.engine import decode
from assay.runtime.engine.native import NativeEngine
from assay.runtime.learner.publishing import make_manifest
from assay.runtime.models.hf import load_model
from assay.runtime.models.model import with_arrays


@pytest.fixture(autouse=True)
def token_by_token(monkeypatch):
    """Requests may join and leave between any two tokens, as with PyTorch, so that tests can say between which."""
    monkeypatch.setattr(decode_path, "TOKENS", 1)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return pair(tmp_path_factory.mktemp("engine") / "m", "qwen3", kv_heads=2)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return pair(tmp_path_factory.mktemp("engine") / "other", "qwen3", kv_heads=2, seed=9)


def manifest(model, version):
    return manifest_of(version, {n: t.numpy() for n, t in model.tensors.items()})


def mixed(n=24, **sampling):
    """Requests of many lengths, in groups of four that share a prompt."""
    rng = np.random.default_rng(5)
    prompts = [rng.integers(2, 41, int(rng.integers(1, 20))) for _ in range(n // 4)]
    return [request(i, prompts[i // 4], **{"max_new_tokens": 3 + i % 11, **sampling}) for i in range(n)]


def spoil(engine, name, factor):
    """A served array, times a factor, behind the back of whoever publishes."""
    with torch.no_grad():
        engine.weights.tensors[name].mul_(factor)
    engine.served.load({})


async def turns(engine, steps):
    while engine.counters["steps"] < steps:
        await asyncio.sleep(0)


# ---- tokens ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("qwen3", {"kv_heads": 2}),
        ("qwen3", {"kv_heads": 4, "tied": False}),
        ("llama", {"kv_heads": 1, "rope_theta": 500.0}),
        ("llama", {"kv_heads": 4, "tied": False, "layers": 3}),
    ],
)
def test_same_tokens_as_an_independent_sampler_on_transformers_logits(tmp_path, kind, options):
    hub, model = pair(tmp_path / "m", kind, **options)
    requests = mixed(stop_ids=(1, 7))
    compared = sum(agree(hub, r, c) for r, c in zip(requests, run(NativeEngine(model), requests), strict=True))
    assert compared > 60  # nearly all: uniforms within 1e-5 of an edge are rare


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampling",
    [{"top_k": 3}, {"top_p": 0.7}, {"top_k": 5, "top_p": 0.5, "temperature": 1.7}, {"temperature": 0.3}, {"min_p": 0.2}],
)
def test_truncated_and_tempered_sampling(models, sampling):
    hub, model = models
    requests = mixed(16, **sampling)
    done = run(NativeEngine(model), requests)
    assert sum(agree(hub, r, c) for r, c in zip(requests, done, strict=True)) > 60
    assert all(np.isfinite(c.logp_engine).all() for c in done)


def test_settings_may_differ_from_row_to_row(models):
    hub, model = models
    kinds = [
        {},
        {"top_k": 2},
        {"temperature": 0.5},
        {"top_p": 0.6},
        {"temperature": 2.0, "stop_ids": (3, 4, 5)},
        {"temperature": 0.0},
    ]
    requests = [request(i, [2 + i % 3, 5], max_new_tokens=6, **kinds[i % 6]) for i in range(18)]
    compared = 0
    for r, c in zip(requests, run(NativeEngine(model), requests), strict=True):
        compared += agree(hub, r, c)
        assert c.sampling is r.sampling
    assert compared > 80  # of 108, less those behind a stop


def test_greedy_is_transformers_generate(models):
    hub, model = models
    requests = mixed(12, temperature=0.0, stop_ids=(1,))
    for r, c in zip(requests, run(NativeEngine(model), requests), strict=True):
        prompt = torch.tensor([r.prompt.tolist()])
        wanted = hub.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            max_new_tokens=r.sampling.max_new_tokens,
        )[0, len(r.prompt) :]
        assert c.ids.tolist() == wanted.tolist()
        assert not c.logp_engine.any()  # one token has all the probability
        assert not c.columns["entropy"].values.any()


def test_logp_is_that_of_teacher_forcing(models):
    hub, model = models
    requests = mixed()
    for r, c in zip(requests, run(NativeEngine(model), requests), strict=True):
        forced = teacher_forced(hub, [*r.prompt, *c.ids])[len(r.prompt) - 1 :]
        assert np.abs(forced - c.logp_engine).max() <= 1e-5


def test_stop_reasons_and_lengths(models):
    _, model = models
    free = run(NativeEngine(model), [request(3, [5, 6], max_new_tokens=9)])[0]
    assert (free.stop, len(free.ids), free.spans) == (Stop.LENGTH, 9, (Span(0, 0, 9),))
    stop = int(free.ids[4])
    at = free.ids.tolist().index(stop)
    cut = run(NativeEngine(model), [request(3, [5, 6], max_new_tokens=9, stop_ids=(stop,))])[0]
    assert (cut.stop, cut.ids.tolist()) == (Stop.DONE, free.ids[: at + 1].tolist())
    last = run(NativeEngine(model), [request(3, [5, 6], max_new_tokens=at + 1, stop_ids=(stop,))])[0]
    assert last.stop == Stop.DONE  # a stop id in the last place is the policy's own end
    assert cut.duration > 0.0


def test_a_rollout_that_goes_on_reads_its_noise_where_it_left_off(models):
    _, model = models
    whole = run(NativeEngine(model), [request(8, [4, 9, 2], max_new_tokens=10)])[0]
    rest = run(NativeEngine(model), [request(8, [4, 9, 2, *whole.ids[:4]], first=4, max_new_tokens=6)])[0]
    assert rest.ids.tolist() == whole.ids[4:].tolist()


# ---- the running batch ---------------------------------------------------------------------------------------------------


def test_company_order_and_width_of_the_batch_change_no_token(models):
    hub, model = models
    requests = mixed(stop_ids=(1, 2, 3))
    alone = run(NativeEngine(model, max_batch=1), requests)
    for engine, order in (
        (NativeEngine(model), np.arange(24)),
        (NativeEngine(model), np.random.default_rng(0).permutation(24)),
        (NativeEngine(model, max_batch=5), np.arange(24)[::-1]),
    ):
        done = run(engine, [requests[i] for i in order])
        for i, c in zip(order, done, strict=True):
            if c.ids.tolist() == alone[i].ids.tolist():
                assert np.abs(c.logp_engine - alone[i].logp_engine).max() <= 1e-5
            else:  # only a uniform on an edge excuses it
                assert agree(hub, requests[i], alone[i]) < len(alone[i].ids)


@pytest.mark.parametrize("kernel", [True, False])
def test_requests_join_a_running_batch(models, kernel):
    hub, model = models
    engine = NativeEngine(model, kernel=kernel)
    early, late = request(1, [5, 6, 7], max_new_tokens=20), request(2, [8], max_new_tokens=20)

    async def go():
        first = asyncio.create_task(engine.generate(early))
        await turns(engine, 7)
        return await asyncio.gather(first, engine.generate(late))

    done = asyncio.run(go())
    assert engine.counters["steps"] == 27  # not 40: they ran together
    assert [agree(hub, r, c) for r, c in zip((early, late), done, strict=True)] == [20, 20]


def test_one_prefill_per_distinct_prompt(models):
    _, model = models
    engine = NativeEngine(model)
    run(engine, [request(i, [5, 6, 7] if i % 2 else [8, 9, 10, 11], max_new_tokens=4) for i in range(16)])
    assert engine.counters["prefill_prompts"] == 2
    assert engine.counters["prefill_tokens"] == 7
    assert engine.counters["sampled_tokens"] == 64
    assert engine.counters["decode_tokens"] == 48


def test_a_prefill_is_kept_only_while_somebody_waits_for_it(models):
    engine = NativeEngine(models[1], max_batch=2)

    async def go():
        for so_far in (1, 2):
            await asyncio.gather(*(engine.generate(request(i, [5, 6, 7])) for i in range(4)))
            assert engine.counters["prefill_prompts"] == so_far
        tasks = [asyncio.create_task(engine.generate(request(i, [5, 6, 7]))) for i in range(4)]
        await turns(engine, engine.counters["steps"] + 1)
        await engine.abort(["2", "3"])  # those that wait
        await asyncio.gather(*tasks)
        assert engine.counters["prefill_prompts"] == 3
        await engine.generate(request(9, [5, 6, 7]))
        assert engine.counters["prefill_prompts"] == 4

    asyncio.run(go())


def test_prompts_that_need_several_passes_reach_the_right_rows(models, monkeypatch):
    monkeypatch.setattr(decode, "_PREFILL_TOKENS", 16)
    hub, model = models
    requests = [request(i, [[5] * 9, [6, 7], [8] * 12, [9]][i % 4], max_new_tokens=3) for i in range(8)]
    engine = NativeEngine(model)
    for r, c in zip(requests, run(engine, requests), strict=True):
        assert agree(hub, r, c) == 3
    scores = asyncio.run(engine.score([np.full(n, 5, np.int32) for n in (12, 1, 9, 1)]))
    assert [len(x) for x in scores] == [12, 1, 9, 1]
    assert np.abs(scores[0][1:] - teacher_forced(hub, [5] * 12)).max() <= 1e-5
    assert np.abs(asyncio.run(engine.score([np.array([5], np.int32)]))[0]).max() == 0.0


def test_a_group_that_is_admitted_piecemeal_still_prefills_once(models):
    hub, model = models
    engine = NativeEngine(model, max_batch=3)
    requests = [request(i, [5, 6, 7] if i < 8 else [8, 9], max_new_tokens=1 + i % 4) for i in range(16)]
    done = run(engine, requests)
    assert engine.counters["prefill_tokens"] == 5
    assert sum(agree(hub, r, c) for r, c in zip(requests, done, strict=True)) == sum(1 + i % 4 for i in range(16))


def test_equal_programs_give_equal_bits(models):
    _, model = models

    async def conversation(engine, i):
        prompt = [2 + i % 5, 7]
        out = []
        for turn in range(3):
            c = await engine.generate(request(100 * turn + i, prompt, max_new_tokens=3 + i % 4, stop_ids=(1,)))
            out.append(c)
            prompt = [*prompt, *c.ids.tolist(), 9]
        return out

    async def go(engine):
        return await asyncio.gather(*(conversation(engine, i) for i in range(12)))

    a, b = NativeEngine(model, max_batch=6), NativeEngine(model, max_batch=6)
    for x, y in zip(asyncio.run(go(a)), asyncio.run(go(b)), strict=True):
        for c, d in zip(x, y, strict=True):
            assert c.ids.tobytes() == d.ids.tobytes()
            assert c.logp_engine.tobytes() == d.logp_engine.tobytes()
            assert c.columns["entropy"].values.tobytes() == d.columns["entropy"].values.tobytes()
    assert a.counters == b.counters


def test_columns_are_optional(models):
    _, model = models
    assert run(NativeEngine(model, columns=()), [request(1, [5], max_new_tokens=2)])[0].columns == {}


# ---- ends ------------------------------------------------------------------------------------------------------------


def test_abort_returns_what_there_is(models):
    _, model = models
    engine = NativeEngine(model, max_batch=3)
    whole = run(NativeEngine(model), [request(i, [5, 6], max_new_tokens=12) for i in range(5)])

    async def go():
        tasks = [asyncio.create_task(engine.generate(request(i, [5, 6], max_new_tokens=12))) for i in range(5)]
        await turns(engine, 4)
        await engine.abort(["0", "4", "nobody", "0"])  # 0 runs, 4 waits
        return await asyncio.gather(*tasks)

    done = asyncio.run(go())
    assert [c.stop for c in done] == [Stop.PARTIAL, *[Stop.LENGTH] * 3, Stop.PARTIAL]
    assert [len(c.ids) for c in done] == [4, 12, 12, 12, 0]
    assert done[0].ids.tolist() == whole[0].ids[:4].tolist()
    assert done[4].spans == ()
    for i in (1, 2, 3):
        assert done[i].ids.tolist() == whole[i].ids.tolist()


def test_many_at_once_are_what_they_are_one_by_one(models):
    _, model = models
    alone = run(NativeEngine(model), mixed(stop_ids=(1, 7)))
    engine = NativeEngine(model, max_batch=5)
    together = asyncio.run(engine.generate_all(mixed(stop_ids=(1, 7))))
    for one, other in zip(alone, together, strict=True):
        assert (one.ids.tolist(), one.spans, one.stop) == (other.ids.tolist(), other.spans, other.stop)
        np.testing.assert_array_equal(one.logp_engine, other.logp_engine)
        np.testing.assert_array_equal(one.columns["entropy"].values, other.columns["entropy"].values)
        assert not other.ids.flags.writeable
    assert asyncio.run(engine.generate_all([])) == []


def test_of_many_at_once_some_are_cut_off(models):
    _, model = models
    engine = NativeEngine(model, max_batch=3)

    async def go():
        task = asyncio.create_task(engine.generate_all([request(i, [5, 6], max_new_tokens=12) for i in range(5)]))
        await turns(engine, 4)
        await engine.abort(["0", "4"])  # 0 runs, 4 waits
        return await task

    done = asyncio.run(go())
    assert [c.stop for c in done] == [Stop.PARTIAL, *[Stop.LENGTH] * 3, Stop.PARTIAL]
    assert [len(c.ids) for c in done] == [4, 12, 12, 12, 0]
    assert done[4].spans == ()


def test_a_cancelled_waiter_for_many_frees_their_rows(models):
    _, model = models
    engine = NativeEngine(model, max_batch=3)

    async def go():
        lost = asyncio.create_task(engine.generate_all([request(i, [5], max_new_tokens=50) for i in range(4)]))
        await turns(engine, 3)
        kept = asyncio.create_task(engine.generate(request(9, [5], max_new_tokens=10)))
        lost.cancel()
        return await kept

    assert len(asyncio.run(go()).ids) == 10
    assert engine.counters["sampled_tokens"] == 3 * 3 + 10


def test_many_at_once_are_all_refused_with_one(models):
    _, model = models
    engine = NativeEngine(model)
    for wrong, words in (([5, 41], "holds id 41"), ([5], "already running")):
        with pytest.raises(DataError, match=words):
            asyncio.run(engine.generate_all([request(1, [5]), request(2 if len(wrong) > 1 else 1, wrong)]))
    assert len(asyncio.run(engine.generate_all([request(1, [5])]))[0].ids) == 4
    assert engine.counters["prefill_prompts"] == 1


def test_a_cancelled_waiter_frees_its_row(models):
    _, model = models
    engine = NativeEngine(model)

    async def go():
        lost = asyncio.create_task(engine.generate(request(1, [5], max_new_tokens=50)))
        kept = asyncio.create_task(engine.generate(request(2, [5], max_new_tokens=10)))
        await turns(engine, 3)
        lost.cancel()
        done = await kept
        assert lost.cancelled()
        return done

    assert len(asyncio.run(go()).ids) == 10
    assert engine.counters["sampled_tokens"] == 3 + 10


def test_works_across_event_loops_even_after_an_interrupted_one(models):
    _, model = models
    engine = NativeEngine(model)
    first = run(engine, [request(1, [5, 6], max_new_tokens=6)])[0]

    async def interrupted():
        task = asyncio.create_task(engine.generate(request(1, [5, 6], max_new_tokens=40)))
        await turns(engine, 10)
        assert not task.done()

    asyncio.run(interrupted())
    again = run(engine, [request(1, [5, 6], max_new_tokens=6)])[0]
    assert again.logp_engine.tobytes() == first.logp_engine.tobytes()


def test_an_abandoned_event_loop_leaves_nothing_behind(models):
    engine = NativeEngine(models[1], max_batch=1)

    async def abandoned():
        tasks = [asyncio.create_task(engine.generate(request(i, [5, 6], max_new_tokens=40))) for i in range(2)]
        await turns(engine, 10)
        return tasks

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # it would report its lost tasks
    tasks = loop.run_until_complete(abandoned())
    loop.close()
    again = run(engine, [request(i, [5, 6], max_new_tokens=3) for i in range(2)])
    assert [len(c.ids) for c in again] == [3, 3]
    assert not any(task.done() for task in tasks)


@pytest.mark.parametrize("kernel", [True, False])
def test_a_failure_reaches_everybody_and_the_engine_recovers(models, kernel):
    _, model = models
    engine = NativeEngine(model, max_batch=2, kernel=kernel)
    spoil(engine, "model.norm.weight", float("nan"))

    async def go():
        jobs = [engine.generate(request(i, [5, 6], max_new_tokens=4)) for i in range(3)]
        return await asyncio.gather(*jobs, return_exceptions=True)

    for i, error in enumerate(asyncio.run(go())):
        assert isinstance(error, EngineError)
        assert f"request '{i}'" in str(error)
        assert "not finite" in str(error)

    asyncio.run(engine.swap(manifest(model, 1)))
    assert run(engine, [request(1, [5], max_new_tokens=2)])[0].spans == (Span(1, 0, 2),)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"prompt": []}, DataError, "empty prompt"),
        ({"prompt": [5] * 60, "max_new_tokens": 5}, ConfigError, "60 tokens plus max_new_tokens=5 exceeds the context of 64"),
        ({"prompt": [5, 41]}, DataError, "holds id 41; the vocabulary has ids 0 to 40"),
        ({"prompt": [-1]}, DataError, "holds id -1"),
        ({"prompt": [5], "seed": -1}, DataError, "seed=-1"),
        ({"prompt": [5], "seed": 2**64}, DataError, "64-bit seed"),
        ({"prompt": [5], "first": -2}, DataError, "first=-2"),
    ],
)
def test_bad_requests_are_refused_before_anything_runs(models, wrong, error, words):
    engine = NativeEngine(models[1])
    with pytest.raises(error, match=words):
        run(engine, [request(1, **wrong)])
    assert not engine.counters
    assert len(run(engine, [request(1, [5] * 60, max_new_tokens=4)])[0].ids) == 4  # exactly the context is fine


def test_an_id_can_run_only_once_at_a_time(models):
    engine = NativeEngine(models[1])
    with pytest.raises(DataError, match="'1' is already running"):
        run(engine, [request(1, [5]), request(1, [6])])


def test_bad_settings():
    model = load_model  # not reached
    with pytest.raises(ConfigError, match="max_batch=0"):
        NativeEngine(model, max_batch=0)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="did you mean 'entropy'"):
        NativeEngine(model, columns=("entropi",))  # type: ignore[arg-type]


# ---- weights -----------------------------------------------------------------------------------------------------------


def test_checksums_are_those_of_the_published_weights_head_included(models, other):
    _, model = models
    engine = NativeEngine(model)
    info = engine.info()
    assert (info.version, info.vocabulary, info.context) == (0, 41, 64)
    published = manifest(model, 0)
    served = dict(asyncio.run(engine.checksums()))
    assert served.pop("lm_head.weight") == published.tensors["model.embed_tokens.weight"].digest
    assert served == {n: t.digest for n, t in published.tensors.items()}
    asyncio.run(engine.swap(manifest(other[1], 4)))
    swapped, wanted = asyncio.run(engine.checksums()), manifest(other[1], 4).tensors
    assert engine.info().version == 4
    assert {n: swapped[n] for n in wanted} == {n: t.digest for n, t in wanted.items()}
    assert swapped["lm_head.weight"] == wanted["model.embed_tokens.weight"].digest


@pytest.mark.parametrize(
    "name", ["model.layers.1.self_attn.v_proj.weight", "model.layers.0.mlp.up_proj.weight", "lm_head.weight"]
)
def test_checksums_digest_what_the_decode_path_reads(models, name):
    """Changing one served array changes both its digest and what is sampled."""
    _, model = models
    clean, faulty = NativeEngine(model), NativeEngine(model)
    spoil(faulty, name, 1.5)
    found = asyncio.run(faulty.checksums())
    changed = {n for n, d in asyncio.run(clean.checksums()).items() if found[n] != d}
    assert name in changed
    assert changed <= {name, "model.embed_tokens.weight"}  # the tied head is the embedding
    r = request(1, [5, 6], max_new_tokens=8)
    assert run(clean, [r])[0].logp_engine.tolist() != run(faulty, [r])[0].logp_engine.tolist()


def test_engine_copies_the_weights(tmp_path):
    model = load_model(write(hub_model(), tmp_path / "m"))
    engine, r = NativeEngine(model), request(1, [5], max_new_tokens=8)
    before = run(engine, [r])[0]
    published = manifest(model, 0).digest
    with torch.no_grad():
        for tensor in model.tensors.values():
            tensor.mul_(1.5)
    assert run(engine, [r])[0].logp_engine.tobytes() == before.logp_engine.tobytes()
    assert engine.weights.identity() == published != manifest(model, 0).digest


@pytest.mark.parametrize("options", [{"kv_heads": 2}, {"kind": "llama", "kv_heads": 4, "tied": False}])
def test_score_is_teacher_forcing(tmp_path, options):
    hub, model = pair(tmp_path / "m", **options)
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 41, n).astype(np.int32) for n in (9, 1, 64, 2, 9, 0)]
    scores = asyncio.run(NativeEngine(model).score(rows))
    for row, score in zip(rows, scores, strict=True):
        assert score.dtype == np.float32
        assert len(score) == len(row)
        if len(row):
            assert score[0] == 0.0
            assert np.abs(score[1:] - teacher_forced(hub, row)).max(initial=0.0) <= 1e-5
    with pytest.raises(ConfigError, match="row 0 has 65 tokens"):
        asyncio.run(NativeEngine(model).score([np.zeros(65, np.int32)]))
    with pytest.raises(DataError, match="row 1 holds id 99"):
        asyncio.run(NativeEngine(model).score([np.zeros(2, np.int32), np.array([99], np.int32)]))


def running_then_swapped(engine, requests, late, new, mode, at=5):
    """Starts requests, swaps after ``at`` steps, and poses one more while the swap is under way."""

    async def go():
        tasks = [asyncio.create_task(engine.generate(r)) for r in requests]
        await turns(engine, at)
        swap = asyncio.create_task(engine.swap(new, mode))
        await asyncio.sleep(0)
        after = asyncio.create_task(engine.generate(late))
        await swap
        return await asyncio.gather(*tasks, after)

    return asyncio.run(go())


def test_swap_drain_finishes_under_the_old_weights(models, other):
    engine = NativeEngine(models[1], max_batch=2)
    requests = [request(i, [5, 6 + i % 2], max_new_tokens=9) for i in range(3)]
    late = request(9, [5, 6], max_new_tokens=9)
    *done, after = running_then_swapped(engine, requests, late, manifest(other[1], 1), SwapMode.DRAIN)
    for r, c in zip(requests, done, strict=True):
        assert c.spans == (Span(0, 0, 9),)
        assert agree(models[0], r, c) == 9
    assert after.spans == (Span(1, 0, 9),)
    assert agree(other[0], late, after) == 9


@pytest.mark.parametrize("kernel", [True, False])
def test_swap_keep_goes_on_from_old_keys_and_values(models, other, kernel):
    (old, model), (new, newer) = models, other
    engine = NativeEngine(model, kernel=kernel)
    late = request(9, [5, 6], max_new_tokens=3)
    r = request(1, [5, 6, 7], max_new_tokens=11)
    done, after = running_then_swapped(engine, [r], late, manifest(newer, 3), SwapMode.KEEP)
    assert done.spans == (Span(0, 0, 5), Span(3, 5, 11))
    assert done.versions().tolist() == [0] * 5 + [3] * 6
    assert done.columns["entropy"].version == -1
    assert agree(new, late, after) == 3
    assert np.abs(teacher_forced(old, [5, 6, 7, *done.ids[:5]])[2:] - done.logp_engine[:5]).max() <= 1e-5
    from transformers import DynamicCache

    cache = DynamicCache()
    with torch.no_grad():
        old(torch.tensor([[5, 6, 7, *done.ids[:4].tolist()]]), past_key_values=cache)
        logits = new(torch.tensor([done.ids[4:10].tolist()]), past_key_values=cache).logits[0]
    wanted = logits.log_softmax(-1)[torch.arange(6), torch.tensor(done.ids[5:].tolist())].numpy()
    assert np.abs(wanted - done.logp_engine[5:]).max() <= 1e-5


def test_two_swaps_between_two_tokens_leave_one_span(models, other):
    engine = NativeEngine(models[1])

    async def go():
        task = asyncio.create_task(engine.generate(request(1, [5], max_new_tokens=6)))
        await turns(engine, 2)
        await engine.swap(manifest(other[1], 1), SwapMode.KEEP)
        await engine.swap(manifest(models[1], 2), SwapMode.KEEP)
        return await task

    assert asyncio.run(go()).spans == (Span(0, 0, 2), Span(2, 2, 6))


def test_a_prompt_is_prefilled_anew_under_new_weights(models, other):
    """Rows of one group that are admitted before and after a swap do not share keys and values."""
    engine = NativeEngine(models[1], max_batch=1)
    first, second = request(1, [5, 6, 7], max_new_tokens=6), request(2, [5, 6, 7], max_new_tokens=6)

    async def go():
        tasks = [asyncio.create_task(engine.generate(r)) for r in (first, second)]
        await turns(engine, 3)
        await engine.swap(manifest(other[1], 1), SwapMode.KEEP)
        return await asyncio.gather(*tasks)

    _, done = asyncio.run(go())
    assert done.spans == (Span(1, 0, 6),)
    assert agree(other[0], second, done) == 6


def test_swaps_that_do_not_fit_leave_the_old_weights(models, other):
    _, model = models
    engine, published = NativeEngine(model), manifest(model, 0)
    before = engine.info()
    arrays = {n: t.numpy() for n, t in other[1].tensors.items()}
    name = "model.layers.0.mlp.down_proj.weight"
    cases = [
        (Manifest(version=1, tensors={}), "carries no arrays"),
        (manifest_of(1, {n: a for n, a in arrays.items() if n != name}), f"lacks tensor '{name}'"),
        (manifest_of(1, {**arrays, "extra": arrays[name]}), "unknown tensor 'extra'"),
        (replace(manifest_of(1, {name: arrays[name]}), payload=arrays), "carries, but does not name, tensor 'model.embed_tokens"),
        (replace(manifest_of(1, arrays, base=published.digest), payload={}), "lacks tensor 'model.embed_tokens.weight'"),
        (
            manifest_of(1, {"lm_head.weight": arrays["model.embed_tokens.weight"]}, base=published.digest),
            "unknown tensor 'lm_head",
        ),
        (
            manifest_of(1, {name: arrays[name].T}, base=published.digest),
            r"'model.layers.0.mlp.down_proj.weight' is float32\(48, 32",
        ),
        (manifest_of(1, {**arrays, name: arrays[name].T}), r"float32\(48, 32\), the engine serves float32\(32, 48\)"),
        (manifest_of(1, {**arrays, name: arrays[name].astype(np.float64)}), "is float64"),
    ]
    for bad, words in cases:
        with pytest.raises(EngineError, match=words):
            asyncio.run(engine.swap(bad))
    assert engine.info() == before
    assert engine.weights.identity() == published.digest  # the arrays themselves, not what was remembered of them


@pytest.mark.parametrize("tied", [True, False])
def test_a_delta_replaces_only_its_tensors(tmp_path, tied):
    """Embedding, a part of a fused buffer and a norm; with separate heads the head must stay, with a tied one it must follow."""
    (_, model), (_, newer) = (pair(tmp_path / str(seed), "qwen3", tied=tied, seed=seed) for seed in (1, 2))
    names = ["model.embed_tokens.weight", "model.layers.1.self_attn.k_proj.weight", "model.layers.0.input_layernorm.weight"]
    arrays = {n: (newer if n in names else model).tensors[n].numpy() for n in model.tensors}
    engine, base = NativeEngine(model), manifest(model, 0)
    asyncio.run(engine.swap(manifest_of(7, {n: arrays[n] for n in names}, base=base.digest)))
    merged = manifest_of(7, arrays)
    served = dict(asyncio.run(engine.checksums()))
    head = "model.embed_tokens.weight" if tied else "lm_head.weight"
    assert served["lm_head.weight"] == merged.tensors[head].digest
    assert {n: served[n] for n in merged.tensors} == {n: t.digest for n, t in merged.tensors.items()}
    assert engine.info().version == 7
    requests = mixed(8)
    for c, d in zip(run(engine, requests), run(NativeEngine(with_arrays(model, arrays)), requests), strict=True):
        assert c.ids.tolist() == d.ids.tolist()
        assert c.logp_engine.tobytes() == d.logp_engine.tobytes()
    back = {n: model.tensors[n].numpy() for n in names}
    asyncio.run(engine.swap(manifest_of(8, back, base=merged.digest)))  # deltas follow one another
    assert engine.weights.identity() == base.digest


def test_a_delta_on_other_weights_is_refused_by_both_digests(models, other):
    engine, theirs, ours = NativeEngine(models[1]), manifest(other[1], 3), manifest(models[1], 0)
    name = "model.norm.weight"
    change = {name: other[1].tensors[name].numpy()}
    with pytest.raises(EngineError, match=f"digest {theirs.digest}, but the engine serves those with digest {ours.digest}"):
        asyncio.run(engine.swap(manifest_of(4, change, base=theirs.digest)))
    assert engine.weights.identity() == ours.digest
    with torch.no_grad():
        engine.weights.tensors["model.embed_tokens.weight"][3, 3] += 1.0  # what is served, not what was published once, counts
    with pytest.raises(EngineError, match="swap a full manifest in first"):
        asyncio.run(engine.swap(manifest_of(1, change, base=ours.digest)))


def test_a_second_swap_may_not_overtake_a_draining_one(models, other):
    engine = NativeEngine(models[1])

    async def go():
        task = asyncio.create_task(engine.generate(request(1, [5], max_new_tokens=8)))
        await turns(engine, 2)
        draining = asyncio.create_task(engine.swap(manifest(other[1], 1)))
        await asyncio.sleep(0)
        held = asyncio.create_task(engine.generate(request(2, [5], max_new_tokens=8)))
        await asyncio.sleep(0)
        with pytest.raises(EngineError, match="still draining"):
            await engine.swap(manifest(other[1], 2))
        await engine.abort(["2"])  # held back, never ran
        draining.cancel()
        return await asyncio.gather(task, held)

    done, held = asyncio.run(go())
    assert done.spans == (Span(0, 0, 8),)
    assert (held.stop, len(held.ids)) == (Stop.PARTIAL, 0)
    assert engine.info().version == 0


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("tied", [True, False])
def test_digests_may_be_mixed(tmp_path, tied, dtype, kernel):
    model = load_model(write(hub_model(tied=tied), tmp_path / "m"))
    engine = NativeEngine(model, dtype=dtype, kernel=kernel, digests="mixed")
    told = make_manifest(0, model.tensors, dtype, "mixed")
    assert engine.info().digests == "mixed" and engine.weights.identity() == told.digest
    for version in (1, 2):
        moved = {n: t * (1.0 + version / 8) for n, t in model.tensors.items()}
        asyncio.run(engine.swap(told := make_manifest(version, moved, dtype, "mixed")))
        found = asyncio.run(engine.checksums())
        assert {n: found[n] for n in told.tensors} == {n: info.digest for n, info in told.tensors.items()}
        assert found["lm_head.weight"].startswith("mixed:")
    spoil(engine, "model.norm.weight", 1.5)
    wrong = asyncio.run(engine.checksums())
    assert [n for n, info in told.tensors.items() if wrong[n] != info.digest] == ["model.norm.weight"]
    with pytest.raises(ConfigError, match="not by 'sha256'"):
        NativeEngine(model, digests="sha256")


@pytest.mark.parametrize("kind", ["blake2b", "mixed"])
@pytest.mark.parametrize("own", ["blake2b", "mixed"])
def test_a_delta_names_what_it_changes_by_either_digest(models, own, kind):
    engine = NativeEngine(models[1], digests=own)
    base = make_manifest(0, models[1].tensors, "float32", kind).digest
    ones = {"model.norm.weight": np.ones(models[1].shape.hidden_size, np.float32)}
    asyncio.run(engine.swap(manifest_of(1, ones, base=base)))
    assert (engine.weights.tensors["model.norm.weight"] == 1.0).all()
    with pytest.raises(EngineError, match="swap a full manifest in first"):
        asyncio.run(engine.swap(manifest_of(2, ones, base=base)))
