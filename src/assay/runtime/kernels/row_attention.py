"""Attention of transformers' models over concatenated rows: linear layers see no padding, and no row sees another.

Registered with transformers as the attention `ROWS`. A pass hands its `Packing` down as the keyword ``rows``; attention then runs
on rectangles of rows of nearly equal length, as in `assay.runtime.learner.decoder`, or on the rows as they are where that packing
says so (`assay.runtime.kernels.ragged_attention`). Without it a batch of equally long rows is meant.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations import sdpa_attention

from assay.core.errors import ConfigError
from assay.runtime.kernels.ops import pad_rows, unpad_rows
from assay.runtime.kernels.ragged_attention import attend
from assay.runtime.kernels.typed import split
from assay.runtime.learner.packing import Packing

__all__ = ["ROWS", "rows_attention"]

ROWS = "assay_rows"


def rows_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    rows: Packing | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Causal attention, row by row.

    Args:
        module: the attention layer.
        query, key, value: ``[1, heads, N, D]`` of concatenated rows, or ``[B, heads, L, D]`` of equally long ones; where ranks
            share the tokens, ``N`` are this one's.
        attention_mask: not used: rows are whole and causal.
        rows: where the rows lie.
        others: what the layer says besides: scale, window, soft cap.

    Returns:
        ``[1, N, heads, D]`` or ``[B, L, heads, D]``, and no weights.

    Raises:
        ConfigError: rows as they are for a layer with soft caps or sinks, which needs the scores.
    """
    if rows is None:
        return _rectangle(module, query, key, value, others), None
    q, k, v = (part[0].transpose(0, 1) for part in (query, key, value))
    if rows.share is not None:
        q, k, v = (rows.share.heads(part) for part in (q, k, v))
    if rows.ragged:
        if _own(others):
            raise ConfigError(f"{type(module).__name__} has soft caps or sinks: its attention runs on rectangles alone")
        return attend(q, k, v, rows, scale=others.get("scaling"), window=others.get("sliding_window")).unsqueeze(0), None
    if rows.pad is not None and rows.unpad is not None:
        q, k, v = (pad_rows(part, rows.pad, rows.unpad) for part in (q, k, v))
    parts = zip(*(split(part, rows.cells) for part in (q, k, v)), rows.buckets, strict=True)
    mixed = [_bucket(module, queries, keys, values, bucket, others) for queries, keys, values, bucket in parts]
    out = mixed[0] if len(mixed) == 1 else torch.cat(mixed)
    out = out if rows.unpad is None else unpad_rows(out, rows.unpad)
    return (out if rows.share is None else rows.share.tokens(out)).unsqueeze(0), None


def _bucket(module: nn.Module, q: Tensor, k: Tensor, v: Tensor, bucket: tuple[int, int], others: dict[str, Any]) -> Tensor:
    """``[rows * length, heads, D]`` of such."""
    queries, keys, values = (part.view(*bucket, *part.shape[1:]).transpose(1, 2) for part in (q, k, v))
    return _rectangle(module, queries, keys, values, others).flatten(0, 1)


def _rectangle(module: nn.Module, q: Tensor, k: Tensor, v: Tensor, others: dict[str, Any]) -> Tensor:
    """``[B, L, heads, D]``, by PyTorch's kernel, or by the model's own code where that has something besides."""
    window, length = others.get("sliding_window"), q.shape[2]
    near = window if window is not None and window < length else None
    if _own(others):
        own: Any = sys.modules[type(module).__module__]
        return own.eager_attention_forward(module, q, k, v, _additive(q, near), **others)[0]
    mask = None if near is None else _visible(length, near, q.device)
    return cast(Any, sdpa_attention).sdpa_attention_forward(module, q, k, v, mask, **others)[0]


def _own(others: dict[str, Any]) -> bool:
    """Whether the layer does with its scores what no kernel does."""
    return others.get("softcap") is not None or others.get("s_aux") is not None


def _visible(length: int, window: int | None, device: torch.device) -> Tensor:
    """``[1, 1, L, L]`` which keys a query sees: those before it, itself, and none further back than a window."""
    place = torch.arange(length, device=device)
    ago = place[:, None] - place[None, :]
    seen = ago >= 0 if window is None else (ago >= 0) & (ago < window)
    return seen[None, None]


def _additive(like: Tensor, window: int | None) -> Tensor:
    seen = _visible(like.shape[2], window, like.device)
    return torch.zeros(seen.shape, dtype=like.dtype, device=like.device).masked_fill_(~seen, torch.finfo(like.dtype).min)


def _no_mask(*args: Any, **kwargs: Any) -> None:
    """Which tokens see which is `rows_attention`'s own doing."""


cast(Any, AttentionInterface).register(ROWS, rows_attention)
cast(Any, AttentionMaskInterface).register(ROWS, _no_mask)
