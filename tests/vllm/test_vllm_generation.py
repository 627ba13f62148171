"""Tokens and log-probabilities of a real server, held to the same model computed elsewhere."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch
from vllm_servers import CONTEXT, arrays_of, gap, request, rows, version

from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.manifest import manifest_of
from assay.core.rollout import Stop
from assay.runtime import LearnerSettings, NativeEngine, TorchLearner, VllmEngine
from assay.testing import check_engine


@pytest.fixture(scope="module")
def exact(tied):
    """Logits in float64 by transformers; ``load`` puts arrays into it."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(tied, dtype=torch.float64)


def load(exact, arrays):
    with torch.no_grad():
        for name, parameter in exact.named_parameters():
            parameter.copy_(torch.from_numpy(arrays[name]))


def processed(exact, prompt, ids, temperature=1.0, top_k=0, top_p=1.0):
    """Log-probabilities of ``ids`` under the distribution that was sampled: temperature, then top-k, then top-p, renormalised."""
    row = torch.tensor(np.concatenate([prompt, ids]).astype(np.int64))[None]
    with torch.no_grad():
        logits = exact(row).logits[0, len(prompt) - 1 : -1] / temperature
    if top_k:
        logits = logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], -torch.inf)
    ordered, order = logits.sort(descending=True)
    p = ordered.softmax(-1)
    outside = (p.cumsum(-1) - p) >= top_p
    logits = logits.masked_fill(torch.empty_like(outside).scatter_(1, order, outside), -torch.inf)
    return logits.log_softmax(-1).gather(1, torch.tensor(np.array(ids, np.int64))[:, None])[:, 0].numpy()


def test_the_contract_of_engines(engine, model):
    report = check_engine(engine, TorchLearner(model, LearnerSettings(), total_steps=1), tokens=16)
    assert report.passed[-2:] == ("weights", "swaps") and report.skipped == ()


@pytest.mark.parametrize("how", [{}, {"temperature": 0.5}, {"temperature": 1.3, "top_k": 7}, {"temperature": 0.8, "top_p": 0.6}])
def test_log_probabilities_are_those_of_the_distribution_that_was_sampled(engine, model, exact, how):
    load(exact, arrays_of(model))
    prompts = rows(6)

    async def sample():
        await engine.swap(version(model, 1))
        made = await asyncio.gather(*(engine.generate(request(str(i), p, seed=i, **how)) for i, p in enumerate(prompts)))
        await engine.close()
        return made

    made = asyncio.run(sample())
    wanted = [processed(exact, p, c.ids, **how) for p, c in zip(prompts, made, strict=True)]
    assert gap([c.logp_engine for c in made], wanted) < 1e-4
    assert {c.stop for c in made} == {Stop.LENGTH}
    assert len({tuple(c.ids.tolist()) for c in made}) == 6
    assert {(s.version, s.start, s.end) for c in made for s in c.spans} == {(1, 0, 16)}
    assert all(c.duration > 0 for c in made)


def test_without_temperature_the_likeliest_token_is_certain(engine, model):
    native, prompt = NativeEngine(model), rows(1)[0]

    async def both():
        await engine.swap(version(model, 1))
        return [await e.generate(request("greedy", prompt, temperature=0.0)) for e in (engine, native)]

    served, own = asyncio.run(both())
    assert served.ids.tolist() == own.ids.tolist()
    assert served.logp_engine.tolist() == [0.0] * 16


def test_a_stop_id_ends_the_answer_and_is_part_of_it(engine, model):
    prompt = rows(1)[0]

    async def sample():
        await engine.swap(version(model, 1))
        whole = await engine.generate(request("whole", prompt, seed=3, max_new_tokens=40))
        stop = int(whole.ids[5])
        return whole, await engine.generate(request("cut", prompt, seed=3, max_new_tokens=40, stop_ids=(stop,)))

    whole, cut = asyncio.run(sample())
    end = whole.ids.tolist().index(int(whole.ids[5])) + 1
    assert (cut.stop, cut.ids.tolist()) == (Stop.DONE, whole.ids[:end].tolist())
    assert len(cut.logp_engine) == end


def test_the_models_own_end_token_is_a_token_like_others(engine, model):
    """The folder's generation config names an end token; only the request's stop ids end an answer."""
    eos = model.tokenizer.eos
    arrays = arrays_of(model)
    arrays["model.embed_tokens.weight"][eos] = arrays["model.embed_tokens.weight"].mean(0)
    arrays["model.embed_tokens.weight"][[i for i in range(98) if i != eos]] *= 1e-3  # all other tokens are as good as equal

    async def sample():
        await engine.swap(manifest_of(1, arrays))
        made = await asyncio.gather(*(engine.generate(request(str(i), [i + 2], seed=i, max_new_tokens=120)) for i in range(8)))
        return made

    made = asyncio.run(sample())
    assert sum(int((c.ids == eos).sum()) for c in made) > 0
    assert {len(c.ids) for c in made} == {120}


def test_noise_is_the_requests_own_and_never_drawn_twice(engine, model):
    prompt = rows(1)[0]

    async def sample():
        await engine.swap(version(model, 1))
        asked = [
            request("a", prompt, seed=7),
            request("b", prompt, seed=7),
            request("c", prompt, seed=7, first=16),
            request("d", prompt, seed=8),
        ]
        return [(await engine.generate(r)).ids.tolist() for r in asked]

    a, b, resumed, other = asyncio.run(sample())
    assert a == b
    assert len({tuple(a), tuple(resumed), tuple(other)}) == 3


