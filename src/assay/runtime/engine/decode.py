"""The decode path: prompts through the whole model at once, then one token per row and step from a static key-value cache.

Rows are left-aligned: the token at position p of a row has its keys and values at index p of the row's slot, whatever its
neighbours do, so rows of any length share a step. Attention in a step is matmul, softmax, matmul: for queries of length one
on CPU that is about half again as fast as the fused kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from assay.core.columns import Array
from assay.core.rollout import Ids
from assay.runtime.engine.sequences import ColumnKind
from assay.runtime.engine.weights import LayerWeights, ServedWeights
from assay.runtime.kernels.ops import frequencies
from assay.runtime.kernels.typed import tensor_of
from assay.runtime.settings import DecoderShape

__all__ = ["DecodePath", "KVCache", "Prefill", "chunks", "pad_rows"]

_PREFILL_TOKENS = 4096  # most tokens, padding included, in one prefill pass
_LOGIT_ELEMENTS = 1 << 24  # most logits held at once when scoring


@dataclass(frozen=True, slots=True, eq=False)
class Prefill:
    """Keys and values of some prompts, and the logits behind their last tokens.

    Attributes:
        k, v: ``[layers, n, kv_heads, T, head_dim]``; behind a prompt's own length they hold values that no row may read.
        logits: ``[n, vocabulary]``.
        columns, prompts: none.
    """

    k: torch.Tensor
    v: torch.Tensor
    logits: torch.Tensor
    columns: Mapping[str, Array] = field(default_factory=dict[str, Array])
    prompts: Mapping[str, Sequence[Array]] = field(default_factory=dict[str, Sequence[Array]])


class KVCache:
    """``k`` and ``v``: ``[layers, slots, kv_heads, length, head_dim]``, grown geometrically."""

    def __init__(self, shape: DecoderShape, max_slots: int) -> None:
        self._shape, self._max_slots = shape, max_slots
        self.k = self._empty(0, 0)
        self.v = self._empty(0, 0)

    def _empty(self, slots: int, length: int) -> torch.Tensor:
        # zeros, not empty: entries behind a row's end are masked, and 0 * garbage could be NaN
        s = self._shape
        return torch.zeros(s.num_layers, slots, s.num_kv_heads, length, s.head_dim)

    @property
    def slots(self) -> int:
        """Rows that fit."""
        return self.k.shape[1]

    @property
    def length(self) -> int:
        """Tokens per row that fit."""
        return self.k.shape[3]

    def reserve(self, slots: int, length: int, used: int) -> None:
        """Makes room for ``slots`` rows of ``length`` tokens, keeping the first ``used`` rows."""
        if slots <= self.slots and length <= self.length:
            return
        new_slots = self.slots if slots <= self.slots else min(self._max_slots, max(slots, 2 * self.slots))
        new_length = self.length if length <= self.length else min(self._shape.max_positions, max(length, 2 * self.length))
        old_k, old_v, old = self.k, self.v, self.length
        self.k, self.v = self._empty(new_slots, new_length), self._empty(new_slots, new_length)
        if used:
            self.k[:, :used, :, :old] = old_k[:, :used]
            self.v[:, :used, :, :old] = old_v[:, :used]

    def place(self, prefill: Prefill, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """Copies prompts ``rows`` of a prefill to ``slots``."""
        length, first = prefill.k.shape[3], int(slots[0])
        index = tensor_of(rows)
        if np.array_equal(slots, np.arange(first, first + len(slots))):
            here = slice(first, first + len(slots))
            self.k[:, here, :, :length] = prefill.k.index_select(1, index)
            self.v[:, here, :, :length] = prefill.v.index_select(1, index)
        else:
            there = tensor_of(slots)
            self.k[:, there, :, :length] = prefill.k.index_select(1, index)
            self.v[:, there, :, :length] = prefill.v.index_select(1, index)

    def move(self, source: NDArray[np.int64], target: NDArray[np.int64], length: int) -> None:
        """Copies the first ``length`` tokens of rows ``source`` over rows ``target``."""
        a, b = tensor_of(source), tensor_of(target)
        for cache in (self.k, self.v):
            cache[:, b, :, :length] = cache[:, a, :, :length]  # not index_select, which copies all rows of a slice first


class DecodePath:
    """Forward passes of one decoder over its `ServedWeights` and a `KVCache`; it tells of no columns beside the logits."""

    def __init__(self, weights: ServedWeights, max_slots: int) -> None:
        self.kinds: Mapping[str, ColumnKind] = {}
        self.shape, self.weights = weights.shape, weights
        self.cache = KVCache(weights.shape, max_slots)
        self._cos, self._sin = torch.empty(0), torch.empty(0)

    def _rotary(self, length: int) -> None:
        """Makes the rotary tables hold ``length`` positions; the sign of the first half's sine is folded in."""
        if len(self._cos) >= length:
            return
        positions = torch.arange(min(self.shape.max_positions, max(length, 2 * len(self._cos)))).float()
        angle = torch.outer(positions, frequencies(self.shape))
        self._cos = torch.cat([angle.cos(), angle.cos()], -1)
        self._sin = torch.cat([-angle.sin(), angle.sin()], -1)

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight, self.shape.norm_eps)

    def _turn(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return (x * cos).addcmul_(x.roll(x.shape[-1] // 2, -1), sin)

    def _heads(
        self, x: torch.Tensor, w: LayerWeights, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """``[N, hidden]`` to normed and turned queries, keys, and values, ``[N, heads, head_dim]`` each."""
        s = self.shape
        z = F.linear(self._norm(x, w.norm1), w.qkv).view(len(x), -1, s.head_dim)
        keys, values = s.num_heads, s.num_heads + s.num_kv_heads
        q, k, v = z[:, :keys], z[:, keys:values], z[:, values:]
        if w.q_norm is not None and w.k_norm is not None:
            q, k = self._norm(q, w.q_norm), self._norm(k, w.k_norm)
        return self._turn(q, cos, sin), self._turn(k, cos, sin), v

    def _rest(self, x: torch.Tensor, attended: torch.Tensor, w: LayerWeights) -> torch.Tensor:
        """Output projection and the gated feed-forward part, added to ``x`` ``[N, hidden]``."""
        x = torch.addmm(x, attended, w.out.t())
        gate, up = F.linear(self._norm(x, w.norm2), w.gate_up).chunk(2, -1)
        return torch.addmm(x, F.silu(gate).mul_(up), w.down.t())

    def _logits(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(self._norm(x, self.weights.norm), self.weights.head)

    @torch.inference_mode()
    def step(self, tokens: NDArray[np.int64], positions: NDArray[np.int64]) -> torch.Tensor:
        """Appends one token to each of the first ``B`` rows.

        Args:
            tokens: ``[B]`` ids.
            positions: ``[B]`` where they stand in their rows.

        Returns:
            ``[B, vocabulary]`` logits of what comes next.
        """
        s, b = self.shape, len(tokens)
        kv, group, length = s.num_kv_heads, s.num_heads // s.num_kv_heads, self.cache.length
        span = int(positions.max()) + 1
        self._rotary(span)
        at = tensor_of(positions)
        cos, sin = self._cos[at][:, None], self._sin[at][:, None]
        row = np.arange(b, dtype=np.int64)[:, None] * kv + np.arange(kv, dtype=np.int64)
        write = tensor_of((row * length + positions[:, None]).reshape(-1))
        bias, beta = self._bias(positions, span, kv, group)
        x = F.embedding(tensor_of(tokens), self.weights.embedding)
        scale = s.head_dim**-0.5
        for layer, w in enumerate(self.weights.layers):
            q, k, v = self._heads(x, w, cos, sin)
            keys, values = self.cache.k[layer, :b], self.cache.v[layer, :b]
            keys.view(-1, s.head_dim).index_copy_(0, write, k.reshape(-1, s.head_dim))
            values.view(-1, s.head_dim).index_copy_(0, write, v.reshape(-1, s.head_dim))
            keys = keys.view(b * kv, length, s.head_dim)[:, :span]
            values = values.view(b * kv, length, s.head_dim)[:, :span]
            scores = torch.baddbmm(bias, q.view(b * kv, group, s.head_dim), keys.mT, beta=beta, alpha=scale)
            x = self._rest(x, torch.bmm(scores.softmax(-1), values).view(b, -1), w)
        return self._logits(x)

    def extras(self) -> Mapping[str, Array]:
        """Nothing."""
        return {}

    def _bias(self, positions: NDArray[np.int64], span: int, kv: int, group: int) -> tuple[torch.Tensor, int]:
        """What is added to the scores, with its factor: -inf behind each row's end; nothing when all rows are as long."""
        if int(positions.min()) + 1 == span:
            return torch.zeros(1, 1, 1), 0
        behind = torch.arange(span) > tensor_of(positions)[:, None]
        bias = torch.zeros(behind.shape).masked_fill_(behind, float("-inf"))
        return bias[:, None, None].expand(-1, kv, group, -1).reshape(-1, group, span), 1

    @torch.inference_mode()
    def prefill(self, prompts: Sequence[Ids]) -> Prefill:
        """Whole prompts in one pass, padded on the right; padding is behind everything that counts, so it changes nothing."""
        s, n = self.shape, len(prompts)
        lengths = np.array([len(p) for p in prompts], np.int64)
        span = int(lengths.max())
        size = (s.num_layers, n, s.num_kv_heads, span, s.head_dim)
        kept = (torch.empty(size), torch.empty(size))
        last = tensor_of(np.arange(n, dtype=np.int64) * span + lengths - 1)
        x = self._forward(pad_rows(prompts, span), last, kept)
        return Prefill(kept[0], kept[1], self._logits(x))

    def _forward(
        self, ids: torch.Tensor, wanted: torch.Tensor | None, kept: tuple[torch.Tensor, torch.Tensor] | None
    ) -> torch.Tensor:
        """``[n, T]`` ids to hidden states of all tokens, or of those at ``wanted`` in the flattened rows."""
        s, (n, span) = self.shape, ids.shape
        self._rotary(span)
        cos, sin = self._cos[:span].repeat(n, 1)[:, None], self._sin[:span].repeat(n, 1)[:, None]
        x = F.embedding(ids.view(-1), self.weights.embedding)
        for layer, w in enumerate(self.weights.layers):
            q, k, v = (t.view(n, span, -1, s.head_dim).transpose(1, 2) for t in self._heads(x, w, cos, sin))
            if kept is not None:
                kept[0][layer].copy_(k)
                kept[1][layer].copy_(v)
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=s.num_heads != s.num_kv_heads)
            flat = attended.transpose(1, 2).reshape(n * span, -1)
            if wanted is not None and layer == s.num_layers - 1:
                x, flat = x[wanted], flat[wanted]
            x = self._rest(x, flat, w)
        return x

    @torch.inference_mode()
    def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Log-probability at temperature 1 of each token given those before it; 0 for the first of a row."""
        out = [np.zeros(len(r), np.float32) for r in rows]
        for part in chunks([len(r) for r in rows]):
            span = len(rows[part[-1]])
            if span < 2:
                continue
            ids = pad_rows([rows[i] for i in part], span)
            x = self._forward(ids, None, None).view(len(part), span, -1)[:, :-1]
            logp = self._target_logp(x.reshape(-1, x.shape[-1]), ids[:, 1:].reshape(-1)).view(len(part), span - 1).numpy()
            for i, values in zip(part, logp, strict=True):
                out[i][1:] = values[: max(0, len(rows[i]) - 1)]
        return out

    def _target_logp(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        piece = max(1, _LOGIT_ELEMENTS // self.shape.vocab_size)
        return torch.cat(
            [
                self._logits(x[i : i + piece]).log_softmax(-1).gather(1, targets[i : i + piece, None])[:, 0]
                for i in range(0, len(x), piece)
            ]
        )


def chunks(lengths: Sequence[int]) -> list[list[int]]:
    """Indices in passes of at most `_PREFILL_TOKENS` padded tokens, ascending in length, so that padding is little."""
    out: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not out or (len(out[-1]) + 1) * lengths[i] > _PREFILL_TOKENS:
            out.append([])
        out[-1].append(i)
    return out


def pad_rows(rows: Sequence[Ids], span: int) -> torch.Tensor:
    """``[n, span]`` ids, left-aligned, 0 behind each row."""
    ids = np.zeros((len(rows), span), np.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    return tensor_of(ids)
