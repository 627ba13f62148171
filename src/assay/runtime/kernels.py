"""Differentiable pieces with hand-written backward passes: RMS norm, rotary turn, padding, what is read from a large head.

Each is exact; the hand-written form saves memory traffic, which on a CPU costs as much as the arithmetic of a small model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from assay.core.vocab import VocabStat
from assay.runtime.settings import DecoderShape
from assay.runtime.typed import l2_norm

__all__ = ["Beside", "frequencies", "head_columns", "head_statistics", "pad_rows", "rms_norm", "rotate", "unpad_rows"]

HEAD_ELEMENTS = 1 << 22
"""Most logits alive at once: 16 MiB in fp32."""
HEAD_ROWS = 64
"""Fewest positions in one chunk of the head, whatever the vocabulary."""
STAT_SHARE = 2
"""Chunks for statistics hold so many times fewer positions: autograd keeps a few tensors of a chunk's size."""


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


class _HeadColumns(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, entropy: bool) -> tuple[Tensor, Tensor]:
        logp = hidden.new_empty(len(targets))
        spread = hidden.new_empty(len(targets) if entropy else 0)
        normal = hidden.new_empty(len(targets))
        for part in _chunks(len(targets), len(weight)):
            logits = hidden[part] @ weight.T
            normal[part] = torch.logsumexp(logits, 1)
            logp[part] = logits.gather(1, targets[part].unsqueeze(1)).squeeze_(1).sub_(normal[part])
            if entropy:
                p = (logits - normal[part].unsqueeze(1)).exp_()
                spread[part] = normal[part] - p.mul_(logits).sum(1)
        ctx.save_for_backward(hidden, weight, targets, normal, spread)
        ctx.set_materialize_grads(False)
        return logp, spread

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, Tensor | None, None, None]:
        hidden, weight, targets, normal, spread = ctx.saved_tensors
        to_logp, to_entropy = grads[0], grads[1] if len(spread) else None
        if to_logp is None and to_entropy is None:
            return None, None, None, None
        to_hidden, to_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        for part in _chunks(len(targets), len(weight)):
            logs = torch.addmm(-normal[part].unsqueeze(1), hidden[part], weight.T)
            p = logs.exp()
            grad = torch.zeros_like(p) if to_logp is None else p * -to_logp[part].unsqueeze(1)
            if to_logp is not None:
                grad.scatter_add_(1, targets[part].unsqueeze(1), to_logp[part].unsqueeze(1))
            if to_entropy is not None:  # dH/dz = -p (log p + H)
                logs.add_(spread[part].unsqueeze(1)).mul_(p)
                grad.addcmul_(logs, to_entropy[part].unsqueeze(1), value=-1.0)
            torch.mm(grad, weight, out=to_hidden[part])
            to_weight.addmm_(grad.T, hidden[part])
        return to_hidden, to_weight, None, None


def _chunks(positions: int, vocabulary: int, share: int = 1) -> list[slice]:
    size = max(HEAD_ROWS, HEAD_ELEMENTS // vocabulary)
    size = max(1, size // share)
    return [slice(a, min(a + size, positions)) for a in range(0, positions, size)]


def head_columns(hidden: Tensor, weight: Tensor, targets: Tensor, entropy: bool = False) -> tuple[Tensor, Tensor]:
    """Log-probability of each target and, when asked, the entropy of its distribution, in nats.

    Logits exist for one chunk of positions at a time, in both passes; the backward pass computes them again.

    Args:
        hidden: ``[M, hidden]`` fp32, after the final norm.
        weight: ``[V, hidden]`` head.
        targets: ``[M]`` int64 ids.
        entropy: also compute entropies.

    Returns:
        ``[M]`` log-probabilities, and ``[M]`` entropies (``[0]`` when not asked).
    """
    return cast(Any, _HeadColumns).apply(hidden, weight, targets, entropy)


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """What statistics over the vocabulary read at ``M`` positions beside the policy's own distribution.

    Attributes:
        models: other models' hidden states ``[M, hidden]`` and head ``[V, hidden]``, by name; no gradient goes there.
        columns: token columns ``[M]`` by name.
    """

    models: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict[str, tuple[Tensor, Tensor]])
    columns: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])

    def at(self, part: slice) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Other models' log-probabilities ``[c, V]`` and the columns ``[c]`` of a chunk."""
        others = {name: _logp(hidden[part], weight) for name, (hidden, weight) in self.models.items()}
        return others, {name: column[part] for name, column in self.columns.items()}