def test_scores_are_the_models_and_the_same_bits_twice(engine, model):
    native = NativeEngine(model)
    texts = [*rows(3, 40), *rows(1, CONTEXT, seed=2), *rows(1, CONTEXT - 1, seed=3), *rows(1, 1), np.zeros(0, np.int32)]

    async def score():
        await engine.swap(version(model, 1))
        await engine.generate(request("warm", texts[3][:900], max_new_tokens=1))  # now in the prefix cache
        return await engine.score(texts), await engine.score(texts), await native.score(texts)

    first, again, own = asyncio.run(score())
    assert [x.tolist() for x in first] == [x.tolist() for x in again]
    assert [len(x) for x in first] == [40, 40, 40, CONTEXT, CONTEXT - 1, 1, 0]
    assert gap(first[:6], own[:6]) < 1e-4
    assert {x[0] for x in first[:6]} == {0.0}
    assert all(x.dtype == np.float32 for x in first)


def test_more_than_the_context_holds_is_refused_where_the_server_would_cut_it_off(server, engine, model):
    prompt = [5] * (CONTEXT - 3)
    body = {"token_ids": prompt, "sampling_params": {"max_tokens": 10, "ignore_eos": True}}
    cut = server.post("/inference/v1/generate", body).json()["choices"][0]
    assert (cut["finish_reason"], len(cut["token_ids"])) == ("length", 3)

    with pytest.raises(ConfigError, match="1021 tokens plus max_new_tokens=10 exceeds the server's context of 1024"):
        asyncio.run(engine.generate(request("long", prompt, max_new_tokens=10)))
    with pytest.raises(ConfigError, match="row 0 has 1025 tokens"):
        asyncio.run(engine.score([np.full(CONTEXT + 1, 5, np.int32)]))


def test_requests_that_cannot_be_answered_are_refused(engine):
    with pytest.raises(DataError, match="empty prompt"):
        asyncio.run(engine.generate(request("none", [])))
    with pytest.raises(DataError, match="holds id 98; the vocabulary has ids 0 to 97"):
        asyncio.run(engine.generate(request("far", [5, 98])))

    async def twice():
        return await asyncio.gather(
            *(engine.generate(request("same", [5], max_new_tokens=200)) for _ in range(2)), return_exceptions=True
        )

    made = asyncio.run(twice())
    assert sum(isinstance(x, DataError) for x in made) == 1


def test_aborted_requests_return_what_they_have(server, engine, model):
    """The bare id would say that it aborted one request, and do nothing."""

    async def cut():
        await engine.swap(version(model, 1))
        tasks = [asyncio.create_task(engine.generate(request(str(i), [i + 2], seed=i, max_new_tokens=1000))) for i in range(20)]
        await asyncio.sleep(1.0)  # sixteen run, four wait in the server's queue
        wire = next(iter(engine._gate.jobs.values())).wire
        said = server.post("/abort_requests", {"request_ids": [wire]}).json()
        await asyncio.sleep(0.3)
        early = sum(task.done() for task in tasks)
        await engine.abort(["unknown", *(str(i) for i in range(20))])
        return said, early, await asyncio.gather(*tasks)

    said, early, made = asyncio.run(cut())
    assert said == {"status": "aborted", "aborted": 1}
    assert early == 0
    assert {c.stop for c in made} == {Stop.PARTIAL}
    lengths = [len(c.ids) for c in made]
    assert max(lengths) < 1000
    assert sum(n > 0 for n in lengths) == 16
    assert all(c.spans == () for c in made if len(c.ids) == 0)


def test_a_cancelled_request_ends_on_the_server_too(server, engine):
    async def cancel():
        task = asyncio.create_task(engine.generate(request("gone", [5], max_new_tokens=1000)))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0.5)

    asyncio.run(cancel())
    running = [x for x in server.get("/metrics").text.splitlines() if x.startswith("vllm:num_requests_running")]
    assert running and all(float(x.split()[-1]) == 0 for x in running)


def test_two_event_loops_one_after_the_other(engine, model):
    made = [asyncio.run(engine.generate(request("a", [5], seed=1))).ids.tolist() for _ in range(2)]
    assert made[0] == made[1]


def test_unknown_weights_before_the_first_swap_are_version_minus_one(server, model):
    engine = VllmEngine(server.settings(), model)
    info = engine.info()
    assert (info.version, info.vocabulary, info.context, info.dtype) == (-1, 98, CONTEXT, "float32")
    assert [s.version for s in asyncio.run(engine.generate(request("a", [5]))).spans] == [-1]
    assert asyncio.run(engine.checksums()) is None


def test_weights_that_are_not_numbers_are_an_error(engine, model):
    arrays = arrays_of(model)
    arrays["model.norm.weight"][:] = np.nan

    async def sample():
        await engine.swap(manifest_of(1, arrays))
        try:
            with pytest.raises(EngineError, match=r"request 'a': .*not finite"):
                await engine.generate(request("a", [5, 6]))
            with pytest.raises(EngineError, match=r"row 0: .*not finite"):
                await engine.score(rows(1))
        finally:
            await engine.swap(version(model, 2))

    asyncio.run(sample())
