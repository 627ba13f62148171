"""A Qwen3- or Llama-family decoder for training: packed rows in, hidden states, logits or log-probabilities out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.core.errors import ConfigError
from assay.runtime.compiled import build
from assay.runtime.compiled.activation_cache import ActivationCache
from assay.runtime.compiled.training import CompiledPasses
from assay.runtime.kernels.ops import frequencies, pad_rows, rms_norm, rotate, unpad_rows
from assay.runtime.kernels.typed import split
from assay.runtime.learner.causal import Causal, copy_in
from assay.runtime.learner.lm_head import LmHead
from assay.runtime.learner.packing import Packing
from assay.runtime.settings import DecoderShape

__all__ = ["Decoder"]


class _Weight(nn.Module):
    """One parameter called ``weight``; no random initialisation, so building a module leaves torch's global generator alone."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(shape))


class _Attention(nn.Module):
    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.shape = shape
        queries, keys = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
        self.q_proj = _Weight(queries, shape.hidden_size)
        self.k_proj = _Weight(keys, shape.hidden_size)
        self.v_proj = _Weight(keys, shape.hidden_size)
        self.o_proj = _Weight(shape.hidden_size, queries)
        if shape.qk_norm:
            self.q_norm = _Weight(shape.head_dim)
            self.k_norm = _Weight(shape.head_dim)

    def forward(self, x: Tensor, packing: Packing, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Mixed heads ``[N, heads * head_dim]`` before the output projection."""
        s = self.shape
        q = functional.linear(x, self.q_proj.weight).view(-1, s.num_heads, s.head_dim)
        k = functional.linear(x, self.k_proj.weight).view(-1, s.num_kv_heads, s.head_dim)
        v = functional.linear(x, self.v_proj.weight).view(-1, s.num_kv_heads, s.head_dim)
        if s.qk_norm:
            q = rms_norm(q, self.q_norm.weight, s.norm_eps)
            k = rms_norm(k, self.k_norm.weight, s.norm_eps)
        q, k = rotate(q, *turn), rotate(k, *turn)
        if packing.pad is not None and packing.unpad is not None:
            q, k, v = (pad_rows(part, packing.pad, packing.unpad) for part in (q, k, v))
        cells = packing.cells
        parts = zip(split(q, cells), split(k, cells), split(v, cells), packing.buckets, strict=True)
        mixed = [_attend(queries, keys, values, bucket) for queries, keys, values, bucket in parts]
        out = mixed[0] if len(mixed) == 1 else torch.cat(mixed)
        return out if packing.unpad is None else unpad_rows(out, packing.unpad)


def _attend(q: Tensor, k: Tensor, v: Tensor, bucket: tuple[int, int]) -> Tensor:
    """Causal attention of ``[rows * length, heads, D]`` as ``[rows * length, heads * D]``."""
    q, k, v = (t.view(*bucket, *t.shape[1:]) for t in (q, k, v))
    share = q.shape[2] // k.shape[2]
    if share > 1:
        k, v = (t.unsqueeze(3).expand(-1, -1, -1, share, -1).flatten(2, 3) for t in (k, v))
    out = functional.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
    return out.transpose(1, 2).reshape(q.shape[0] * q.shape[1], -1)


class _Mlp(nn.Module):
    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.gate_proj = _Weight(shape.intermediate_size, shape.hidden_size)
        self.up_proj = _Weight(shape.intermediate_size, shape.hidden_size)
        self.down_proj = _Weight(shape.hidden_size, shape.intermediate_size)

    def forward(self, x: Tensor) -> Tensor:
        gate = functional.silu(functional.linear(x, self.gate_proj.weight))
        return functional.linear(gate * functional.linear(x, self.up_proj.weight), self.down_proj.weight)


class _Layer(nn.Module):
    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.eps = shape.norm_eps
        self.input_layernorm = _Weight(shape.hidden_size)
        self.self_attn = _Attention(shape)
        self.post_attention_layernorm = _Weight(shape.hidden_size)
        self.mlp = _Mlp(shape)

    def forward(self, x: Tensor, packing: Packing, turn: tuple[Tensor, Tensor], wanted: Tensor | None) -> Tensor:
        mixed = self.self_attn(rms_norm(x, self.input_layernorm.weight, self.eps), packing, turn)
        if wanted is not None:  # nothing behind the last attention mixes tokens: go on with those that are read
            x, mixed = unpad_rows(x, wanted), unpad_rows(mixed, wanted)
        x = x + functional.linear(mixed, self.self_attn.o_proj.weight)
        return x + self.mlp(rms_norm(x, self.post_attention_layernorm.weight, self.eps))


class _Body(nn.Module):
    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.embed_tokens = _Weight(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(_Layer(shape) for _ in range(shape.num_layers))
        self.norm = _Weight(shape.hidden_size)


class Decoder(Causal):
    """Decoder with Hugging Face parameter names, on concatenated rows.

    Linear layers, norms and head run on real tokens only; attention runs per length bucket (`Packing`). Norms and head are fp32
    under autocast too.

    Args:
        shape: sizes; weights start as zeros and are set by `load_tensors`.
        kernel: compute float32 states by the library that is compiled on first use, where it can be; modules are then not
            called.

    >>> sorted(Decoder(DecoderShape(num_layers=0)).state_dict())
    ['model.embed_tokens.weight', 'model.norm.weight']
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: DecoderShape, kernel: bool = False) -> None:
        super().__init__()
        self._shape = shape
        self._library = build.kernel() if kernel else None
        self._passes = None if self._library is None else CompiledPasses(self._library, shape)
        self.model = _Body(shape)
        self._weights = tuple(self.model.parameters())  # to walk through the modules takes longer than to pack what they hold
        if not shape.tied:
            self.lm_head = _Weight(shape.vocab_size, shape.hidden_size)
        cos, sin = _turns(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    @property
    def shape(self) -> DecoderShape:
        """Sizes and constants."""
        return self._shape

    @property
    def head(self) -> LmHead:
        """What gives logits: the embedding when tied."""
        return LmHead(self.model.embed_tokens.weight if self.shape.tied else self.lm_head.weight, library=self._library)

    @property
    def shares(self) -> bool:
        """Whether what rows of a pass begin with is computed once: where the pass is compiled, which is in float32."""
        return self._passes is not None and not torch.is_autocast_enabled("cpu") and self.embedding.dtype == torch.float32

    @property
    def follows(self) -> bool:
        """Where passes are compiled."""
        return self._passes is not None

    @property
    def recalled(self) -> int:
        """As `Causal.recalled`."""
        return self._passes.recalled if self.shares and self._passes is not None else 0

    def follow(self, cache: ActivationCache | None) -> None:
        """As `Causal.follow`."""
        if self._passes is not None:
            self._passes.activation_cache = cache

    @property
    def embedding(self) -> Tensor:
        """What ids are looked up in."""
        return self.model.embed_tokens.weight

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Copies weights in, as fp32.

        Raises:
            ConfigError: a name is missing or unknown, or a shape differs from ``shape``; names the first tensor.
        """
        copy_in(self.state_dict(), tensors, "the decoder", ConfigError)

    def hidden_states(self, ids: Tensor, packing: Packing, wanted: Tensor | None = None) -> Tensor:
        """Hidden states after the final norm, as `Causal.hidden_states` says."""
        if self.shares and self._passes is not None:
            return self._passes.hidden_states(self._weights, ids, packing, wanted)
        x = functional.embedding(ids, self.model.embed_tokens.weight)
        turn = (self.cos[packing.positions].unsqueeze(1), self.sin[packing.positions].unsqueeze(1))
        last = self.shape.num_layers - 1
        for index, layer in enumerate(self.model.layers):
            x = cast(_Layer, layer)(x, packing, turn, wanted if index == last else None)
        if last < 0 and wanted is not None:
            x = unpad_rows(x, wanted)
        return rms_norm(x, self.model.norm.weight, self.shape.norm_eps)


def _turns(shape: DecoderShape) -> tuple[Tensor, Tensor]:
    """``[max_positions, head_dim]`` cosines, and sines with the first half negated."""
    angle = torch.outer(torch.arange(shape.max_positions).float(), frequencies(shape))
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([cos, cos], 1), torch.cat([-sin, sin], 1)
