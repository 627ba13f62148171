"""Weights on their way to an engine: rounded and digested where they lie, and proved all the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hub_cases import hub_model
from hypothesis import given
from hypothesis import strategies as st

from assay.core.canon import digest
from assay.core.errors import ConfigError, EngineError, WeightProofError
from assay.core.manifest import manifest_of
from assay.runtime import InProcess, LearnerSettings, StaleEngine, TorchLearner, TransformersEngine
from assay.runtime.learner import mixed
from assay.runtime.learner.mixed import mixed_digests
from assay.runtime.learner.publishing import TensorsInPlace, make_manifest
from assay.runtime.vllm.snapshots import check_manifest
from assay.testing.faults import BaseWeights, StaleModel, StaleTensor
from assay.train.proof import WeightProof, probe_rows

ALL = (1 << 64) - 1


def one(tensor: torch.Tensor) -> str:
    return mixed_digests([("t", tensor)])["t"]


def in_python(data: bytes, row: int) -> int:
    """The sum of `mixed_digests`, in Python's own numbers."""

    def word(value: int, place: int) -> int:
        z = (value + (place + 1) * 0x9E3779B97F4A7C15) & ALL
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & ALL
        z = (z ^ z >> 27) * 0x94D049BB133111EB & ALL
        return z ^ z >> 31

    def total(words: list[int]) -> int:
        return sum(word(w, i) for i, w in enumerate(words)) & ALL

    words = [int.from_bytes(data[i : i + 8].ljust(8, b"\0"), "little") for i in range(0, len(data), 8)]
    return total([total(words[i : i + row]) for i in range(0, len(words), row)])


@given(st.integers(0, 75), st.integers(0, 2**32))
def test_a_digest_is_that_of_pythons_own_numbers(length: int, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixed, "ROW", 12)
        data = np.random.default_rng(seed).integers(0, 1 << 16, length, np.uint16)
        wanted = "mixed:" + digest(["torch.bfloat16", [length], in_python(data.tobytes(), 12)])
        tensor = torch.from_numpy(data.view(np.int16)).view(torch.bfloat16)
        assert one(tensor) == wanted
        patch.setattr(mixed.build, "kernel", lambda: None)
        assert one(tensor) == wanted
        patch.setitem(mixed.AT_ONCE, "cpu", 3)
        assert one(tensor) == wanted


@given(st.integers(1, 400), st.data())
def test_any_changed_bit_and_any_two_unequal_numbers_in_each_others_place_show(length: int, data: Any) -> None:
    values = np.random.default_rng(length).integers(0, 1 << 32, length, np.uint32)
    tensor = torch.from_numpy(values.view(np.int32)).view(torch.float32)
    other, at = values.copy(), data.draw(st.integers(0, length - 1))
    other[at] ^= np.uint32(1 << data.draw(st.integers(0, 31)))
    assert one(torch.from_numpy(other.view(np.int32)).view(torch.float32)) != one(tensor)
    swapped, to = values.copy(), data.draw(st.integers(0, length - 1))
    swapped[[at, to]] = swapped[[to, at]]
    same = bool((swapped == values).all())
    assert (one(torch.from_numpy(swapped.view(np.int32)).view(torch.float32)) == one(tensor)) == same


def test_a_word_is_mixed_as_splitmix64_draws() -> None:
    """Its first numbers from seed 0, as Vigna's program and Java's SplittableRandom print them."""
    zeros = torch.zeros(1, 3, dtype=torch.int64)
    drawn = [value % (1 << 64) for value in mixed._mix_words(zeros, zeros.new_empty(2, 1, 3))[0].tolist()]
    assert drawn == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert mixed._total(np.zeros(3, np.uint64)) == sum(drawn) & ALL


