"""Servers that cannot serve, that go away and that come back: each an error that says what to do."""

from __future__ import annotations

import asyncio
import hashlib
from types import SimpleNamespace

import numpy as np
import pytest
from vllm_servers import PROCESSED, arrays_of, free_port, gap, request, rows, version

from assay.core.errors import ConfigError, EngineError
from assay.core.manifest import manifest_of
from assay.runtime import DecoderShape, NativeEngine, VllmEngine, VllmSettings, char_tokenizer, init_model
from assay.runtime.vllm.snapshots import WeightFiles


def refused(settings: VllmSettings, model, kind, text: str) -> str:
    with pytest.raises(kind, match=text) as caught:
        asyncio.run(VllmEngine(settings, model).generate(request("a", [5])))
    return str(caught.value)


def test_no_server(model):
    url = f"http://127.0.0.1:{free_port()}"
    said = refused(VllmSettings(url=url), model, EngineError, "no server can be reached there")
    assert f"GET {url}/v1/models" in said
    assert f"VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --host 127.0.0.1 --port {url.rpartition(':')[2]} --enable-scale-out" in said


def test_another_vocabulary(server, model):
    for size, word in ((97, "knows token 97"), (99, "does not know token 98")):
        other = SimpleNamespace(shape=SimpleNamespace(vocab_size=size), tensors=model.tensors)
        refused(server.settings(), other, ConfigError, f"{word}: its vocabulary is not the model's {size}")


def test_another_model_of_the_same_vocabulary(server, model):
    tokenizer = char_tokenizer("".join(map(chr, range(32, 127))) + "\n")
    other = init_model(DecoderShape(vocab_size=98, hidden_size=64, num_heads=2, num_kv_heads=2), tokenizer, seed=0)
    refused(server.settings(), other, ConfigError, "serves another model: in .* has shape")


def test_without_tokens_development_or_processed_log_probabilities(start, model, tied):
    """Each with the command line that has what is missing."""
    with start("--dtype", "float32", *PROCESSED) as server:
        text = r"v1/generate was refused with status 403: 'Scale-out endpoints are disabled"
        said = refused(server.settings(), model, ConfigError, text)
        assert "--enable-scale-out: start it with: VLLM_SERVER_DEV_MODE=1 vllm serve" in said

    with start("--dtype", "float32", *PROCESSED, "--enable-scale-out", variables={}) as server:
        text = r"server_info.* was refused with status 404: 'Not Found'; its weights can be"
        assert "start it with: VLLM_SERVER_DEV_MODE=1 vllm serve" in refused(server.settings(), model, ConfigError, text)

    with start("--dtype", "float32", "--enable-scale-out", served=tied) as server:
        said = refused(server.settings(), model, ConfigError, "log-probabilities of kind 'raw_logprobs'")
        assert "--logprobs-mode processed_logprobs" in said


def test_a_tied_head_on_the_cpu_would_stay_the_old_one(start, model, tied):
    """Shown past the engine, which refuses such a server: new embedding, old head."""
    new, files, native, text = version(model, 2, 5), WeightFiles("", tied, "tied"), NativeEngine(model), rows(1)[0]
    path = files.full(new).path
    with start("--dtype", "float32", *PROCESSED, "--enable-scale-out", served=tied) as server:
        refused(server.settings(), model, ConfigError, r"tied to its embedding on the CPU.*untied_copy\('MODEL', 'COPY'\)")
        loaded = server.post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(path)}})
        body = {"token_ids": text.tolist(), "sampling_params": {"max_tokens": 1, "prompt_logprobs": 0}}
        told = server.post("/inference/v1/generate", body).json()["prompt_logprobs"][1:]
        sums = server.post("/weight_checker", {"action": "checksum"}).json()["checksums"]
    files.close()
    assert loaded.status_code == 200
    embedding = new.payload["model.embed_tokens.weight"]
    padded = np.concatenate([embedding, np.zeros((-len(embedding) % 64, embedding.shape[1]), np.float32)])
    assert hashlib.sha256(padded.tobytes()).hexdigest() in sums.values()
    served = np.array([told[i][str(token)]["logprob"] for i, token in enumerate(text[1:].tolist())], np.float32)
    asyncio.run(native.swap(new))
    assert gap([served], [asyncio.run(native.score([text]))[0][1:]]) > 0.1


def test_a_server_that_is_killed_and_started_again(start, model):
    server = start("--dtype", "float32", *PROCESSED, "--enable-scale-out")
    engine, texts = VllmEngine(server.settings(), model), rows()

    async def killed():
        await engine.swap(version(model, 1))
        scores = await engine.score(texts)
        task = asyncio.create_task(engine.generate(request("cut", texts[0], max_new_tokens=900)))
        await asyncio.sleep(1.0)
        server.kill()
        with pytest.raises(EngineError, match=r"request 'cut': .*the server went away before it answered"):
            await task
        with pytest.raises(EngineError, match="no server can be reached"):
            await engine.swap(version(model, 2))
        with pytest.raises(EngineError, match=r"request 'late': .*no server can be reached"):
            await engine.generate(request("late", texts[0]))
        return scores

    scores = asyncio.run(killed())
    with server.again():
        text = r"calls 'default', and it was told to serve '.*v1' \(version 1\): the server was restarted"
        with pytest.raises(EngineError, match=text):
            asyncio.run(engine.generate(request("a", texts[0])))
        asyncio.run(engine.swap(version(model, 2)))
        assert engine.info().version == 2
        assert gap(asyncio.run(engine.score(texts)), scores) == 0.0


def test_a_slow_server_is_given_up(server, model):
    settings = VllmSettings(url=server.url, request_seconds=0.3)
    engine = VllmEngine(settings, model)
    with pytest.raises(EngineError, match=r"request 'slow': .*no answer within 0.3 s; .*VllmSettings.request_seconds"):
        asyncio.run(engine.generate(request("slow", [5], max_new_tokens=1000)))


def test_bfloat16(spare, model):
    """Tokens of a server in bfloat16 are not those of fp32: how far they are off is what the bench of mismatch is about."""
    engine, native, texts = VllmEngine(spare.settings(), model), NativeEngine(model), rows(8, 64)
    full = version(model, 1)
    new = full.round_to("bfloat16")

    async def around():
        assert engine.info().dtype == "bfloat16"
        with pytest.raises(
            EngineError, match=r"is <f4, the server serves bfloat16; hand it over as Manifest.round_to\('bfloat16'\)"
        ):
            await engine.swap(full)
        await engine.swap(new)
        await native.swap(full)
        made = await engine.generate(request("a", texts[0]))
        again = (await engine.score([np.concatenate([texts[0], made.ids])]))[0][len(texts[0]) :]
        return (
            await engine.checksums(),
            await engine.score(texts),
            await engine.score(texts),
            await native.score(texts),
            made,
            again,
        )

    told, served, again, own, made, scored = asyncio.run(around())
    assert told and told == {name: new.tensors[name].digest for name in told}
    assert [x.tolist() for x in served] == [x.tolist() for x in again]
    away = np.abs(np.concatenate([a[1:] - b[1:] for a, b in zip(served, own, strict=True)]))
    assert 1e-4 < away.mean() < 0.02 and away.max() < 0.15
    assert gap([made.logp_engine], [scored]) < 0.1
    arrays = arrays_of(model)
    wrong = {n: a * np.float32(1.01) if n == "model.norm.weight" else a for n, a in arrays.items()}
    asyncio.run(engine.swap(manifest_of(2, wrong).round_to("bfloat16")))
    assert {n for n in told if asyncio.run(engine.checksums())[n] != told[n]} == {"model.norm.weight"}
