"""A digest that a device computes where the weights lie: words mixed with their places and added up, so that nothing is copied.

It tells weights apart that went wrong, not ones that somebody forges: 64 bits of sums, no cryptography. Integer arithmetic is the
same on every device, and so is the digest. A single changed word always shows, since each word goes through a bijection of its
own; other differences agree by chance once in 2^64. Constants and mixing are those of finalisers such as Steele et al. 2014,
"Fast Splittable Pseudorandom Number Generators".
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import torch
from torch import Tensor

from assay.core.canon import digest
from assay.runtime.typed import array_of

__all__ = ["mixed_digests"]

WORD = 8
"""Bytes of a word."""
ROW = 1 << 16
"""Words that are added up to one, which is then mixed as a word of its own: half a MiB stays in a CPU's cache."""
AT_ONCE = {"cpu": 1, "cuda": 256}
"""Rows that are worked on at once; the digest does not depend on it."""
GOLDEN, FIRST, SECOND = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
LOW = (1 << 32) - 1


def mixed_digests(tensors: Iterable[tuple[str, Tensor]]) -> dict[str, str]:
    """Digest of each tensor's type, shape and bytes, by name; the device is waited for once, behind the last of them.

    >>> a, b = torch.arange(6.0), torch.arange(6.0)
    >>> b[4] = 4.0000005
    >>> found = mixed_digests([("a", a), ("b", b), ("c", a.clone()), ("d", a.view(2, 3))])
    >>> found["a"] == found["c"], found["a"] == found["b"], found["a"] == found["d"], len(found["a"])
    (True, False, False, 32)
    """
    told: list[tuple[str, str, list[int]]] = []
    sums: list[Tensor] = []
    for name, tensor in tensors:
        told.append((name, str(tensor.dtype), list(tensor.shape)))
        sums.append(_sum_of(tensor.detach()))
    values: list[int] = array_of(torch.stack(sums)).tolist() if sums else []
    return {name: digest(["mixed", kind, shape, value]) for (name, kind, shape), value in zip(told, values, strict=True)}


def _sum_of(tensor: Tensor) -> Tensor:
    """A scalar int64 of a tensor's bytes."""
    flat = tensor.contiguous().view(-1)
    flat = flat.view(torch.uint8) if len(flat) else flat.new_zeros(0, dtype=torch.uint8)
    whole = len(flat) // WORD * WORD
    if flat.storage_offset() % WORD:
        flat = flat.clone()
    words, end = flat[:whole].view(torch.int64), flat.new_zeros(WORD)
    end[: len(flat) - whole] = flat[whole:]
    rows = len(words) // ROW
    table, step = words[: rows * ROW].view(rows, ROW), AT_ONCE.get(tensor.device.type, 1)
    sums = [_mixed(table[i : i + step]).sum(1) for i in range(0, rows, step)]
    sums += [_mixed(part[None]).sum(1) for part in (words[rows * ROW :], end.view(torch.int64))]
    found = torch.cat(sums)
    return _mixed(found[None]).sum() if len(found) <= ROW else _sum_of(found)


def _mixed(words: Tensor) -> Tensor:
    """``[r, n]`` words, each through a bijection of 64 bits that depends on its column."""
    z = words + _keys(words.device, ROW)[: words.shape[1]]
    z.mul_(FIRST)
    high = z >> 32
    z.bitwise_xor_(high.bitwise_and_(LOW)).mul_(SECOND)
    return z


@cache
def _keys(device: torch.device, count: int) -> Tensor:
    return torch.arange(1, count + 1, dtype=torch.int64, device=device) * GOLDEN
