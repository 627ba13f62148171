"""LoRA adapters on a real server: exchanged while it runs, and never silently left out."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from vllm_servers import arrays_of, gap, request, rows, version

from assay.core.errors import ConfigError, EngineError
from assay.core.manifest import manifest_of
from assay.core.protocols import SwapMode
from assay.core.rollout import Stop
from assay.runtime import NativeEngine, VllmEngine

RANK, ALPHA = 4, 8
CONFIG = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "r": RANK,
    "lora_alpha": ALPHA,
    "bias": "none",
    "lora_dropout": 0.0,
    "target_modules": {"q_proj", "v_proj", "down_proj", "gate_proj"},
    "inference_mode": True,
    "use_rslora": False,
}
TARGETS = ("self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj", "mlp.gate_proj")


def adapter(model, number: int, seed: int):
    """A manifest of an adapter's tensors as PEFT names them, and the full one that it amounts to."""
    rng, tensors, merged = np.random.default_rng(seed), {}, arrays_of(model)
    for layer in range(model.shape.num_layers):
        for target in TARGETS:
            name = f"model.layers.{layer}.{target}"
            out, into = merged[f"{name}.weight"].shape
            a, b = (rng.standard_normal(size).astype(np.float32) * 0.05 for size in ((RANK, into), (out, RANK)))
            tensors[f"base_model.model.{name}.lora_A.weight"], tensors[f"base_model.model.{name}.lora_B.weight"] = a, b
            merged[f"{name}.weight"] = merged[f"{name}.weight"] + (ALPHA / RANK) * (b @ a)
    return manifest_of(number, tensors), manifest_of(number, merged)


@pytest.fixture(scope="module")
def native(model):
    return NativeEngine(model)


@pytest.fixture
def lora(server, model):
    made = VllmEngine(server.settings(), model, CONFIG)
    yield made
    asyncio.run(made.close())
    assert names(server) == []


def names(server) -> list[str]:
    return [card["id"] for card in server.get("/v1/models").json()["data"] if card["parent"]]


def test_each_adapter_is_the_weights_that_it_amounts_to(server, lora, model, native):
    texts = rows()

    async def around():
        await lora.swap(version(model, 1))
        base, found = await lora.score(texts), []
        for number, seed in ((2, 1), (3, 2)):
            parts, whole = adapter(model, number, seed)
            if number == 3:  # by the names of a learner's parameters
                short = {
                    n.removeprefix("base_model.model.").replace(".weight", ".default.weight"): a for n, a in parts.payload.items()
                }
                parts = manifest_of(3, short)
            await lora.swap(parts)
            await native.swap(whole)
            made = await lora.generate(request("a", texts[0], seed=1))
            exact = (await native.score([np.concatenate([texts[0], made.ids])]))[0][len(texts[0]) :]
            found.append((await lora.score(texts), await native.score(texts), made, exact))
        checksums, info = await lora.checksums(), lora.info()
        listed = names(server)
        await lora.swap(version(model, 4))
        return base, found, checksums, info, listed, await lora.score(texts)

    base, found, checksums, info, listed, back = asyncio.run(around())
    assert names(server) == []
    for number, (served, exact, made, generated) in zip((2, 3), found, strict=True):
        assert gap(served, exact) < 1e-4
        assert gap(served, base) > 0.05
        assert gap([made.logp_engine], [generated]) < 1e-4
        assert [(s.version, s.start, s.end) for s in made.spans] == [(number, 0, 16)]
    assert (checksums, info.version) == (None, 3)
    assert len(listed) == 1 and listed[0].endswith("-v3")
    assert gap(back, base) == 0.0


def test_a_kept_request_goes_on_with_its_own_adapter(server, lora, model):
    async def across():
        await lora.swap(version(model, 1))
        await lora.swap(adapter(model, 2, 1)[0])
        made = [lora.generate(request(f"kept {i}", rows(1)[0], seed=i, max_new_tokens=900)) for i in range(14)]
        tasks = [asyncio.create_task(one) for one in made]
        await asyncio.sleep(0.3)
        await lora.swap(adapter(model, 3, 2)[0], SwapMode.KEEP)
        assert not all(task.done() for task in tasks)
        new = await lora.generate(request("new", rows(1)[0]))
        kept, listed = await asyncio.gather(*tasks), names(server)
        await lora.swap(adapter(model, 4, 3)[0])
        return kept, new, listed, names(server)

    kept, new, during, after = asyncio.run(across())
    assert {(one.stop, *(s.version for s in one.spans)) for one in kept} == {(Stop.LENGTH, 2)}
    assert [s.version for s in new.spans] == [3]
    assert [name[-2:] for name in during] == ["v2", "v3"]
    assert [name[-2:] for name in after] == ["v4"]


def test_an_adapter_that_the_server_lost_is_an_error(server, lora, model):
    asyncio.run(lora.swap(version(model, 1)))
    asyncio.run(lora.swap(adapter(model, 2, 1)[0]))
    assert server.post("/v1/unload_lora_adapter", {"lora_name": names(server)[0]}).status_code == 200
    with pytest.raises(EngineError, match=r"request 'a': .*status 404: 'The model `assay-"):
        asyncio.run(lora.generate(request("a", [5])))
    asyncio.run(lora.swap(adapter(model, 3, 1)[0]))
    assert [s.version for s in asyncio.run(lora.generate(request("a", [5]))).spans] == [3]


def test_adapters_that_the_server_cannot_take_are_refused(server, engine, lora, model):
    parts, _ = adapter(model, 2, 1)
    with pytest.raises(EngineError, match="is an adapter, and the engine was made without"):
        asyncio.run(engine.swap(parts))
    wide = VllmEngine(server.settings(), model, {**CONFIG, "r": 64})
    with pytest.raises(ConfigError, match=r"takes adapters up to rank 8, this one has rank 64: .*--max-lora-rank 64"):
        asyncio.run(wide.swap(parts))
    odd = {name.replace("down_proj", "unknown_proj"): array for name, array in parts.payload.items()}
    with pytest.raises(EngineError, match="load_lora_adapter was refused"):
        asyncio.run(lora.swap(manifest_of(3, odd)))


def test_a_server_that_answers_with_the_base_instead_is_caught(spare, model):
    """One that does not check names answers for an adapter that it does not have, with other weights."""
    lora = VllmEngine(spare.settings(), model, CONFIG)
    parts, _ = adapter(model, 2, 1)
    asyncio.run(lora.swap(parts))
    made = asyncio.run(lora.generate(request("a", [5])))
    assert [s.version for s in made.spans] == [2]
    spare.post("/v1/unload_lora_adapter", {"lora_name": names(spare)[0]})
    with pytest.raises(EngineError, match=r"request 'a' asked .* for 'assay-.*', and '.*' answered"):
        asyncio.run(lora.generate(request("a", [5])))
    with pytest.raises(EngineError, match=r"row 0 asked .* answered"):
        asyncio.run(lora.score(rows(1)))
    asyncio.run(lora.swap(parts.round_to("bfloat16")))
    assert [s.version for s in asyncio.run(lora.generate(request("a", [5]))).spans] == [2]
    asyncio.run(lora.close())
    assert names(spare) == []
