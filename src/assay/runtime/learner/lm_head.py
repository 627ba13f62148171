"""What is read from a large head, with hand-written backward passes: the logits of a whole batch never exist at once."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor

from assay.core.vocab import VocabStat
from assay.runtime.compiled.head import LARGEST, compiled_columns
from assay.runtime.learner.packing import Packing
from assay.runtime.learner.support import Support
from assay.runtime.settings import head_rows

__all__ = ["LmHead", "StatisticInputs", "add_product", "head_columns", "head_statistics", "product"]

HALVES = (torch.bfloat16, torch.float16)
STAT_SHARE = 2
"""Chunks for statistics hold so many times fewer positions: autograd keeps a few tensors of a chunk's size."""


@dataclass(frozen=True, slots=True, eq=False)
class LmHead:
    """What makes logits of hidden states: ``cap * tanh(z / cap)`` of ``z = scale * (hidden @ weight.T + bias)``, ``z`` itself
    without a cap; where a temperature is given, divided by that; where supports are given, without the ids outside of them.

    Attributes:
        weight: ``[V, hidden]``.
        bias: ``[V]``, or None.
        scale: on all logits (Cohere's, Granite's).
        cap: soft bound of their size (Gemma 2's); 0 for none.
        half: whether products take their operands rounded to bfloat16: logits, and what the gradients of states and weight are
            made of. Sums, logits, softmax and gradients stay float32. None: on CUDA under bfloat16 autocast.
        library: the compiled one, which gives log-probabilities and entropies where it can: of a plain head in float32 on a CPU,
            over a small vocabulary.
        temperature: ``[M]`` of the positions that are read, more than 0; None for 1.
        support: the ids that the tokens at the ``M`` positions were drawn from; None for all.
    """

    weight: Tensor
    bias: Tensor | None = None
    scale: float = 1.0
    cap: float = 0.0
    half: bool | None = None
    library: ctypes.CDLL | None = None
    temperature: Tensor | None = None
    support: Support | None = None

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def plain(self) -> bool:
        """Whether logits are a product of matrices and nothing besides."""
        changed = self.cap or self.temperature is not None or self.support is not None
        return self.bias is None and self.scale == 1.0 and not changed

    def at_temperature(self, temperature: Tensor | None) -> LmHead:
        """The same, for positions that are read at these temperatures."""
        return self if temperature is None else replace(self, temperature=temperature)

    def scored_at(self, packing: Packing, where: Tensor) -> LmHead:
        """The same, for tokens that are read at the temperatures and within the supports that they were drawn at."""
        support = packing.support_at(where)
        head = self.at_temperature(packing.temperature_at(where))
        return head if support is None else replace(head, support=support)

    def fold_temperature(self, hidden: Tensor) -> tuple[Tensor, LmHead]:
        """States and a head with the same logits: without bias and cap states take the division, so that any head can."""
        if self.temperature is None or self.bias is not None or self.cap:
            return hidden, self
        return hidden / self.temperature.unsqueeze(1), replace(self, temperature=None)

    def settle_precision(self) -> LmHead:
        """The same, with ``half`` as the present autocast has it where that is None."""
        return self if self.half is not None else replace(self, half=_halved(self.weight.device))

    def operands(self, hidden: Tensor) -> tuple[Tensor, LmHead]:
        """States, and a head, of the type in which they are multiplied."""
        kind = torch.bfloat16 if self.half else self.weight.dtype
        return hidden.to(kind), replace(self, weight=self.weight.to(kind))

    def logits(self, hidden: Tensor, part: slice = slice(None)) -> Tensor:
        """``[c, V]`` of the states ``[c, hidden]`` at the positions ``part``, in float32 where that or the weight has 16 bits."""
        states, head = self.operands(hidden)
        z = product(states, head.weight.T)
        if self.bias is not None:
            z += self.bias
        if self.scale != 1.0:
            z *= self.scale
        if self.cap:
            z = z.div_(self.cap).tanh_().mul_(self.cap)
        z = z if self.temperature is None else z.div_(self.temperature[part].unsqueeze(1))
        return z if self.support is None else self.support.mask(z, part)

    def back(self, grad: Tensor, logits: Tensor | None, part: slice = slice(None)) -> Tensor:
        """The gradient by ``hidden @ weight.T`` of that by the logits, in its place; these matter where there is a cap."""
        warmth = None if self.temperature is None else self.temperature[part].unsqueeze(1)
        if warmth is not None:
            grad /= warmth
        if self.cap and logits is not None:
            inner = logits / self.cap if warmth is None else logits * warmth / self.cap
            if self.support is not None:
                inner.clamp_(-1.0, 1.0)  # outside of a support the square is not finite, and the gradient 0
            grad *= 1.0 - inner.square_()
        return grad.mul_(self.scale) if self.scale != 1.0 else grad


def _halved(device: torch.device) -> bool:
    if device.type != "cuda" or not torch.is_autocast_enabled("cuda"):
        return False
    return cast(Any, torch).get_autocast_dtype("cuda") == torch.bfloat16


