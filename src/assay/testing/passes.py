"""An optimiser batch through a compiled objective: on one process in micro-batches, or on several ranks in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.objective.program import Program
from assay.objective.reducers import F, Partials, Reducer
from assay.testing.contracts import require

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["RanksOutcome", "evaluate", "over_ranks"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RanksOutcome:
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
) -> RanksOutcome:
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
    return RanksOutcome(loss=loss, gradients=gradients, metrics=metrics)


class _Left(BaseException):
    """Ends a rank whose company has failed."""


@dataclass(frozen=True, slots=True)
class _Rank:
    """One rank in a thread of its own. It computes only while its caller waits: until its next reduction, or to its end."""

    told: SimpleQueue[Partials | None]
    says: SimpleQueue[tuple[str, Any]]

    def start(self, run: Callable[[int, Reducer], Any], rank: int) -> tuple[str, Any]:
        Thread(target=copy_context().run, args=(self._run, run, rank), daemon=True).start()
        return self._listen()

    def resume(self, merged: Partials) -> tuple[str, Any]:
        self.told.put(merged)
        return self._listen()

    def reduce(self, partials: Partials) -> Partials:
        self.says.put(("asks", partials))
        merged = self.told.get()
        if merged is None:
            raise _Left
        return merged

    def _run(self, run: Callable[[int, Reducer], Any], rank: int) -> None:
        try:
            self.says.put(("made", run(rank, self)))
        except BaseException as error:
            self.says.put(("failed", error))

    def _listen(self) -> tuple[str, Any]:
        what, value = self.says.get()
        if what == "failed":
            raise value
        return what, value


def over_ranks(run: Callable[[int, Reducer], T], ranks: int) -> list[T]:
    """Runs ``run(rank, reducer)`` for every rank in lockstep, without processes: each reduction is merged over all ranks.

    Raises:
        ContractError: the ranks ask for different reductions.
    """
    company = [_Rank(SimpleQueue(), SimpleQueue()) for _ in range(ranks)]
    try:
        said = [each.start(run, rank) for rank, each in enumerate(company)]
        while any(what == "asks" for what, _ in said):
            even = all(what == "asks" for what, _ in said)
            require(even, "reductions", "one rank ended while another still waits: every rank must reduce equally often")
            names = [sorted(asked) for _, asked in said]
            require(all(n == names[0] for n in names), "reductions", f"ranks reduce different names: {names}")
            merged: Partials = dict(said[0][1])
            for _, other in said[1:]:
                merged = {name: value.merge(other[name]) for name, value in merged.items()}
            said = [each.resume(merged) for each in company]
        return [value for _, value in said]
    finally:
        for each in company:
            each.told.put(None)
