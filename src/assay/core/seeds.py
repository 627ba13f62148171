"""Randomness that depends on names, never on time, order or the process.

Seeds are blake2b of canonical JSON. Sampling noise is counter based: the uniform for a token is a pure function of
(rollout seed, token position), so a token does not depend on who else is in the batch.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import canonical
from assay.core.errors import ConfigError

__all__ = ["content_split", "derive", "derive_each", "generator", "text_split", "uniforms"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


def derive(name: str, seed: int, split: str = "", index: int | str = 0) -> int:
    """A 64-bit seed for one purpose: blake2b of canonical JSON of ``(name, seed, split, index)``.

    Args:
        name: what the seed is for, for example ``"task/sort"``.
        seed: the run's seed.
        split: data split or any second name.
        index: counter or key inside the split.

    >>> derive("task", 0, "train", 1) == derive("task", 0, "train", 1)
    True
    >>> derive("task", 42, "train", 1) == derive("task", 43, "train", 0)
    False
    """
    return int.from_bytes(hashlib.blake2b(canonical([name, seed, split, index]), digest_size=8).digest(), "big")


def derive_each(name: str, seed: int, split: str, count: int) -> list[int]:
    """`derive` of the indices ``0 .. count - 1``; what they have in common is digested once.

    >>> derive_each("rollout", 0, "s0/1", 3) == [derive("rollout", 0, "s0/1", i) for i in range(3)]
    True
    """
    begun = hashlib.blake2b(canonical([name, seed, split, 0])[:-2], digest_size=8)
    seeds: list[int] = []
    for index in range(count):
        text = begun.copy()
        text.update(b"%d]" % index)
        seeds.append(int.from_bytes(text.digest(), "big"))
    return seeds


def generator(name: str, seed: int, split: str = "", index: int | str = 0) -> np.random.Generator:
    """A numpy generator seeded by `derive`."""
    return np.random.Generator(np.random.PCG64(derive(name, seed, split, index)))


def uniforms(seeds: NDArray[np.uint64], start: int, count: int) -> NDArray[np.float64]:
    """Counter-based uniforms ``u(seed, position)`` in [0, 1), splitmix64 read at its counter.

    Args:
        seeds: ``[n]`` rollout seeds.
        start: first token position, counted from the rollout's first sampled token.
        count: how many positions.

    Returns:
        ``[n, count]`` float64, 53 random bits each.

    >>> a = uniforms(np.array([7], np.uint64), 0, 4)
    >>> bool((a[:, 2:] == uniforms(np.array([7], np.uint64), 2, 2)).all())
    True
    """
    positions = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = seeds.astype(np.uint64)[:, None] + positions[None, :] * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX1
        z = (z ^ (z >> np.uint64(27))) * _MIX2
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def content_split(content: Any, test_share: float = 0.1) -> str:
    """``"test"`` or ``"train"``, decided by a hash of the content alone.

    Raises:
        ConfigError: ``test_share`` is no share.

    >>> content_split({"prompt": "S21>"}) == content_split({"prompt": "S21>"})
    True
    """
    return text_split(canonical(content), test_share)


def text_split(text: bytes, test_share: float = 0.1) -> str:
    """`content_split` of a content whose canonical JSON is already at hand (`assay.core.canonical`).

    Raises:
        ConfigError: ``test_share`` is no share.

    >>> text_split(canonical({"prompt": "S21>"})) == content_split({"prompt": "S21>"})
    True
    """
    if not 0.0 <= test_share <= 1.0:
        raise ConfigError(f"content_split: test_share={test_share}; use a share in [0, 1]")
    h = int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"assay-split").digest(), "big")
    return "test" if h < test_share * 2.0**64 else "train"