FLIPPED = {
    "two signs": lambda w, a, b: (w[a, 3].neg_(), w[b, 7].neg_()),
    "the signs of every fourth column": lambda w, a, b: w[:, 3::4].neg_(),
    "the signs of all": lambda w, a, b: w.neg_(),
    "one twice as large, one half": lambda w, a, b: (w[a, 3].mul_(2), w[b, 7].div_(2)),
    "one bit up, one down": lambda w, a, b: (
        w.view(torch.int16)[a, 3:4].bitwise_xor_(512),
        w.view(torch.int16)[b, 3:4].bitwise_xor_(512),
    ),
}


@pytest.mark.parametrize("change", FLIPPED)
def test_changes_of_high_bits_do_not_cancel(change: str) -> None:
    """A number at the end of a word ends in the word's highest bits, which a product moves out."""
    draws = torch.Generator().manual_seed(0)
    for n in range(64):
        weights = torch.randn(64, 16, generator=draws).bfloat16()
        other = weights.clone()
        FLIPPED[change](other, n, (n + 7) % 64)
        assert not torch.equal(weights, other) and one(weights) != one(other)


def test_type_and_shape_belong_to_a_digest_and_the_place_in_memory_does_not() -> None:
    x = torch.arange(12.0)
    found = [one(x), one(x.view(3, 4)), one(x.view(torch.int32)), one(x.bfloat16()), one(x[:0]), one(x[1]), one(torch.zeros(12))]
    assert len(set(found)) == len(found)
    assert one(torch.arange(13.0)[1:] - 1.0) == one(x) == one(torch.arange(-1.0, 12.0)[1:])  # at an odd word
    assert one(x.view(3, 4).T.contiguous().T) == one(x.view(3, 4))
    assert mixed_digests([]) == {}


# ---- manifests ----------------------------------------------------------------------------------------------------------


def learner(family: str = "qwen3") -> TorchLearner:
    return TorchLearner(hub_model(family), LearnerSettings(anchors=()), total_steps=5)


