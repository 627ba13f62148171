"""Slots for the keys and values of any Hugging Face decoder, behind transformers' own `Cache` interface.

The token at position p of a row has its keys and values at index p of the row's slot in every layer, whatever its neighbours do;
a mask per row says which of them a token sees. So rows of any length share a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from assay.core.columns import Array
from assay.runtime.kernels.typed import tensor_of

__all__ = ["HubPrefill", "SlotCache", "SlotLayer", "visible"]


@dataclass(frozen=True, slots=True, eq=False)
class HubPrefill:
    """Keys and values of some prompts, and what stands behind their last tokens.

    Attributes:
        layers: per layer keys and values, ``[n, kv_heads, T, head_dim]``; behind a prompt's own length they hold values that no
            row may read.
        logits: ``[n, vocabulary]`` float32.
        columns: ``[n, ...]`` per further column, of the token that comes next.
        prompts: ``[P, ...]`` of each prompt's own tokens.
    """

    layers: Sequence[tuple[Tensor, Tensor]]
    logits: Tensor
    columns: Mapping[str, Array]
    prompts: Mapping[str, Sequence[Array]]


class _Aim:
    """Where the tokens of a step are written: positions ``[B]``, one per row, and how far rows are read."""

    def __init__(self) -> None:
        self.positions, self.span = torch.empty(0, dtype=torch.int64), 0
        self._index: dict[tuple[int, int], Tensor] = {}

    def set(self, positions: Tensor, span: int) -> None:
        self.positions, self.span = positions, span
        self._index.clear()

    def index(self, kv_heads: int, length: int) -> Tensor:
        """``[B * kv_heads]`` rows of a buffer that is seen as ``[slots * kv_heads * length, head_dim]``."""
        found = self._index.get((kv_heads, length))
        if found is None:
            at = self.positions
            row = torch.arange(len(at) * kv_heads, device=at.device).view(-1, kv_heads) * length
            found = self._index[kv_heads, length] = (row + at[:, None]).view(-1)
        return found


class SlotLayer(CacheLayerMixin):
    """One layer's buffers: ``keys`` and ``values``, ``[slots, kv_heads, length, head_dim]``; the two may differ in head_dim."""

    def __init__(self, aim: _Aim, keys: Tensor, values: Tensor) -> None:
        super().__init__()  # type: ignore[reportUnknownMemberType]
        self.keys: Tensor = keys  # type: ignore[reportIncompatibleVariableOverride]
        self.values: Tensor = values  # type: ignore[reportIncompatibleVariableOverride]
        self._aim, self.is_initialized = aim, True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing: the buffers are there."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Writes ``[B, kv_heads, 1, head_dim]`` at each row's position; gives the first ``B`` slots up to the longest row."""
        return self._write(self.keys, key_states), self._write(self.values, value_states)

    def _write(self, buffer: Tensor, new: Tensor) -> Tensor:
        rows, kv_heads, _, head_dim = new.shape
        index = self._aim.index(kv_heads, buffer.shape[2])
        buffer.view(-1, head_dim).index_copy_(0, index, new.reshape(-1, head_dim))
        return buffer[:rows, :, : self._aim.span]

    def get_seq_length(self) -> int:
        """Tokens before those of this step, of the longest row."""
        return self._aim.span - 1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(tokens that are read, 0)."""
        return self._aim.span, 0

    def get_max_length(self) -> int:
        """Tokens per row that fit."""
        return self.keys.shape[2]


class SlotCache(Cache):
    """The layers' buffers, grown geometrically.

    Args:
        sample: keys and values of any tokens, ``[n, kv_heads, T, head_dim]`` per layer: what one slot holds, where and as what.
        max_slots, context: bounds of growth.
        static: tell the compiler that a buffer stays where it is until it grows.
    """

    def __init__(self, sample: Sequence[tuple[Tensor, Tensor]], max_slots: int, context: int, *, static: bool = False) -> None:
        self._aim, self._max_slots, self._context, self._static = _Aim(), max_slots, context, static
        super().__init__(layers=[SlotLayer(self._aim, self._empty(k, 0, 0), self._empty(v, 0, 0)) for k, v in sample])

    def _empty(self, like: Tensor, slots: int, length: int) -> Tensor:
        # zeros, not empty: entries behind a row's end are masked, and 0 * garbage could be NaN
        return like.new_zeros(slots, like.shape[1], length, like.shape[3])

    @property
    def own(self) -> list[SlotLayer]:
        """The layers."""
        return self.layers  # type: ignore[return-value]

    @property
    def slots(self) -> int:
        """Rows that fit."""
        return self.own[0].keys.shape[0]

    @property
    def length(self) -> int:
        """Tokens per row that fit."""
        return self.own[0].keys.shape[2]

    def aim(self, positions: Tensor, span: int) -> None:
        """Says where the next token of each row goes, ``[B]``; rows are read up to ``span``."""
        self._aim.set(positions, span)

    def reserve(self, slots: int, length: int, used: int) -> None:
        """Makes room for ``slots`` rows of ``length`` tokens, keeping the first ``used`` rows."""
        if slots <= self.slots and length <= self.length:
            return
        rows = self.slots if slots <= self.slots else min(self._max_slots, max(slots, 2 * self.slots))
        size = self.length if length <= self.length else min(self._context, max(length, 2 * self.length))
        for layer in self.own:
            layer.keys, layer.values = (self._grow_cache(old, rows, size, used) for old in (layer.keys, layer.values))

    def _grow_cache(self, old: Tensor, slots: int, length: int, used: int) -> Tensor:
        new = self._empty(old, slots, length)
        new[:used, :, : old.shape[2]] = old[:used]
        if self._static:
            cast(Any, torch)._dynamo.mark_static_address(new)
        return new

    def place(self, prefill: HubPrefill, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """Copies prompts ``rows`` of a prefill to ``slots``."""
        first, device = int(slots[0]), self.own[0].keys.device
        adjoining = np.array_equal(slots, np.arange(first, first + len(slots)))
        there = slice(first, first + len(slots)) if adjoining else tensor_of(slots).to(device)
        index = tensor_of(rows).to(device)
        for layer, (keys, values) in zip(self.own, prefill.layers, strict=True):
            layer.keys[there, :, : keys.shape[2]] = keys.index_select(0, index)
            layer.values[there, :, : values.shape[2]] = values.index_select(0, index)

    def move(self, source: NDArray[np.int64], target: NDArray[np.int64], length: int) -> None:
        """Copies the first ``length`` tokens of rows ``source`` over rows ``target``."""
        device = self.own[0].keys.device
        a, b = tensor_of(source).to(device), tensor_of(target).to(device)
        for layer in self.own:
            for buffer in (layer.keys, layer.values):
                buffer[b, :, :length] = buffer[a, :, :length]


def visible(positions: Tensor, span: int, window: int | None, dtype: torch.dtype) -> Tensor:
    """The mask of a step: ``[B, 1, 1, span]``, 0 where the token at a row's position sees a key and -inf elsewhere.

    It sees itself and all before it, or with a ``window`` only the last ``window`` of these.

    >>> visible(torch.tensor([1, 3]), 4, 2, torch.float32)[:, 0, 0].tolist()
    [[0.0, 0.0, -inf, -inf], [-inf, -inf, 0.0, 0.0]]
    """
    key, at = torch.arange(span, device=positions.device), positions[:, None]
    hidden = key > at if window is None else (key > at) | (key <= at - window)
    return torch.zeros(hidden.shape, dtype=dtype, device=positions.device).masked_fill_(hidden, float("-inf"))[:, None, None]