class _HeadStatistics(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, stats: Sequence[VocabStat], beside: Beside
    ) -> tuple[Tensor, ...]:
        out = [hidden.new_empty(len(targets)) for _ in range(1 + len(stats))]
        for part in _stat_chunks(len(targets), len(weight), beside):
            logp, ids = _logp(hidden[part], weight), targets[part]
            others, columns = beside.at(part)
            out[0][part] = logp.gather(1, ids.unsqueeze(1)).squeeze_(1)
            for column, stat in zip(out[1:], stats, strict=True):
                column[part] = stat.of(logp, ids, others, columns)
        ctx.save_for_backward(hidden, weight, targets)
        ctx.stats, ctx.beside = stats, beside
        ctx.set_materialize_grads(False)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        hidden, weight, targets = ctx.saved_tensors
        if all(g is None for g in grads):
            return None, None, None, None, None
        to_hidden, to_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        for part in _stat_chunks(len(targets), len(weight), ctx.beside):
            logp = _logp(hidden[part], weight)
            slope = _slope(logp, targets[part], ctx.stats, ctx.beside.at(part), [None if g is None else g[part] for g in grads])
            total = slope.sum(1, keepdim=True)
            slope.addcmul_(logp.exp_(), total, value=-1.0)  # back through log-softmax
            torch.mm(slope, weight, out=to_hidden[part])
            to_weight.addmm_(slope.T, hidden[part])
        return to_hidden, to_weight, None, None, None


def _slope(
    logp: Tensor, ids: Tensor, stats: Sequence[VocabStat], beside: tuple[dict[str, Tensor], dict[str, Tensor]],
    grads: Sequence[Tensor | None],
) -> Tensor:  # fmt: skip
    """``[c, V]`` derivative by the log-probabilities of a chunk, one statistic's graph at a time."""
    slope = torch.zeros_like(logp)
    if grads[0] is not None:
        slope.scatter_(1, ids.unsqueeze(1), grads[0].unsqueeze(1))
    for stat, grad in zip(stats, grads[1:], strict=True):
        if grad is None:
            continue
        with torch.enable_grad():
            leaf = logp.detach().requires_grad_()
            value: Tensor = stat.of(leaf, ids, *beside)
        if value.requires_grad:
            slope += torch.autograd.grad(value, leaf, grad)[0]
    return slope


def _logp(hidden: Tensor, weight: Tensor) -> Tensor:
    """``[c, V]`` log-probabilities, in one buffer."""
    logits = hidden @ weight.T
    return logits.sub_(torch.logsumexp(logits, 1, keepdim=True))


def _stat_chunks(positions: int, vocabulary: int, beside: Beside) -> list[slice]:
    return _chunks(positions, vocabulary, STAT_SHARE + len(beside.models))


def head_statistics(
    hidden: Tensor, weight: Tensor, targets: Tensor, stats: Sequence[VocabStat], beside: Beside
) -> tuple[Tensor, ...]:
    """Log-probability of each target, and statistics of the distributions that the targets were drawn from.

    Distributions exist for one chunk of positions at a time, in both passes; the backward pass computes them again, and there one
    statistic's graph at a time.

    Args:
        hidden, weight, targets: as in `head_columns`.
        stats: what else to compute.
        beside: the models and columns that these read.

    Returns:
        ``[M]`` log-probabilities, then ``[M]`` for each of ``stats``.
    """
    return cast(Any, _HeadStatistics).apply(hidden, weight, targets, tuple(stats), beside)
