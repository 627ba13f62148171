"""A digest that a device computes where the weights lie: words mixed with their places and added up, so that nothing is copied.

It tells weights apart that went wrong, not ones that somebody forges: 64 bits of sums, no cryptography. Integer arithmetic is the
same on every device, and so is the digest. A single changed word always shows, since each word goes through a bijection of its
own; other differences agree by chance alone. For that every bit of a word must reach every bit of what is added up, the highest
ones too: else signs that flip in two numbers cancel each other. The bijection is SplitMix64 (Steele et al. 2014, "Fast Splittable
Pseudorandom Number Generators", with the shifts of Vigna's ``splitmix64.c``), the word being its state.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.core.canon import digest
from assay.core.manifest import MIXED
from assay.runtime.compiled import build
from assay.runtime.compiled.digest import mixed_total
from assay.runtime.kernels.typed import array_of

__all__ = ["mixed_digests"]

WORD = 8
"""Bytes of a word."""
ROW = 1 << 16
"""Words that are added up to one, which is then mixed as a word of its own: half a MiB stays in a CPU's cache."""
AT_ONCE = {"cpu": 1, "cuda": 256}
"""Rows that are worked on at once; the digest does not depend on it."""
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
FOLDS = ((30, FIRST), (27, SECOND), (31, 1))
"""How far a word is shifted to be folded onto itself, and what it is multiplied by then."""


def mixed_digests(tensors: Iterable[tuple[str, Tensor]]) -> dict[str, str]:
    """Digest of each tensor's type, shape and bytes, by name, ``mixed:`` before each; the device is waited for once, behind the
    last of them.

    >>> a, b = torch.arange(6.0), torch.arange(6.0)
    >>> b[4] = 4.0000005
    >>> found = mixed_digests([("a", a), ("b", b), ("c", a.clone()), ("d", a.view(2, 3))])
    >>> found["a"] == found["c"], found["a"] == found["b"], found["a"] == found["d"], found["a"][:6]
    (True, False, False, 'mixed:')
    """
    told: list[tuple[str, str, list[int], int | list[Tensor]]] = []
    for name, tensor in tensors:
        library = build.kernel() if tensor.device.type == "cpu" else None
        found = _sums(tensor.detach()) if library is None else mixed_total(library, tensor.detach().contiguous(), ROW)
        told.append((name, str(tensor.dtype), list(tensor.shape), found))
    waiting = [part for *_, parts in told if isinstance(parts, list) for part in parts]
    words = iter(array_of(torch.cat(waiting)).view(np.uint64) if waiting else ())
    out: dict[str, str] = {}
    for name, kind, shape, found in told:
        total = found if isinstance(found, int) else _total(np.fromiter(words, np.uint64, sum(map(len, found))))
        out[name] = MIXED + digest([kind, shape, total])
    return out


def _sums(tensor: Tensor) -> list[Tensor]:
    """``[rows]`` int64 sums of the mixed words of each row of a tensor's bytes, in pieces; a last row is filled up with zeros to
    whole words.
    """
    flat = tensor.contiguous().view(-1)
    flat = flat.view(torch.uint8) if len(flat) else flat.new_zeros(0, dtype=torch.uint8)
    if flat.storage_offset() % WORD:
        flat = flat.clone()
    rows, step = len(flat) // (WORD * ROW), AT_ONCE.get(tensor.device.type, 1)
    whole = rows * WORD * ROW
    table = flat[:whole].view(torch.int64).view(rows, ROW)
    buffer = table.new_empty(2, min(rows, step), ROW)  # the same memory for all: a CPU would get and clear fresh pages for each
    parts = [_mix_words(table[i : i + step], buffer[:, : min(step, rows - i)]).sum(1) for i in range(0, rows, step)]
    if len(flat) > whole:
        rest = flat.new_zeros(-(-(len(flat) - whole) // WORD) * WORD)
        rest[: len(flat) - whole] = flat[whole:]
        words = rest.view(torch.int64)[None]
        parts.append(_mix_words(words, words.new_empty(2, *words.shape)).sum(1))
    return parts


def _mix_words(words: Tensor, buffer: Tensor) -> Tensor:
    """``[r, n]`` words, each through a bijection of 64 bits that depends on its column, in ``buffer``: ``[2, r, n]``."""
    z, high = buffer[0], buffer[1]
    torch.add(words, _keys(words.device, ROW)[: words.shape[1]], out=z)
    for shift, factor in FOLDS:
        torch.bitwise_right_shift(z, shift, out=high)
        z.bitwise_xor_(high.bitwise_and_((1 << (64 - shift)) - 1))  # the shift fills up with the sign
        if factor != 1:
            z.mul_(_as_signed(factor))
    return z


@cache
def _keys(device: torch.device, count: int) -> Tensor:
    return torch.arange(1, count + 1, dtype=torch.int64, device=device) * _as_signed(GOLDEN)


def _as_signed(constant: int) -> int:
    """Of 64 bits as torch has them."""
    return constant - (1 << 64)


def _total(words: NDArray[np.uint64]) -> int:
    """The sum of the same bijections of a column of few words."""
    z = words + np.arange(1, len(words) + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    for shift, factor in FOLDS:
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return int(z.sum(dtype=np.uint64))
