"""New weights on a real server: they arrive, nothing of the old ones is used, and failures leave known weights."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace

import numpy as np
import pytest
from vllm_servers import arrays_of, gap, request, rows, version

from assay.core.errors import EngineError
from assay.core.manifest import manifest_of
from assay.core.protocols import SwapMode
from assay.core.rollout import Stop
from assay.runtime import NativeEngine, VllmEngine
from assay.runtime.vllm.checksums import EMPTY
from assay.runtime.vllm.snapshots import WeightFiles, read_header, shapes_in


def of(native, manifest, texts):
    """Log-probabilities of texts under a manifest, by the native engine."""

    async def score():
        await native.swap(manifest)
        return await native.score(texts)

    return asyncio.run(score())


@pytest.fixture(scope="module")
def native(model):
    return NativeEngine(model)


@pytest.mark.parametrize("mode", list(SwapMode))
def test_no_keys_or_values_of_older_weights_answer_after_a_swap(engine, model, native, mode):
    """The prompt fills several blocks of the prefix cache."""
    long = rows(1, 600)[0]

    async def around():
        made = []
        for number, seed in ((1, 0), (2, 5)):
            await engine.swap(version(model, number, seed), mode)
            made.append([await engine.generate(request(f"{i}", long, seed=i)) for i in range(2)])  # the second reads the cache
        return made

    before, after = asyncio.run(around())
    for made, manifest in ((before, version(model, 1)), (after, version(model, 2, 5))):
        for c in made:
            exact = of(native, manifest, [np.concatenate([long, c.ids])])[0][len(long) :]
            assert gap([c.logp_engine], [exact]) < 1e-4
            assert {s.version for s in c.spans} == {manifest.version}
    assert gap([before[0].logp_engine], [after[0].logp_engine]) > 0.1


def test_a_shared_prefix_cache_would_serve_old_keys_and_values_after_a_kept_swap(server, model, native):
    """What the key of each version guards from: without it the server goes on with the old prefix and calls it new."""
    engine = VllmEngine(server.settings(recompute=False), model)
    long = rows(1, 600)[0]
    body = {"token_ids": long.tolist(), "sampling_params": {"max_tokens": 8, "logprobs": 0, "seed": 1, "ignore_eos": True}}

    async def swap(number, seed, mode):
        await engine.swap(version(model, number, seed), mode)

    asyncio.run(swap(1, 0, SwapMode.DRAIN))
    server.post("/inference/v1/generate", body)
    asyncio.run(swap(2, 5, SwapMode.KEEP))
    made = server.post("/inference/v1/generate", body).json()["choices"][0]
    told = np.array([entry["logprob"] for entry in made["logprobs"]["content"]], np.float32)
    exact = of(native, version(model, 2, 5), [np.concatenate([long, made["token_ids"]])])[0][len(long) :]
    assert {s["version"].rpartition(".")[2] for s in made["weight_versions"]} == {"v2"}
    assert gap([told], [exact]) > 0.05


@pytest.mark.parametrize("recompute", [True, False])
def test_a_kept_request_names_both_versions(server, model, native, recompute):
    """From its old keys and values it samples what neither of the versions would: their spans do not give its probability."""
    engine, prompt = VllmEngine(server.settings(recompute=recompute), model), rows(1)[0]

    async def across():
        await engine.swap(version(model, 1))
        task = asyncio.create_task(engine.generate(request("kept", prompt, seed=1, max_new_tokens=900)))
        await asyncio.sleep(0.5)
        await engine.swap(version(model, 2, 5), SwapMode.KEEP)
        return await task, await engine.generate(request("new", prompt, seed=1))

    kept, new = asyncio.run(across())
    assert kept.stop is Stop.LENGTH
    assert [s.version for s in kept.spans] == [1, 2]
    cut = kept.spans[0].end
    assert 0 < cut < 900 and (kept.spans[1].start, kept.spans[1].end) == (cut, 900)
    row = np.concatenate([prompt, kept.ids])
    old, fresh = (of(native, v, [row])[0][len(prompt) :] for v in (version(model, 1), version(model, 2, 5)))
    assert gap([kept.logp_engine[:cut]], [old[:cut]]) < 1e-4
    behind = kept.logp_engine[cut + 1 :]  # the first token behind the swap may have been scheduled before it
    assert np.abs(behind - old[cut + 1 :]).mean() > 0.01
    if recompute:
        assert gap([behind], [fresh[cut + 1 :]]) < 1e-4
    else:
        assert np.abs(behind - fresh[cut + 1 :]).mean() > 0.01
    assert [s.version for s in new.spans] == [2]


def test_draining_lets_requests_end_and_holds_later_ones_back(engine, model):
    async def across():
        await engine.swap(version(model, 1))
        first = [asyncio.create_task(engine.generate(request(f"a{i}", [i + 2], max_new_tokens=200))) for i in range(20)]
        await asyncio.sleep(0.3)
        swap = asyncio.create_task(engine.swap(version(model, 2, 5)))
        while not engine._here()._shut and not swap.done():  # its files are written before anybody waits
            await asyncio.sleep(0.01)
        later = asyncio.create_task(engine.generate(request("b", [5])))
        held = asyncio.create_task(engine.generate(request("c", [5])))
        with pytest.raises(EngineError, match="another swap is under way"):
            await engine.swap(version(model, 3))
        await asyncio.sleep(0.05)
        await engine.abort(["c"])
        gone = await held
        await swap
        return await asyncio.gather(*first), await later, gone

    first, later, gone = asyncio.run(across())
    assert {(c.stop, len(c.ids), tuple(s.version for s in c.spans)) for c in first} == {(Stop.LENGTH, 200, (1,))}
    assert [s.version for s in later.spans] == [2]
    assert (gone.stop, len(gone.ids)) == (Stop.PARTIAL, 0)


def test_checksums_tell_what_the_server_tells_and_nothing_else(server, engine, model):
    """Linear layers are packed anew on the CPU: their empty parameters have one checksum before and after any update."""
    new = version(model, 2, 5)
    asyncio.run(engine.swap(version(model, 1)))
    before = server.post("/weight_checker", {"action": "checksum"}).json()["checksums"]
    asyncio.run(engine.swap(new))
    after = server.post("/weight_checker", {"action": "checksum"}).json()["checksums"]
    hollow = {name for name, sha in after.items() if sha == EMPTY}
    assert len(hollow) == 16 and all(before[name] == after[name] for name in hollow)

    told = asyncio.run(engine.checksums())
    assert told == {name: new.tensors[name].digest for name in told}
    assert set(told) == {n for n in new.tensors if "norm" in n or "embed" in n}

    # half of an update, made behind the engine's back
    mixed = arrays_of(model, 5) | {n: a for n, a in arrays_of(model).items() if "layers.1" in n}
    other = WeightFiles("", None, "other")
    path = other.full(manifest_of(3, mixed), engine._weights.facts.parts).path
    server.post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(path)}})
    told = asyncio.run(engine.checksums())
    wrong = {name for name in told if told[name] != new.tensors[name].digest}
    assert wrong == {n for n in told if "layers.1" in n}
    assert "has sha256" in told["model.layers.1.self_attn.q_norm.weight"]
    other.close()


def test_a_damaged_snapshot_is_no_witness(engine, model):
    """What the server read may be just what stands in a file that was changed behind its writer."""
    new = version(model, 1)
    asyncio.run(engine.swap(new))
    file = engine._weights.newest.path / "model.safetensors"
    header, start = read_header(file)
    data = bytearray(file.read_bytes())
    data[start + header["model.norm.weight"]["data_offsets"][0]] ^= 1
    file.write_bytes(data)
    told = asyncio.run(engine.checksums())
    assert "other bytes than were published" in told.pop("model.norm.weight")
    assert told == {name: new.tensors[name].digest for name in told}


def test_what_cannot_be_loaded_is_refused_before_the_server_is_told(engine, model):
    full = version(model, 1)
    asyncio.run(engine.swap(full))
    arrays = arrays_of(model)
    lacking = {n: a for n, a in arrays.items() if "layers.2.mlp.up" not in n}
    cases = {
        "is a delta": manifest_of(2, {"model.norm.weight": arrays["model.norm.weight"]}, base=full.digest),
        "lacks tensor 'model.layers.2.mlp.up_proj.weight'": manifest_of(2, lacking),
        "has the unknown tensor 'extra'": manifest_of(2, arrays | {"extra": np.zeros(2, np.float32)}),
        r"has shape \(2,\) instead of \(128,\)": manifest_of(2, arrays | {"model.norm.weight": np.zeros(2, np.float32)}),
        "carries 0 arrays": replace(full, payload=None),
        "is bfloat16, the server serves float32": full.round_to("bfloat16"),
        "is <f8, the server serves float32": manifest_of(2, arrays | {"model.norm.weight": np.zeros(128)}),
    }
    for text, manifest in cases.items():
        with pytest.raises(EngineError, match=text):
            asyncio.run(engine.swap(manifest))
    assert engine.info().version == 1
    assert {s.version for s in asyncio.run(engine.generate(request("on", [5]))).spans} == {1}


def test_after_a_failed_load_the_old_weights_are_served_again(engine, model, native, monkeypatch):
    """A folder that the server does not see: its loading fails half way and leaves it without weights until it loads others."""
    real = WeightFiles.full

    def lost(self, manifest, parts=None):
        made = real(self, manifest, parts)
        shutil.rmtree(made.path)
        return made

    texts = rows()
    asyncio.run(engine.swap(version(model, 1)))
    with monkeypatch.context() as patched:
        patched.setattr(WeightFiles, "full", lost)
        with pytest.raises(EngineError, match="version 2 was not loaded: ") as caught:
            asyncio.run(engine.swap(version(model, 2, 5)))
    assert "It serves version 1 again" in str(caught.value)
    assert engine.info().version == 1
    assert gap(asyncio.run(engine.score(texts)), of(native, version(model, 1), texts)) < 1e-4
    assert {s.version for s in asyncio.run(engine.generate(request("on", [5]))).spans} == {1}


def test_weights_that_somebody_else_changes_are_noticed(server, engine, model):
    other = VllmEngine(server.settings(), model)
    asyncio.run(engine.swap(version(model, 1)))
    asyncio.run(other.swap(version(model, 1, 5)))
    with pytest.raises(EngineError, match=r"request 'a' was answered by weights .*somebody else changes its weights"):
        asyncio.run(engine.generate(request("a", [5])))
    with pytest.raises(EngineError, match="row 0 was answered by weights"):
        asyncio.run(engine.score(rows(1)))
    asyncio.run(engine.swap(version(model, 2)))
    assert {s.version for s in asyncio.run(engine.generate(request("a", [5]))).spans} == {2}


def test_the_newest_two_versions_are_kept_with_what_belongs_to_a_model(server, model, folder, tmp_path):
    engine = VllmEngine(server.settings(folder=str(tmp_path / "weights")), model)
    for number in range(1, 5):
        asyncio.run(engine.swap(version(model, number)))
    kept = sorted((tmp_path / "weights").iterdir(), key=lambda path: int(path.name.split("-")[1]))
    assert [path.name.rpartition("-")[2] for path in kept] == ["v3", "v4"]
    assert {"config.json", "tokenizer.json", "model.safetensors", "manifest.json"} <= {p.name for p in kept[-1].iterdir()}
    assert shapes_in(kept[-1]) == shapes_in(folder)
    asyncio.run(engine.close())
    assert list((tmp_path / "weights").iterdir()) == []
