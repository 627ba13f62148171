"""Where the rows of a packed micro-batch lie, and how attention pads them.

Linear layers, norms and the head see concatenated tokens without any padding. Attention alone needs a rectangle, so rows of equal
or near-equal length share a *bucket*; a padding token stands behind its row, where a causal query of the row never looks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.runtime.kernels.typed import tensor_of
from assay.runtime.learner.support import Support

if TYPE_CHECKING:
    from assay.runtime.distributed.context_parallel import Share

__all__ = ["Packing", "bucket_lengths", "pack_offsets"]

BUCKET_COST = 6000
"""Fixed cost of one more bucket, in query-key pairs (measured: about 0.1 ms of calls per layer, forward and backward)."""
TOKEN_COST = 32
"""Cost of one more token in attention whatever its row's length, in query-key pairs."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Index tensors of one micro-batch of ``N`` tokens in ``B`` rows.

    Attributes:
        positions: ``[N]`` int64, position inside the row.
        buckets: (rows, length) of each attention rectangle, ascending lengths.
        pad: ``[P]`` int64, token read by each rectangle cell; None where rectangles and tokens coincide.
        unpad: ``[N]`` int64, rectangle cell of each token; None with ``pad``.
        useful: query-key pairs of the rows over those of the rectangles, in (0, 1].
        ends: ``[B + 1]`` int32, 0 and where each row ends.
        longest: tokens of the longest row.
        share: the ranks that share the tokens; None where all are here.
        experts: ``[N, layers, k]`` int64, those that an engine routed each token to, -1 where that is not known; None for none.
        ragged: attention takes the rows as they are (`assay.runtime.kernels.ragged_attention`), without rectangles.
        temperature: ``[N]`` float32, more than 0: at which temperature each token was sampled, which is where it is scored; None
            for 1 everywhere.
        support: the ids that each token was drawn from, within which it is scored; None for all ids everywhere.
    """

    positions: Tensor
    buckets: tuple[tuple[int, int], ...]
    pad: Tensor | None
    unpad: Tensor | None
    useful: float
    ends: Tensor
    longest: int
    share: Share | None = None
    experts: Tensor | None = None
    ragged: bool = False
    temperature: Tensor | None = None
    support: Support | None = None

    def to(self, device: torch.device) -> Packing:
        """The same there."""
        pad, unpad, experts, temperature = (
            None if part is None else part.to(device) for part in (self.pad, self.unpad, self.experts, self.temperature)
        )
        positions, ends = self.positions.to(device), self.ends.to(device)
        support = None if self.support is None else self.support.to(device)
        return replace(
            self,
            positions=positions,
            pad=pad,
            unpad=unpad,
            ends=ends,
            experts=experts,
            temperature=temperature,
            support=support,
        )

    def temperature_at(self, where: Tensor) -> Tensor | None:
        """``[M]`` of some tokens; None for 1 everywhere."""
        return None if self.temperature is None else self.temperature[where]

    def support_at(self, where: Tensor) -> Support | None:
        """The supports of some tokens; None for all ids everywhere."""
        return None if self.support is None else self.support.at(where)

    def without_padding(self) -> Packing:
        """The same for attention that needs no rectangles."""
        return replace(self, ragged=True, useful=1.0)

    @property
    def cells(self) -> list[int]:
        """Cells of each rectangle."""
        return [rows * length for rows, length in self.buckets]


def bucket_lengths(lengths: NDArray[np.int64]) -> list[int]:
    """Upper row lengths of the buckets that cost least, ascending; the last one is the longest row.

    Exact dynamic programme over distinct lengths; a bucket of n rows padded to L costs ``n L (L + TOKEN_COST) + BUCKET_COST``.

    >>> bucket_lengths(np.array([5, 5, 5])), bucket_lengths(np.array([4] * 90 + [200] * 9))
    ([5], [4, 200])
    """
    distinct, counts = np.unique(lengths, return_counts=True)
    total = np.concatenate([[0], np.cumsum(counts)])
    best = np.zeros(len(distinct) + 1)
    start = np.zeros(len(distinct) + 1, np.int64)
    for j in range(1, len(distinct) + 1):
        longest = float(distinct[j - 1])
        cost = best[:j] + (total[j] - total[:j]) * longest * (longest + TOKEN_COST) + BUCKET_COST
        start[j] = int(cost.argmin())
        best[j] = cost[start[j]]
    ends: list[int] = []
    j = len(distinct)
    while j > 0:
        ends.append(int(distinct[j - 1]))
        j = int(start[j])
    return ends[::-1]


def pack_offsets(offsets: NDArray[np.int64]) -> Packing:
    """The packing of rows at ``offsets`` (``[B + 1]``, ascending from 0, no empty row).

    >>> p = pack_offsets(np.array([0, 2, 5]))
    >>> p.positions.tolist(), p.buckets, p.pad.tolist(), p.unpad.tolist(), p.ends.tolist(), p.longest
    ([0, 1, 0, 1, 2], ((2, 3),), [0, 1, 1, 2, 3, 4], [0, 1, 3, 4, 5], [0, 2, 5], 3)
    """
    lengths = np.diff(offsets)
    starts = offsets[:-1]
    positions = np.arange(int(offsets[-1])) - np.repeat(starts, lengths)
    ends = bucket_lengths(lengths)
    bucket_of = np.searchsorted(ends, lengths)
    order = np.argsort(bucket_of, kind="stable")
    rows_in = np.bincount(bucket_of, minlength=len(ends))
    buckets = tuple((int(n), length) for n, length in zip(rows_in, ends, strict=True))
    width = np.repeat(ends, rows_in)
    computed = int((width * width).sum())
    useful = float((lengths * lengths).sum()) / max(1, computed)
    told = tensor_of(offsets.astype(np.int32)), int(lengths.max(initial=0))
    ordered = order.size == 0 or bool((order[1:] > order[:-1]).all())
    if ordered and int(width.sum()) == int(offsets[-1]):
        return Packing(tensor_of(positions), buckets, None, None, useful, *told)
    cell_start = np.concatenate([[0], np.cumsum(width)[:-1]])
    column = np.arange(int(width.sum())) - np.repeat(cell_start, width)
    last = np.repeat(lengths[order] - 1, width)
    pad = np.repeat(starts[order], width) + np.minimum(column, last)
    start_of_row = np.empty(len(lengths), np.int64)
    start_of_row[order] = cell_start
    unpad = np.repeat(start_of_row, lengths) + positions
    return Packing(tensor_of(positions), buckets, tensor_of(pad), tensor_of(unpad), useful, *told)
