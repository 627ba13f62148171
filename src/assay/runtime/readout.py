"""What is read from a large head, with hand-written backward passes: the logits of a whole batch never exist at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor

from assay.core.vocab import VocabStat
from assay.runtime.settings import HEAD_ELEMENTS, HEAD_ROWS

__all__ = ["Beside", "Head", "head_columns", "head_statistics"]

STAT_SHARE = 2
"""Chunks for statistics hold so many times fewer positions: autograd keeps a few tensors of a chunk's size."""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """What makes logits of hidden states: ``cap * tanh(z / cap)`` of ``z = scale * (hidden @ weight.T + bias)``, ``z`` itself
    without a cap.

    Attributes:
        weight: ``[V, hidden]``.
        bias: ``[V]``, or None.
        scale: on all logits (Cohere's, Granite's).
        cap: soft bound of their size (Gemma 2's); 0 for none.
    """

    weight: Tensor
    bias: Tensor | None = None
    scale: float = 1.0
    cap: float = 0.0

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def plain(self) -> bool:
        """Whether logits are a product of matrices and nothing besides."""
        return self.bias is None and self.scale == 1.0 and not self.cap

    def logits(self, hidden: Tensor) -> Tensor:
        """``[c, V]`` of ``[c, hidden]``."""
        w = self.weight
        z = hidden @ w.T if w.dtype == hidden.dtype else (hidden.to(w.dtype) @ w.T).to(hidden.dtype)
        if self.bias is not None:
            z += self.bias
        if self.scale != 1.0:
            z *= self.scale
        return z.div_(self.cap).tanh_().mul_(self.cap) if self.cap else z

    def back(self, grad: Tensor, logits: Tensor) -> Tensor:
        """The gradient by ``hidden @ weight.T`` of that by the logits, in its place."""
        if self.cap:
            grad *= 1.0 - (logits / self.cap).square_()
        return grad.mul_(self.scale) if self.scale != 1.0 else grad


class _HeadColumns(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, head: Head, targets: Tensor, entropy: bool
    ) -> tuple[Tensor, Tensor]:
        logp = hidden.new_empty(len(targets))
        spread = hidden.new_empty(len(targets) if entropy else 0)
        normal = hidden.new_empty(len(targets))
        for part in _chunks(len(targets), len(head)):
            logits = head.logits(hidden[part])
            normal[part] = torch.logsumexp(logits, 1)
            logp[part] = logits.gather(1, targets[part].unsqueeze(1)).squeeze_(1).sub_(normal[part])
            if entropy:
                p = (logits - normal[part].unsqueeze(1)).exp_()
                spread[part] = normal[part] - p.mul_(logits).sum(1)
        ctx.save_for_backward(hidden, weight, bias, targets, normal, spread)
        ctx.head = head
        ctx.set_materialize_grads(False)
        return logp, spread

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, normal, spread = ctx.saved_tensors
        head: Head = replace(ctx.head, weight=weight, bias=bias)
        to_logp, to_entropy = grads[0], grads[1] if len(spread) else None
        if to_logp is None and to_entropy is None:
            return (None,) * 6
        sums = _Sums(hidden, head, ctx.needs_input_grad)
        for part in _chunks(len(targets), len(head)):
            if head.plain and weight.dtype == hidden.dtype:
                logits, logs = None, torch.addmm(-normal[part].unsqueeze(1), hidden[part], weight.T)
            else:
                logits = head.logits(hidden[part])
                logs = logits - normal[part].unsqueeze(1)
            p = logs.exp()
            grad = torch.zeros_like(p) if to_logp is None else p * -to_logp[part].unsqueeze(1)
            if to_logp is not None:
                grad.scatter_add_(1, targets[part].unsqueeze(1), to_logp[part].unsqueeze(1))
            if to_entropy is not None:  # dH/dz = -p (log p + H)
                logs.add_(spread[part].unsqueeze(1)).mul_(p)
                grad.addcmul_(logs, to_entropy[part].unsqueeze(1), value=-1.0)
            sums.add(part, grad, logits)
        return sums.hidden, sums.weight, sums.bias, None, None, None


class _Sums:
    """Gradients of a head's inputs, added up chunk by chunk; what nobody learns costs nothing."""

    def __init__(self, states: Tensor, head: Head, needed: Sequence[bool]) -> None:
        self._states, self._head = states, head
        self.hidden = torch.empty_like(states)
        self.weight = torch.zeros_like(head.weight) if needed[1] else None
        self.bias = torch.zeros_like(head.bias) if head.bias is not None and needed[2] else None

    def add(self, part: slice, grad: Tensor, logits: Tensor | None) -> None:
        """Of a chunk: the gradient by its logits."""
        if logits is not None:
            grad = self._head.back(grad, logits)
        w = self._head.weight
        if w.dtype == grad.dtype:
            torch.mm(grad, w, out=self.hidden[part])
        else:
            self.hidden[part] = grad.to(w.dtype) @ w
        if self.weight is not None:
            self.weight.addmm_(grad.T, self._states[part])
        if self.bias is not None:
            self.bias.add_(grad.sum(0))


def _chunks(positions: int, vocabulary: int, share: int = 1) -> list[slice]:
    size = max(HEAD_ROWS, HEAD_ELEMENTS // vocabulary)
    size = max(1, size // share)
    return [slice(a, min(a + size, positions)) for a in range(0, positions, size)]


def head_columns(hidden: Tensor, head: Head, targets: Tensor, entropy: bool = False) -> tuple[Tensor, Tensor]:
    """Log-probability of each target and, when asked, the entropy of its distribution, in nats.

    Logits exist for one chunk of positions at a time, in both passes; the backward pass computes them again.

    Args:
        hidden: ``[M, hidden]`` fp32, after the final norm.
        head: makes logits.
        targets: ``[M]`` int64 ids.
        entropy: also compute entropies.

    Returns:
        ``[M]`` log-probabilities, and ``[M]`` entropies (``[0]`` when not asked).
    """
    return cast(Any, _HeadColumns).apply(hidden, head.weight, head.bias, head, targets, entropy)


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """What statistics over the vocabulary read at ``M`` positions beside the policy's own distribution.

    Attributes:
        models: other models' hidden states ``[M, hidden]`` and heads, by name; no gradient goes there.
        columns: token columns ``[M]`` by name.
    """

    models: Mapping[str, tuple[Tensor, Head]] = field(default_factory=dict[str, tuple[Tensor, Head]])
    columns: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])

    def at(self, part: slice) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Other models' log-probabilities ``[c, V]`` and the columns ``[c]`` of a chunk."""
        others = {name: _logp(head.logits(hidden[part])) for name, (hidden, head) in self.models.items()}
        return others, {name: column[part] for name, column in self.columns.items()}


class _HeadStatistics(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, head: Head, targets: Tensor, stats: Sequence[VocabStat],
        beside: Beside,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        out = [hidden.new_empty(len(targets)) for _ in range(1 + len(stats))]
        for part in _stat_chunks(len(targets), len(head), beside):
            logp, ids = _logp(head.logits(hidden[part])), targets[part]
            others, columns = beside.at(part)
            out[0][part] = logp.gather(1, ids.unsqueeze(1)).squeeze_(1)
            for column, stat in zip(out[1:], stats, strict=True):
                column[part] = stat.of(logp, ids, others, columns)
        ctx.save_for_backward(hidden, weight, bias, targets)
        ctx.head, ctx.stats, ctx.beside = head, stats, beside
        ctx.set_materialize_grads(False)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets = ctx.saved_tensors
        head: Head = replace(ctx.head, weight=weight, bias=bias)
        if all(g is None for g in grads):
            return (None,) * 7
        sums = _Sums(hidden, head, ctx.needs_input_grad)
        for part in _stat_chunks(len(targets), len(head), ctx.beside):
            logits = head.logits(hidden[part])
            capped = logits.clone() if head.cap else logits
            logp = _logp(logits)
            slope = _slope(logp, targets[part], ctx.stats, ctx.beside.at(part), [None if g is None else g[part] for g in grads])
            total = slope.sum(1, keepdim=True)
            slope.addcmul_(logp.exp_(), total, value=-1.0)  # back through log-softmax
            sums.add(part, slope, capped)
        return sums.hidden, sums.weight, sums.bias, None, None, None, None


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


def _logp(logits: Tensor) -> Tensor:
    """``[c, V]`` log-probabilities, in the logits' place."""
    return logits.sub_(torch.logsumexp(logits, 1, keepdim=True))


def _stat_chunks(positions: int, vocabulary: int, beside: Beside) -> list[slice]:
    return _chunks(positions, vocabulary, STAT_SHARE + len(beside.models))


def head_statistics(
    hidden: Tensor, head: Head, targets: Tensor, stats: Sequence[VocabStat], beside: Beside
) -> tuple[Tensor, ...]:
    """Log-probability of each target, and statistics of the distributions that the targets were drawn from.

    Distributions exist for one chunk of positions at a time, in both passes; the backward pass computes them again, and there one
    statistic's graph at a time.

    Args:
        hidden, head, targets: as in `head_columns`.
        stats: what else to compute.
        beside: the models and columns that these read.

    Returns:
        ``[M]`` log-probabilities, then ``[M]`` for each of ``stats``.
    """
    return cast(Any, _HeadStatistics).apply(hidden, head.weight, head.bias, head, targets, tuple(stats), beside)
