"""An optimiser batch through a compiled objective: on one process in micro-batches, or on several ranks in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.objective.program import Program
from assay.objective.reduce import F, Partials, Reducer
from assay.testing.contracts import require

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Outcome", "evaluate", "over_ranks"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What one pass over an optimiser batch gave.

    Attributes:
        loss: the loss.
        gradients: live column to its gradient ``[N]``.
        metrics: metric sums.
    """

    loss: float
    gradients: Mapping[str, F]
    metrics: Mapping[str, float]


def evaluate(
    program: Program, batch: Batch, live: Mapping[str, F], parts: Sequence[Sequence[int]] | None = None, whole: bool = True
) -> Outcome:
    """Loss, gradients and metrics of an optimiser batch, in float64, as a learner would compute them.

    Args:
        program: the compiled objective.
        batch: with the columns that its plan names.
        live: ``[N]`` values of the live columns; ``logp_now`` is set to ``logp_new``.
        parts: rows of each micro-batch; one for all rows when None.
        whole: False leaves inactive rows out.
    """
    import torch

    batch = batch.with_tokens(TokenColumn("logp_now", np.asarray(live["logp_new"]), "testing"))
    ready = program.prepare(batch)
    active = np.ones(len(ready), np.bool_) if whole else program.active(ready)
    ready = ready.with_tokens(TokenColumn("position", np.arange(int(ready.offsets[-1]))))
    gradients = {name: np.zeros(values.shape) for name, values in live.items()}
    loss, metrics = 0.0, dict[str, float]()
    for rows in parts or [range(len(ready))]:
        part = ready.micro([r for r in rows if active[r]])
        here = part.token("position")
        tensors: dict[str, Tensor] = {k: torch.tensor(v[here], dtype=torch.float64, requires_grad=True) for k, v in live.items()}
        share, numbers = program.micro(part, tensors)
        slopes = torch.autograd.grad(share, list(tensors.values()), materialize_grads=True)
        loss += float(share.detach())
        for name, slope in zip(tensors, slopes, strict=True):
            gradients[name][here] += slope.numpy()
        for name, value in numbers.items():
            metrics[name] = metrics.get(name, 0.0) + value
    return Outcome(loss=loss, gradients=gradients, metrics=metrics)


class _Pause(Exception):
    """A rank waits for the others."""


@dataclass(frozen=True, slots=True)
class _Replay:
    """Answers the reductions that are known, notes the next one, and pauses."""

    known: Sequence[Partials]
    waiting: list[Partials]
    seen: list[int]

    def reduce(self, partials: Partials) -> Partials:
        self.seen.append(0)
        if len(self.seen) <= len(self.known):
            return self.known[len(self.seen) - 1]
        self.waiting.append(partials)
        raise _Pause


def over_ranks(run: Callable[[int, Reducer], T], ranks: int) -> list[T]:
    """Runs a pure ``run(rank, reducer)`` for every rank in lockstep, without processes: each reduction is merged over all ranks.

    Raises:
        ContractError: the ranks ask for different reductions.
    """
    known: list[Partials] = []
    while True:
        waiting: list[Partials] = []
        done: list[T] = []
        for rank in range(ranks):
            try:
                done.append(run(rank, _Replay(known, waiting, [])))
            except _Pause:
                continue
        if len(done) == ranks:
            return done
        require(not done, "reductions", "one rank ended while another still waits: every rank must reduce equally often")
        names = [sorted(w) for w in waiting]
        require(all(n == names[0] for n in names), "reductions", f"ranks reduce different names: {names}")
        merged = dict(waiting[0])
        for other in waiting[1:]:
            merged = {name: value.merge(other[name]) for name, value in merged.items()}
        known.append(merged)
