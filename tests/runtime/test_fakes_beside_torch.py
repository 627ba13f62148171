"""What core and testing do without torch agrees with torch: rounded manifests, a fault planted in the native engine."""

import asyncio

import numpy as np
import torch

from assay.core.manifest import Manifest, manifest_of
from assay.core.protocols import Engine
from assay.core.rollout import ids_of
from assay.runtime import DecoderShape, NativeEngine, char_tokenizer, init_model
from assay.testing import WrongTiedHead

ROWS = [ids_of([2, 3, 4, 5]), ids_of([6, 7])]


def wrong_tensors(engine: Engine, manifest: Manifest) -> list[str]:
    """The tensors whose served digest is not the published one; a tied head must be the embedding."""
    served = asyncio.run(engine.checksums())
    assert served is not None
    wanted = {n: t.digest for n, t in manifest.tensors.items()}
    wanted.setdefault("lm_head.weight", wanted["model.embed_tokens.weight"])
    return sorted(n for n, digest in wanted.items() if served[n] != digest)


def test_rounding_of_a_manifest_to_bfloat16_is_torchs() -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 20000, dtype=np.uint32)
    array = np.concatenate([bits.view(np.float32), np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-45])])
    made = manifest_of(3, {"w": array}).round_to("bfloat16")
    expected = torch.from_numpy(array).to(torch.bfloat16)
    found = torch.from_numpy(np.array((made.payload or {})["w"]).view(np.int16)).view(torch.bfloat16)
    same = (found == expected) | (found.isnan() & expected.isnan())
    assert bool(same.all()) and made.version == 3
    assert made.tensors["w"].dtype == "bfloat16" and made.round_to("float32") is made


def test_the_native_engine_serves_the_wrong_head() -> None:
    shape = DecoderShape(
        vocab_size=8, hidden_size=16, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=8, intermediate_size=16
    )
    model = init_model(shape, char_tokenizer("abcdef"), seed=0)
    first = {n: t.numpy().copy() for n, t in model.tensors.items()}
    rng = np.random.default_rng(0)
    second = {n: a + rng.normal(0, 0.05, a.shape).astype(np.float32) for n, a in first.items()}
    clean, faulty = NativeEngine(model), WrongTiedHead(NativeEngine(model))
    for engine in (clean, faulty):
        for version, arrays in enumerate([first, second], 1):
            asyncio.run(engine.swap(manifest_of(version, arrays)))
    assert wrong_tensors(clean, manifest_of(2, second)) == []
    assert wrong_tensors(faulty, manifest_of(2, second)) == ["lm_head.weight"]
    good, bad = asyncio.run(clean.score(ROWS)), asyncio.run(faulty.score(ROWS))
    assert np.abs(good[0] - bad[0]).max() > 1e-4