def _summed_wide(device: torch.device) -> bool:
    """Whether products of 16-bit operands are there in float32, as tensor cores sum them up."""
    return device.type == "cuda"


def product(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """``[n, k] @ [k, m]``; of operands in 16 bits as float32: on CUDA never rounded, elsewhere rounded to 16 bits first."""
    if a.dtype not in HALVES:
        return torch.mm(a, b) if out is None else torch.mm(a, b, out=out)
    if _summed_wide(a.device):
        return cast(Any, torch).mm(a, b, out_dtype=torch.float32, **({} if out is None else {"out": out}))
    found = (a @ b).float()
    return found if out is None else out.copy_(found)


def add_product(into: Tensor, a: Tensor, b: Tensor) -> None:
    """Adds ``[n, k] @ [k, m]`` to a float32 (or wider) ``[n, m]``; operands as in `product`."""
    if a.dtype not in HALVES:
        into.addmm_(a, b)
    elif _summed_wide(a.device):
        cast(Any, torch).addmm(into, a, b, out_dtype=torch.float32, out=into)
    else:
        into.add_(a @ b)


class _HeadColumns(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, head: LmHead, targets: Tensor, entropy: bool
    ) -> tuple[Tensor, Tensor]:
        logp = hidden.new_empty(len(targets))
        spread = hidden.new_empty(len(targets) if entropy else 0)
        normal = hidden.new_empty(len(targets))
        states, ready = head.operands(hidden)
        for part in _chunks(len(targets), len(head), hidden.device.type):
            logits = ready.logits(states[part], part)
            normal[part] = torch.logsumexp(logits, 1)
            logp[part] = logits.gather(1, targets[part].unsqueeze(1)).squeeze_(1).sub_(normal[part])
            if entropy:
                p = (logits - normal[part].unsqueeze(1)).exp_()
                spread[part] = normal[part] - p.mul_(logits).sum(1)
        ctx.save_for_backward(states, weight, bias, targets, normal, spread)
        ctx.head = head
        ctx.set_materialize_grads(False)
        return logp, spread

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        states, weight, bias, targets, normal, spread = ctx.saved_tensors
        head: LmHead = replace(ctx.head, weight=weight, bias=bias)
        to_logp, to_entropy = grads[0], grads[1] if len(spread) else None
        if to_logp is None and to_entropy is None:
            return (None,) * 6
        sums = _Sums(states, head, ctx.needs_input_grad)
        for part in _chunks(len(targets), len(head), states.device.type):
            lift = normal[part].unsqueeze(1)
            logits: Tensor | None = None
            if head.plain and states.dtype not in HALVES:
                logs = torch.addmm(-lift, states[part], weight.T)
            else:
                logits = sums.ready.logits(states[part], part)
                logs = logits - lift if head.cap else logits.sub_(lift)
            p = logs.exp_() if to_entropy is None else logs.exp()
            if to_logp is None:
                grad = torch.zeros_like(p)
            else:
                factor = -to_logp[part].unsqueeze(1)
                grad = p.mul_(factor) if to_entropy is None else p * factor
                grad.scatter_add_(1, targets[part].unsqueeze(1), to_logp[part].unsqueeze(1))
            if to_entropy is not None:  # dH/dz = -p (log p + H)
                logs.add_(spread[part].unsqueeze(1)).mul_(p)
                grad.addcmul_(logs, to_entropy[part].unsqueeze(1), value=-1.0)
            sums.add(part, grad, logits)
        return sums.hidden, sums.weight, sums.bias, None, None, None


class _Sums:
    """Gradients of a head's inputs, added up chunk by chunk; what nobody learns costs nothing.

    Args:
        states: as multiplied (`LmHead.operands`).
        head: with the weight that learns.
        needed: which inputs of the pass need a gradient: states, weight, bias.

    Attributes:
        ready: the head as multiplied.
    """

    def __init__(self, states: Tensor, head: LmHead, needed: Sequence[bool]) -> None:
        self._states, self.ready = head.operands(states)
        self.hidden = torch.empty_like(states, dtype=torch.float32 if states.dtype in HALVES else None)
        self.weight = torch.zeros_like(head.weight) if needed[1] else None
        self.bias = torch.zeros_like(head.bias) if head.bias is not None and needed[2] else None

    def add(self, part: slice, grad: Tensor, logits: Tensor | None) -> None:
        """Of a chunk: the gradient by its logits."""
        grad = self.ready.back(grad, logits, part)
        w = self.ready.weight
        small = grad.to(w.dtype)
        product(small, w, out=self.hidden[part])
        if self.weight is not None:
            add_product(self.weight, small.T, self._states[part])
        if self.bias is not None:
            self.bias.add_(grad.sum(0))


def _chunks(positions: int, vocabulary: int, device: str, share: int = 1) -> list[slice]:
    """Of nearly equal size on CUDA, where a short last one would cost almost a whole one."""
    size = max(1, head_rows(vocabulary, device) // share)
    if device == "cuda" and positions > size:
        size = -(-positions // -(-positions // size))
    return [slice(a, min(a + size, positions)) for a in range(0, positions, size)]


def head_columns(hidden: Tensor, head: LmHead, targets: Tensor, entropy: bool = False) -> tuple[Tensor, Tensor]:
    """Log-probability of each target and, when asked, the entropy of its distribution, in nats; no autocast reaches in here but
    by `LmHead.half`.

    Logits exist for one chunk of positions at a time, in both passes; the backward pass computes them again.

    Args:
        hidden: ``[M, hidden]`` fp32, after the final norm.
        head: makes logits.
        targets: ``[M]`` int64 ids.
        entropy: also compute entropies.

    Returns:
        ``[M]`` log-probabilities, and ``[M]`` entropies (``[0]`` when not asked).
    """
    hidden, head = head.settle_precision().fold_temperature(hidden)
    if head.library is not None and _compiled(hidden, head):
        return compiled_columns(head.library, hidden, head.weight, targets, entropy)
    with torch.autocast(hidden.device.type, enabled=False):
        return cast(Any, _HeadColumns).apply(hidden, head.weight, head.bias, head, targets, entropy)


def _compiled(hidden: Tensor, head: LmHead) -> bool:
    plain = head.plain and not head.half and len(head) <= LARGEST
    return plain and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in (hidden, head.weight))


@dataclass(frozen=True, slots=True, eq=False)
class StatisticInputs:
    """What statistics over the vocabulary read at ``M`` positions beside the policy's own distribution.

    Attributes:
        models: other models' hidden states ``[M, hidden]`` and heads, by name; no gradient goes there.
        columns: token columns ``[M]`` by name.
    """

    models: Mapping[str, tuple[Tensor, LmHead]] = field(default_factory=dict[str, tuple[Tensor, LmHead]])
    columns: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])

    def ready(self) -> StatisticInputs:
        """The same, with states and heads as they are multiplied."""
        return replace(self, models={name: head.operands(hidden) for name, (hidden, head) in self.models.items()})

    def at(self, part: slice) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Other models' log-probabilities ``[c, V]`` and the columns ``[c]`` of a chunk."""
        others = {name: _logp(head.logits(hidden[part], part)) for name, (hidden, head) in self.models.items()}
        return others, {name: column[part] for name, column in self.columns.items()}