def test_published_in_bfloat16_is_what_rounding_by_hand_gives() -> None:
    made = learner()
    whole, rounded = made.publish(), made.publish("bfloat16")
    assert rounded == whole.round_to("bfloat16")
    assert all(np.array_equal(rounded.payload[n], a) for n, a in (whole.round_to("bfloat16").payload or {}).items())
    w = {"w": torch.tensor([1.0, 1.00390625, -2.0078125])}
    assert [hex(x) for x in make_manifest(1, w, "bfloat16", "blake2b").payload["w"].tolist()] == ["0x3f80", "0x3f80", "0xc000"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_stays_where_it_lies_is_the_same_and_read_only_when_asked_for(dtype: str) -> None:
    made = learner()
    laid, plain = made.publish(dtype, "mixed"), made.publish(dtype)
    assert (
        isinstance(laid.payload, TensorsInPlace)
        and list(laid.payload) == list(plain.payload)
        and len(laid.payload) == len(plain.payload)
    )
    assert laid.payload.tensors["model.norm.weight"].data_ptr() == made.parameters["model.norm.weight"].data_ptr()
    assert not laid.payload._arrays
    assert all(np.array_equal(laid.payload[n], a) and laid.payload[n].dtype == a.dtype for n, a in plain.payload.items())
    for name, info in plain.tensors.items():
        assert (laid.tensors[name].dtype, laid.tensors[name].shape) == (info.dtype, info.shape)
        assert laid.tensors[name].digest != info.digest


def test_unknown_types_and_digests_are_refused() -> None:
    with pytest.raises(ConfigError, match="not by 'sha256'"):
        TransformersEngine(hub_model("qwen3").module(), 32, digests="sha256")
    with pytest.raises(ConfigError, match="not as 'float16'"):
        learner().publish("float16")
    with pytest.raises(ConfigError, match="not by 'sha256'"):
        learner().publish("float32", "sha256")


# ---- engines ------------------------------------------------------------------------------------------------------------


def moved(made: TorchLearner, version: int, by: float = 1e-2) -> None:
    """Moves every weight, visibly in bfloat16 too."""
    noise = torch.Generator().manual_seed(version)
    with torch.no_grad():
        for p in made.parameters.values():
            p.mul_(1.0 + by * torch.randn(p.shape, generator=noise).sign())
    made.version = version


@pytest.mark.parametrize("family", ["qwen3", "gemma2"])
@pytest.mark.parametrize(("dtype", "kind"), [("float32", "blake2b"), ("bfloat16", "mixed")])
def test_an_engine_says_how_it_digests_and_takes_what_is_published_so(dtype: str, kind: str, family: str) -> None:
    made = learner(family)
    engine = InProcess(dtype=dtype).build(made)
    assert (engine.info().dtype, engine.info().digests) == (dtype, kind)
    moved(made, 1)
    manifest = made.publish(dtype, kind)
    asyncio.run(engine.swap(manifest))
    checksums = dict(asyncio.run(engine.checksums()))
    if family == "gemma2":  # tied: the head as used
        assert checksums.pop("lm_head.weight") == checksums["model.embed_tokens.weight"]
    assert checksums == {n: info.digest for n, info in manifest.tensors.items()}
    assert engine.weights.identity() == manifest.digest  # pyright: ignore
    by_bytes = made.publish(dtype)  # arrays, from elsewhere, are served as well
    asyncio.run(engine.swap(by_bytes))
    assert asyncio.run(engine.checksums()).items() >= checksums.items()


def test_what_does_not_fit_is_refused_where_it_lies() -> None:
    made = learner()
    engine = InProcess(dtype="bfloat16").build(made)
    with pytest.raises(EngineError, match=r"is float32\(.*the engine serves bfloat16"):
        asyncio.run(engine.swap(made.publish("float32", "mixed")))
    good = made.publish("bfloat16", "mixed")
    name = "model.norm.weight"
    with pytest.raises(EngineError, match=r"is bfloat16\(3,\), the engine serves bfloat16\("):
        asyncio.run(engine.swap(make_manifest(1, {**good.payload.tensors, name: torch.zeros(3)}, "bfloat16", "mixed")))
    less = {n: t for n, t in good.payload.tensors.items() if n != name}
    with pytest.raises(EngineError, match=r"lacks tensor 'model\.norm\.weight'"):
        asyncio.run(engine.swap(make_manifest(1, less, "bfloat16", "mixed")))


FAULTS = {
    "one tensor stale": lambda engine: StaleTensor(engine, "model.layers.1.input_layernorm.weight"),
    "whole model one step stale": StaleModel,
    "base weights served": BaseWeights,
}


async def proved(made: TorchLearner, engine: Any, proof: WeightProof, steps: int = 4) -> list[bool]:
    def out() -> Any:
        return made.publish(engine.info().dtype, engine.info().digests)

    await engine.swap(out())
    await proof.calibrate(out(), engine, made)
    found: list[bool] = []
    for version in range(1, steps + 1):
        moved(made, version)
        await engine.swap(manifest := out())
        found.append(await proof.check(manifest, engine, made))
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_mixed_checksums_catch_planted_faults_and_name_them(fault: str) -> None:
    made = learner()
    rows = probe_rows(made.policy.shape.vocab_size, 16, 0)
    assert asyncio.run(proved(made, InProcess(dtype="bfloat16").build(made), WeightProof(rows))) == [True] * 4
    made = learner()
    engine = FAULTS[fault](InProcess(dtype="bfloat16").build(made))
    few = "1 of" if fault == "one tensor stale" else ""
    with pytest.raises(WeightProofError, match=rf"tensors differ from the learner's in {few}.*weight"):
        asyncio.run(proved(made, engine, WeightProof(rows, probes=False)))


@pytest.mark.parametrize(
    ("dtype", "published_by", "compared"), [("bfloat16", "blake2b", "mixed"), ("float32", "mixed", "blake2b")]
)
def test_digests_of_another_kind_are_no_fault_of_the_weights(dtype: str, published_by: str, compared: str) -> None:
    made = learner()
    engine = InProcess(dtype=dtype).build(made)
    manifest = made.publish(dtype, published_by)
    asyncio.run(engine.swap(manifest))
    said = f"version 0 is digested by '{published_by}' and the engine's checksums are made by '{compared}'.*digests='{compared}'"
    with pytest.raises(WeightProofError, match=said):
        asyncio.run(WeightProof([], probes=False).check(manifest, engine, made))


@pytest.mark.parametrize("kind", ["blake2b", "mixed"])
def test_a_delta_may_name_what_is_served_by_either_kind_of_digest(kind: str) -> None:
    made = learner()
    engine = InProcess(dtype="bfloat16").build(made)
    full = made.publish("bfloat16", kind)
    asyncio.run(engine.swap(full))
    name = "model.norm.weight"
    twos = {name: np.full(full.tensors[name].shape, 0x4000, np.uint16)}
    delta = manifest_of(1, twos, base=full.digest, dtype="bfloat16")
    asyncio.run(engine.swap(delta))
    assert (engine.weights.tensors[name] == 2.0).all()  # pyright: ignore
    with pytest.raises(EngineError, match="swap a full manifest in first"):
        asyncio.run(engine.swap(delta))  # on what is no longer served


def test_a_server_that_cannot_mix_is_not_sent_what_was_digested_so() -> None:
    made = learner()
    with pytest.raises(EngineError, match="digested by 'mixed'; publish it with digests='blake2b'"):
        check_manifest(made.publish("bfloat16", "mixed"), "bfloat16", None)
    check_manifest(made.publish("bfloat16"), "bfloat16", None)


def test_a_bit_that_flips_in_the_engine_is_found_by_a_mixed_checksum() -> None:
    made = learner()
    engine = InProcess(dtype="bfloat16").build(made)
    manifest = made.publish("bfloat16", "mixed")
    asyncio.run(engine.swap(manifest))
    served = engine.weights.tensors["model.layers.0.mlp.up_proj.weight"]  # pyright: ignore
    with torch.no_grad():
        served[3, 5] = -served[3, 5]
    proof = WeightProof([], probes=False)
    with pytest.raises(WeightProofError, match=r"in 1 of \d+: model.layers.0.mlp.up_proj.weight"):
        asyncio.run(proof.check(manifest, engine, made))


def test_weights_that_waited_in_bfloat16_are_served_after_a_resume(tmp_path: Path) -> None:
    made = learner()

    def opened() -> StaleEngine:
        return StaleEngine(InProcess(dtype="bfloat16").build(made), 1)

    async def swapped(engine: StaleEngine, versions: tuple[int, ...]) -> dict[str, str]:
        for version in versions:
            moved(made, version)
            await engine.swap(made.publish("bfloat16", engine.info().digests))
        return dict(await engine.checksums())

    first = opened()
    asyncio.run(swapped(first, (1, 2)))
    first.save(tmp_path)
    newest = made.publish("bfloat16", "mixed")
    again = opened()
    again.load(tmp_path)
    asyncio.run(again.swap(newest))
    assert again.info().version == first.info().version == 1
    assert asyncio.run(again.checksums()) == asyncio.run(first.checksums())


def test_a_mixed_digest_may_be_asked_for_in_float32() -> None:
    made = learner()
    engine = TransformersEngine(hub_model("qwen3").module(), 32, digests="mixed")
    manifest = made.publish("float32", engine.info().digests)
    asyncio.run(engine.swap(manifest))
    assert asyncio.run(engine.checksums()).items() >= {n: i.digest for n, i in manifest.tensors.items()}.items()
    whole = manifest_of(1, {n: np.array(a) for n, a in manifest.payload.items()})
    whole.payload["model.norm.weight"].flags.writeable = False
    asyncio.run(engine.swap(whole))
    assert asyncio.run(engine.checksums()).items() >= {n: i.digest for n, i in manifest.tensors.items()}.items()
