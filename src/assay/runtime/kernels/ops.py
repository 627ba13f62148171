"""Differentiable pieces with hand-written backward passes: RMS norm, rotary turn, padding.

Each is exact; the hand-written form saves memory traffic, which on a CPU costs as much as the arithmetic of a small model.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from assay.runtime.kernels.typed import l2_norm
from assay.runtime.settings import DecoderShape

__all__ = ["frequencies", "pad_rows", "rms_norm", "rotate", "unpad_rows"]


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        flat = _wide(x).reshape(-1, x.shape[-1])
        scale = l2_norm(flat, 1).square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        normal = flat * scale
        ctx.save_for_backward(normal, scale, weight)
        return (normal * weight).view(x.shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        normal, scale, weight = ctx.saved_tensors
        grad = _wide(grads[0]).reshape(normal.shape)
        product = grad * normal
        radial = torch.mv(product, weight).div_(normal.shape[1]).unsqueeze_(1)
        inner = (grad * weight).addcmul_(normal, radial, value=-1.0).mul_(scale)
        return inner.view(grads[0].shape), product.sum(0), None


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """``x / sqrt(mean(x^2) + eps) * weight`` over the last axis, in fp32 for narrower input (Zhang & Sennrich 2019)."""
    return cast(Any, _RmsNorm).apply(x, weight, eps)


def frequencies(shape: DecoderShape) -> Tensor:
    """``[head_dim / 2]`` radians per position by which each pair of dimensions turns, highest first; 0 for those that do not.

    >>> [round(f, 4) for f in frequencies(DecoderShape(head_dim=8, rope_pairs=3)).tolist()]
    [1.0, 0.1, 0.01, 0.0]
    """
    d = shape.head_dim
    out = 1.0 / (shape.rope_theta ** (torch.arange(0, d, 2, dtype=torch.int64).float() / d))
    if shape.rope_pairs is not None:
        out[shape.rope_pairs :] = 0.0
    return out


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        grad = grads[0]
        return torch.addcmul(grad * cos, grad.roll(grad.shape[-1] // 2, -1), sin, value=-1.0), None, None


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary turn of the two halves of the last axis (Su et al. 2021, in the half-split layout of Hugging Face).

    Args:
        x: ``[N, heads, D]``.
        cos: ``[N, 1, D]``, both halves equal.
        sin: ``[N, 1, D]``, the first half negated. The transpose of the turn is the turn with ``-sin``.
    """
    return cast(Any, _Rotate).apply(x, cos, sin)


class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, pad: Tensor, unpad: Tensor) -> Tensor:
        ctx.save_for_backward(unpad)
        return x.index_select(0, pad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return grads[0].index_select(0, ctx.saved_tensors[0]), None, None


def pad_rows(x: Tensor, pad: Tensor, unpad: Tensor) -> Tensor:
    """``[P, ...]`` rectangle cells of tokens ``[N, ...]``.

    Padding cells must not receive gradient; causal attention gives them none, because no real query reads them.
    """
    return cast(Any, _Pad).apply(x, pad, unpad)


class _Unpad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.cells = len(x)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        out = grads[0].new_zeros((ctx.cells, *grads[0].shape[1:]))
        return out.index_copy_(0, ctx.saved_tensors[0], grads[0]), None


def unpad_rows(x: Tensor, index: Tensor) -> Tensor:
    """``x[index]`` for an ``index`` without repeats, so that the gradient is a copy and no sum."""
    return cast(Any, _Unpad).apply(x, index)
