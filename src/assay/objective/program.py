"""A compiled objective at work: credit once per rollout batch, weights once per optimiser step, losses once per micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import CheckpointError
from assay.core.plan import Plan, Scope
from assay.core.protocols import State
from assay.objective.loss.aggregate import Selection, select
from assay.objective.loss.base import LossTerm, View
from assay.objective.objective import Objective
from assay.objective.reduce import F, Local, Reducer

__all__ = ["Program"]


class Program:
    """Implements `assay.core.protocols.LossProgram`.

    Attributes:
        objective, plan: what was compiled.

    The state (running baselines, adaptive coefficients) moves in `credit` only, and is saved with the weights.
    """

    def __init__(self, objective: Objective, plan: Plan, *, fresh: bool = False, reducer: Reducer | None = None) -> None:
        self.objective, self.plan = objective, plan
        self._fresh, self._reducer = fresh, reducer or Local()
        self._parts = {f"credit/{i}": t for i, t in enumerate(objective.credit)} | {t.name: t for t in objective.losses}
        self._state: dict[str, State] = {name: part.init() for name, part in self._parts.items()}
        self._metrics: dict[str, float] = {}

    # ---- once per rollout batch

    def credit(self, batch: Batch) -> Batch:
        """Rewards to advantages, and one move of every state.

        Returns:
            The batch with rollout columns ``reward``, ``advantage`` and ``keep`` and the token column ``advantage``; unchanged
            columns
            when no term reads rewards.

        Raises:
            DataError: reward components are missing.
        """
        self._metrics = {}
        if self.objective.pays:
            batch = self._advantages(batch)
        for term in self.objective.losses:
            stats = self._reducer.reduce(term.local(batch))
            self._state[term.name] = term.advance(self._state[term.name], stats)
            if term.init():
                self._metrics[f"coef/{term.name}"] = term.factor(self._state[term.name])
        return batch

    def _advantages(self, batch: Batch) -> Batch:
        record = self.objective.scalarise.start(batch)
        for i, term in enumerate(self.objective.credit):
            stats, name = self._reducer.reduce(term.local(record)), f"credit/{i}"
            record = term.apply(record, stats, self._state[name])
            self._state[name] = term.advance(self._state[name], stats)
        self._metrics.update(record.metrics)
        made = batch.with_rollouts(reward=record.reward, advantage=record.advantage, keep=record.keep)
        return made.with_tokens(TokenColumn("advantage", record.per_token(), "credit"))

    def metrics(self) -> Mapping[str, float]:
        """Numbers of the last `credit`: lone and dropped groups, coefficients in force."""
        return dict(self._metrics)

    # ---- once per optimiser step

    def prepare(self, batch: Batch) -> Batch:
        """Adds each term's token columns (``NAME/weight`` and its own); runs `credit` first where it has not been run.

        Raises:
            DataError: a needed column is missing, or the batch is only a part of an optimiser batch.
        """
        if self.objective.pays and "advantage" not in batch.tokens:
            batch = self.credit(batch)
        selections: dict[tuple[tuple[str, ...], str], Selection] = {}
        columns: list[TokenColumn] = []
        for term in self.objective.losses:
            way = term.aggregate or self.objective.aggregate
            key = (term.streams, way.denominator)
            if key not in selections:
                selections[key] = select(batch, term.streams, way.denominator, self._reducer)
            factor = term.factor(self._state[term.name])
            for name, values in term.prepare(batch, way.share(selections[key]), self._reducer).items():
                scaled = values * factor if name in ("weight", "value") else values
                columns.append(TokenColumn(f"{term.name}/{name}", scaled, "objective"))
        return batch.with_tokens(*columns)

    def active(self, batch: Batch) -> NDArray[np.bool_]:
        """``[B]`` rows with a token that has weight in some term; whole attempts or groups where the plan asks."""
        used = np.zeros(int(batch.offsets[-1]) + 1, np.bool_)
        for term in self.objective.losses:
            used[:-1] |= _used(batch, term)
        rows = np.add.reduceat(used.astype(np.int64), batch.offsets[:-1]) > 0
        if self.plan.split is Scope.TOKEN:
            return rows
        unit = batch.rows["rollout"] if self.plan.split is Scope.SEQUENCE else batch.per_row("group")
        return np.isin(unit, unit[rows])

    # ---- once per micro-batch

    def micro(self, batch: Batch, live: Mapping[str, Any]) -> tuple[Any, Mapping[str, float]]:
        """The micro-batch's share of the loss, and metrics that add up over micro-batches.

        Args:
            batch: rows of a prepared batch.
            live: ``[N]`` tensors by name; always ``logp_new``.

        Returns:
            A scalar tensor with a gradient, and numbers: ``loss/NAME`` per term, and per-token means over the batch's loss
            tokens.

        Raises:
            DataError: the batch was not prepared, or a live column is missing.
        """
        loss = live["logp_new"][:0].sum()
        metrics: dict[str, float] = {}
        for term in self.objective.losses:
            index = np.flatnonzero(_used(batch, term))
            view = View(batch, live, index, term.name, self._fresh)
            if len(index):
                part = term.total(view)
                loss = loss + part
                numbers = {k: float(v.detach().sum()) / batch.counts.tokens for k, v in term.report(view).items()}
                metrics |= {f"{term.name}/{k}": v for k, v in numbers.items()}
                metrics[f"loss/{term.name}"] = float(part.detach())
        return loss, metrics

    # ---- state

    def state_dict(self) -> State:
        """JSON-able state of every part."""
        return {name: dict(state) for name, state in self._state.items()}

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`.

        Raises:
            CheckpointError: the state belongs to another objective.
        """
        theirs = {name: sorted(part) for name, part in state.items()}
        ours = {name: sorted(part) for name, part in self._state.items()}
        if theirs != ours:
            raise CheckpointError(
                f"the saved objective has the state {theirs}, this one {ours}: resume with the recipe that wrote it"
            )
        self._state = {name: dict(part) for name, part in state.items()}


def _used(batch: Batch, term: LossTerm) -> NDArray[np.bool_]:
    """``[N]`` tokens that the term acts on: those with a weight, or with a value of their own."""
    weight: F = batch.token(f"{term.name}/weight")
    value = batch.tokens.get(f"{term.name}/value")
    return (weight != 0) if value is None else (weight != 0) | (value.values != 0)
