"""Rows whose tokens several ranks share: each computes a part of them, and in attention all of them for a part of the heads.

Source: Jacobs et al. 2023, "DeepSpeed Ulysses". Linear layers, norms and logits see this rank's tokens alone; around attention
two exchanges turn parts of the tokens with all heads into all tokens with parts of the heads, and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Share"]


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """The ranks that share the tokens of a micro-batch, and which of them this is.

    Attributes:
        group: theirs.
        index, size: this one, of how many.
    """

    group: dist.ProcessGroup
    index: int
    size: int

    def pad_offsets(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows lie when a last one, that nobody reads, makes the tokens go into equal parts."""
        more = -int(offsets[-1]) % self.size
        return np.append(offsets, offsets[-1] + more) if more else offsets

    def own(self, total: int) -> slice:
        """Which of ``total`` tokens are this rank's."""
        each = total // self.size
        return slice(self.index * each, (self.index + 1) * each)

    def select_positions(self, where: Tensor, total: int) -> Tensor:
        """Which of the tokens ``where [M]`` are read from a state of this rank's: the one before each."""
        own = self.own(total)
        return torch.nonzero((where - 1 >= own.start) & (where - 1 < own.stop)).flatten()

    def heads(self, x: Tensor) -> Tensor:
        """``[n, H, D]`` of this rank's tokens as ``[N, H / size, D]``: all tokens of its heads."""
        n, heads, width = x.shape
        parts = x.view(n, self.size, heads // self.size, width).transpose(0, 1).contiguous()
        return self._exchange_parts(parts).flatten(0, 1)

    def tokens(self, x: Tensor) -> Tensor:
        """The way back: ``[N, H / size, D]`` as ``[n, H, D]``."""
        total, heads, width = x.shape
        parts = self._exchange_parts(x.reshape(self.size, total // self.size, heads, width))
        return parts.transpose(0, 1).flatten(1, 2)

    def _exchange_parts(self, parts: Tensor) -> Tensor:
        return cast(Any, _Exchanged).apply(parts, self.group)

    def gather_tokens(self, values: Tensor, picked: Tensor, total: int) -> Tensor:
        """``[M]`` of what each rank has at the places ``picked``; its gradient goes to this rank's alone."""
        return cast(Any, _Gathered).apply(values, picked, total, self.group)


class _Exchanged(torch.autograd.Function):
    """The ``i``-th of ``[size, ...]`` parts goes to the ``i``-th rank, which sends one back; and so do gradients."""

    @staticmethod
    def forward(ctx: Any, parts: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        out = torch.empty_like(parts, memory_format=torch.contiguous_format)
        cast(Any, dist).all_to_all_single(out, parts.contiguous(), group=group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return cast(Any, _Exchanged).apply(grads[0], ctx.group), None


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, picked: Tensor, total: int, group: dist.ProcessGroup) -> Tensor:
        ctx.save_for_backward(picked)
        out = values.new_zeros(total, *values.shape[1:]).index_copy(0, picked, values)
        cast(Any, dist).all_reduce(out, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (picked,) = ctx.saved_tensors
        return grads[0].index_select(0, picked), None, None, None
