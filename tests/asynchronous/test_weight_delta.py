"""Weights as what changed: bit for bit, refused on another base, and noticed where bytes were damaged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.asynchronous import DeltaEncoder, WeightDelta, apply_delta, encode_delta
from assay.core.canon import array_digests
from assay.core.errors import DataError, EngineError
from assay.core.manifest import Manifest, manifest_of


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@given(st.integers(0, 2**32 - 1), st.sampled_from(["<u2", "<f4"]), st.sampled_from([0.0, 1e-4, 0.01, 0.3, 1.0]))
def test_a_delta_is_exact_at_every_density(seed: int, dtype: str, density: float) -> None:
    rng = np.random.default_rng(seed)
    words = np.dtype(f"<u{np.dtype(dtype).itemsize}")
    old = rng.integers(0, 2 ** (8 * words.itemsize), 3000, dtype=words)
    new = old.copy()
    at = np.flatnonzero(rng.random(3000) < density)
    far = rng.random(len(at)) < 0.2
    new[at] += rng.integers(-200, 200, len(at)).astype(words)  # near ones, and round at 0
    new[at[far]] = rng.integers(0, 2 ** (8 * words.itemsize), int(far.sum()), dtype=words)
    a, b = old.view(dtype).reshape(30, 100), new.view(dtype).reshape(30, 100)
    delta = encode_delta(a, b)
    made = apply_delta(a, delta)
    assert same(made, b) and len(delta) <= b.nbytes + 25
    assert same(a, old.view(dtype).reshape(30, 100)), "the base stays"


def test_nans_signs_of_zero_and_long_gaps_come_through() -> None:
    old = np.zeros(200_000, np.float32)
    new = old.copy()
    new[0], new[255], new[70_000], new[199_999] = np.nan, -0.0, np.float32(np.inf), 1e-45
    delta = encode_delta(old, new)
    assert same(apply_delta(old, delta), new) and len(delta) < 80
    assert encode_delta(new, new) == b"" and apply_delta(new, b"") is new


def test_one_change_in_a_hundred_takes_eleven_to_thirteen_bits() -> None:
    """Of uniform places and steps of one: the sheet measured 11 bits with zstd; 32-bit places and values take 48."""
    rng = np.random.default_rng(0)
    old = rng.integers(0, 1 << 15, 1 << 20, dtype=np.uint16)
    new, at = old.copy(), np.flatnonzero(rng.random(1 << 20) < 0.0121)
    new[at] += rng.choice([1, -1], len(at)).astype(np.uint16)
    delta = encode_delta(old, new)
    assert 8 < 8 * len(delta) / len(at) < 13
    assert len(delta) / new.nbytes < 0.01


def test_only_tensors_that_keep_type_and_shape_have_a_delta() -> None:
    with pytest.raises(DataError, match=r"a delta from float32\[2\] to float32\[3\]: tensors keep type and shape"):
        encode_delta(np.zeros(2, np.float32), np.zeros(3, np.float32))
    with pytest.raises(DataError, match="numbers of 2 or 4 bytes, not of float64"):
        encode_delta(np.zeros(2), np.ones(2))


@pytest.mark.parametrize("damage", [slice(0, 10), slice(0, -3)])
def test_a_delta_that_was_cut_off_is_an_error(damage: slice) -> None:
    old = np.zeros(1000, np.float32)
    delta = encode_delta(old, np.where(np.arange(1000) % 50, old, np.float32(1)))
    with pytest.raises(EngineError, match="is damaged"):
        apply_delta(old, delta[damage])


def test_a_header_that_tells_of_other_sizes_is_an_error() -> None:
    old = np.zeros(1000, np.float32)
    short, long = (encode_delta(old, np.where(np.arange(1000) % n, old, np.float32(1))) for n in (500, 50))
    with pytest.raises(EngineError, match="is damaged"):
        apply_delta(old, long[:25] + short[25:])


# ---- publications ----------------------------------------------------------------------------------------------------


def digests(manifest: Manifest) -> Mapping[str, str]:
    return array_digests(manifest.payload or {})


def publication(version: int, changed: Mapping[int, float]) -> Manifest:
    arrays = {"a": np.zeros((40, 25), np.float32), "b": np.arange(1000, dtype=np.float32)}
    for at, value in changed.items():
        arrays["a"].reshape(-1)[at] = value
    return manifest_of(version, arrays)


def test_what_is_made_of_a_delta_is_the_publication_and_twice_is_once() -> None:
    encoder = DeltaEncoder(full_every=4)
    first, second = publication(1, {}), publication(2, {5: 1.0})
    assert encoder.encode(first) is None, "the first is the full set"
    delta = encoder.encode(second)
    assert delta is not None and list(delta.payload) == ["a"] and delta.nbytes < 60 and delta.arrays() is None
    made = delta.apply(first, digests)
    assert made.version == 2 and made.digest == second.digest
    assert all(same(made.payload[n], second.payload[n]) for n in "ab")
    again = delta.apply(made, digests)
    assert again.payload is made.payload


def test_every_so_many_publications_one_is_whole_and_so_is_one_that_would_be_longer() -> None:
    encoder = DeltaEncoder(full_every=3)
    kinds = [encoder.encode(publication(v, {v: 1.0})) is None for v in range(7)]
    assert kinds == [True, False, False, True, False, False, True]
    rng = np.random.default_rng(0)
    noise = [manifest_of(v, {"a": rng.integers(0, 2**32, 1000, np.uint32).view(np.float32)}) for v in range(2)]
    encoder = DeltaEncoder(full_every=3)
    assert [encoder.encode(m) is None for m in noise] == [True, True]


def test_the_learner_s_own_arrays_may_change_after_a_publication() -> None:
    encoder, live = DeltaEncoder(full_every=9), np.zeros(1000, np.float32)
    encoder.encode(manifest_of(0, {"w": live}))
    live[3] = 1.0
    delta = encoder.encode(manifest_of(1, {"w": live}))
    assert delta is not None and delta.nbytes > 0
    assert encoder.newest is not None and encoder.newest.version == 1


def test_another_base_and_damaged_bytes_are_refused() -> None:
    encoder = DeltaEncoder(full_every=9)
    first = publication(1, {})
    encoder.encode(first)
    delta = encoder.encode(publication(2, {5: 1.0}))
    assert delta is not None
    with pytest.raises(EngineError, match=r"weight version 2 came as what changed since [0-9a-f]+, and version 7 is"):
        delta.apply(publication(7, {9: 1.0}), digests)
    with pytest.raises(EngineError, match="came as what changed"):
        delta.apply(replace(first, payload=None), digests)
    other = encode_delta(first.payload["a"], publication(3, {6: 1.0}).payload["a"])
    damaged = WeightDelta(manifest=delta.manifest, base=delta.base, payload={"a": other})
    with pytest.raises(EngineError, match="weight version 2 arrived damaged: a"):
        damaged.apply(first, digests)
    with pytest.raises(EngineError, match="is no full set of arrays"):
        encoder.encode(replace(first, payload=None))
