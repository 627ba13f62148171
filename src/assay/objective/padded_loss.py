"""A method as a callable on padded torch tensors, for people who keep their own trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch, Counts
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import State
from assay.objective.evaluation import resolve_method
from assay.objective.loss.aggregate import Prompt
from assay.objective.objective import Objective
from assay.objective.padded_batch import Inputs, PaddedInputs, required_inputs
from assay.objective.program import Program
from assay.objective.reducers import Partials, Sum

if TYPE_CHECKING:
    from assay.objective.loss.tensors import Tensor

__all__ = ["Prepared", "TorchLoss", "torch_loss"]


def torch_loss(method: str | Objective, **settings: Any) -> TorchLoss:
    """A method's loss as a callable on padded tensors: what `evaluate` computes, attached to the caller's graph.

    Args:
        method: a name that `methods` lists, or a composition.
        settings: of the named method's constructor.

    Raises:
        UnknownNameError: no such method or setting.
        PlanError: the composition cannot be right.

    >>> import torch
    >>> from assay.objective import torch_loss
    >>> logp = torch.full((4, 2), -1.0, requires_grad=True)
    >>> loss_of = torch_loss("rloo")
    >>> loss, metrics = loss_of({"mask": logp < 0, "logp_new": logp, "rewards": [1, 0, 0, 0], "group_id": [7] * 4})
    >>> loss.backward()
    >>> logp.grad[:2, 0].tolist()
    [-0.25, 0.0833333358168602]
    """
    return TorchLoss(resolve_method(method, settings))


class TorchLoss:
    """A method's loss on padded tensors, any dtype, any device.

    A call takes an optimiser batch as `evaluate` does and returns the loss, a scalar on the graph of the live inputs
    (``logp_new``, ...), with the method's metrics. No other input may require a gradient: detach it. Half precision is computed
    in float32. Everything that needs no gradient is computed in float64 on the CPU.

    In parts, two ways give the same gradient as the whole batch at once:

    - `prepare` the whole optimiser batch without its live inputs, then call what it returns for some rows at a time;
    - call with ``advantages`` and with the ``counts`` of the whole optimiser batch, where a trainer shows one part at a time. The
      parts' losses add up; a trainer that averages gradients over ranks or micro-batches must be given their sum times their
      number.

    A method with a running statistic (``state_dict`` is not empty) moves it at each call that computes credit.

    Attributes:
        objective: the composition.
        reads: names of the token columns that a call must be given, the live ones first.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self._program = objective.compile()
        want = required_inputs(objective, self._program.plan)
        self.reads = (*want.live, *want.columns)

    def __call__(self, inputs: Inputs, counts: Counts | None = None) -> tuple[Tensor, Mapping[str, float]]:
        """Loss and metrics of an optimiser batch, or of a part of one.

        Args:
            inputs: tensors or arrays by name, as `evaluate` names them; the live ones are tensors.
            counts: of the whole optimiser batch, when this is a part of it: loss tokens, rows, rollouts, prompts.

        Raises:
            DataError: as `evaluate`.
            ConfigError: ``counts`` with a method that must see the whole batch at once.
        """
        live, derived = self._program.plan.live, required_inputs(self.objective, self._program.plan).derived
        table = PaddedInputs.of(inputs, self.objective, self._program.plan, attached=(*live, *derived))
        step = self._step(table, counts)
        return step({name: inputs[name] for name in live})

    def prepare(self, inputs: Inputs) -> Prepared:
        """All that needs no gradient, for a whole optimiser batch: the loss then comes in parts.

        Args:
            inputs: as in a call, without the live ones; a method on scores also needs ``logp_now``, the present
                log-probabilities without gradient.

        Raises:
            DataError: as `evaluate`.
        """
        plan = self._program.plan
        derived = required_inputs(self.objective, plan).derived  # what equals a live input has its gradient there
        return self._step(PaddedInputs.of(inputs, self.objective, plan, later=plan.live, attached=derived))

    def state_dict(self) -> State:
        """JSON-able running statistics; empty for most methods."""
        return {name: part for name, part in self._program.state_dict().items() if part}

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`.

        Raises:
            CheckpointError: the state belongs to another method.
        """
        names = self.objective.compile().state_dict()
        self._program.load_state_dict({name: dict[str, Any]() for name in names} | state)

    def _step(self, table: PaddedInputs, counts: Counts | None = None) -> Prepared:
        moving = [name for name in self.state_dict() if not name.startswith("credit/")]
        if table.credited and moving:
            raise ConfigError(f"advantages: {moving[0]} measures each batch with its rewards; give 'rewards' instead")
        program, batch = self._program, table.batch(self.objective)
        if counts is not None:
            program, batch = self._partial(table, counts), replace(batch, counts=counts, drawn=counts)
        if len(table.present):
            batch = program.prepare(batch if table.credited else program.credit(batch))
        return Prepared(program=program, batch=batch, table=table, metrics=program.metrics())

    def _partial(self, table: PaddedInputs, counts: Counts) -> Program:
        """A program whose denominators are those of the whole batch."""
        objective = self.objective
        if objective.uses_reward and not table.credited:
            raise ConfigError("counts: a part of a batch cannot know the others' rewards; give 'advantages', or use prepare()")
        ways = [t.aggregate or objective.aggregate for t in objective.losses if t.averages]
        whole = [type(w).__name__ for w in ways if isinstance(w, Prompt)]
        whole += [n for n in self._program.plan.reductions if not n.startswith(("aggregate/", "credit/")) and n != "report"]
        if whole:
            raise ConfigError(f"counts: {', '.join(whole)} must see the whole optimiser batch; use prepare()")
        return objective.compile(reducer=_Given(counts))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """An optimiser batch of which all but the gradient is known.

    Attributes:
        metrics: what the credit chain saw.
    """

    program: Program
    batch: Batch
    table: PaddedInputs
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])

    def __call__(
        self, live: Mapping[str, Tensor], rows: Sequence[int] | NDArray[np.int64] | None = None
    ) -> tuple[Tensor, Mapping[str, float]]:
        """The share of some rows in the loss and the metrics; the shares of all rows add up to the whole.

        Args:
            live: the live inputs, ``[len(rows), T, ...]``.
            rows: which rollouts, by their place in the batch; all when None.

        Raises:
            DataError: a live input is missing, has the wrong shape, or is not finite inside the mask.
        """
        from assay.objective.loss.tensors import flat

        index = np.arange(len(self.table.mask)) if rows is None else np.asarray(rows, np.int64)
        mine = np.isin(index, self.table.present)
        missing = [name for name in self.program.plan.live if name not in live]
        if missing:
            raise DataError(f"the live input {missing[0]!r} is missing; given are {', '.join(sorted(live))}")
        mask = self.table.mask[index] & mine[:, None]
        inner = {term: form[1] for loss in self.program.objective.losses for term, form in loss.heads.items()}
        axes = {name: (inner[name],) if inner.get(name, 1) > 1 else () for name in self.program.plan.live}
        tensors = {name: flat(name, live[name], mask, np.flatnonzero(mine), behind) for name, behind in axes.items()}
        if not mine.any():
            return tensors["logp_new"].sum(), {}
        loss, metrics = self.program.micro(self.batch.micro(np.searchsorted(self.table.present, index[mine])), tensors)
        return loss, {**self.metrics, **metrics} if rows is None else metrics


@dataclass(frozen=True, slots=True)
class _Given:
    """A reducer that knows the counts of the whole batch."""

    counts: Counts

    def reduce(self, partials: Partials) -> Partials:
        known = {
            "counts": Sum(np.array([self.counts.tokens, self.counts.rollouts], np.float64)),
            "prompts": Sum(np.ones(self.counts.prompts)),
        }
        parts = {name: name.split("/") for name in partials}
        return {n: known.get(p[-1], partials[n]) if p[0] == "aggregate" else partials[n] for n, p in parts.items()}