class _HeadStatistics(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        head: LmHead,
        targets: Tensor,
        stats: Sequence[VocabStat],
        beside: StatisticInputs,
    ) -> tuple[Tensor, ...]:
        out = [hidden.new_empty(len(targets)) for _ in range(1 + len(stats))]
        states, ready = head.operands(hidden)
        others_ready = beside.ready()
        for part in _stat_chunks(states, head, beside):
            logp, ids = _logp(ready.logits(states[part], part)), targets[part]
            others, columns = others_ready.at(part)
            out[0][part] = logp.gather(1, ids.unsqueeze(1)).squeeze_(1)
            for column, stat in zip(out[1:], stats, strict=True):
                column[part] = stat.of(logp, ids, others, columns)
        ctx.save_for_backward(states, weight, bias, targets)
        ctx.head, ctx.stats, ctx.beside = head, stats, beside
        ctx.set_materialize_grads(False)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        states, weight, bias, targets = ctx.saved_tensors
        head: LmHead = replace(ctx.head, weight=weight, bias=bias)
        if all(g is None for g in grads):
            return (None,) * 7
        sums, beside = _Sums(states, head, ctx.needs_input_grad), ctx.beside.ready()
        for part in _stat_chunks(states, head, beside):
            logits = sums.ready.logits(states[part], part)
            capped = logits.clone() if head.cap else None
            logp = _logp(logits)
            slope = _slope(logp, targets[part], ctx.stats, beside.at(part), [None if g is None else g[part] for g in grads])
            total = slope.sum(1, keepdim=True)
            slope.addcmul_(logp.exp_(), total, value=-1.0)  # back through log-softmax
            sums.add(part, slope, capped)
        return sums.hidden, sums.weight, sums.bias, None, None, None, None


def _slope(
    logp: Tensor,
    ids: Tensor,
    stats: Sequence[VocabStat],
    beside: tuple[dict[str, Tensor], dict[str, Tensor]],
    grads: Sequence[Tensor | None],
) -> Tensor:
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


def _stat_chunks(states: Tensor, head: LmHead, beside: StatisticInputs) -> list[slice]:
    return _chunks(len(states), len(head), states.device.type, STAT_SHARE + len(beside.models))


def head_statistics(
    hidden: Tensor, head: LmHead, targets: Tensor, stats: Sequence[VocabStat], beside: StatisticInputs
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
    hidden, head = head.settle_precision().fold_temperature(hidden)
    beside = replace(
        beside,
        models={name: other.settle_precision().fold_temperature(states) for name, (states, other) in beside.models.items()},
    )
    with torch.autocast(hidden.device.type, enabled=False):
        return cast(Any, _HeadStatistics).apply(hidden, head.weight, head.bias, head, targets, tuple(stats), beside)
