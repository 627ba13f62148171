"""A compiled objective at work: credit once per rollout batch, weights once per optimiser step, losses once per micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import CheckpointError, DataError
from assay.core.plan import Plan, Scope
from assay.core.protocols import State
from assay.core.score import ROW_WEIGHT
from assay.objective.loss.aggregate import Selection, of_streams, select
from assay.objective.loss.base import LossTerm, View
from assay.objective.plan import aggregate_name
from assay.objective.reducers import F, Local, Named, Reducer, Sum

if TYPE_CHECKING:
    from assay.objective.objective import Objective

__all__ = ["Program"]


class Program:
    """Implements `assay.core.protocols.LossProgram`.

    Attributes:
        objective, plan: what was compiled.
        scales: by the names of terms, factors of their coefficients in the next optimiser steps; 1 where there is none.

    The state (running baselines, adaptive coefficients) moves in `credit` only, and is saved with the weights. A batch is
    always judged by the state from before it: what it measures counts from the next batch on.
    """

    def __init__(self, objective: Objective, plan: Plan, *, fresh: bool = False, reducer: Reducer | None = None) -> None:
        self.objective, self.plan = objective, plan
        self._fresh, self._reducer = fresh, reducer or Local()
        parts = {f"credit/{i}": t for i, t in enumerate(objective.credit)} | {t.name: t for t in objective.losses}
        self._state: dict[str, State] = {name: part.init() for name, part in parts.items()}
        self._before: dict[str, State] = {t.name: self._state[t.name] for t in objective.losses}
        self._metrics: dict[str, float] = {}
        self._clipped: dict[str, F] = {}
        self.scales: Mapping[str, float] = {}

    # ---- once per rollout batch

    def credit(self, batch: Batch) -> Batch:
        """Rewards to advantages, and one move of every state.

        Returns:
            The batch with rollout columns ``reward``, ``advantage`` and ``keep`` and the token column ``advantage``; unchanged
            columns
            when no term reads rewards.

        Raises:
            DataError: reward components are missing, or a column of the rollouts.
        """
        self._metrics, self._clipped = {}, {}
        for name in self.plan.rollout_columns:
            if name not in batch.rollouts:
                raise DataError(
                    f"the objective reads the column {name!r} of each rollout, and the batch has none: have the verifier give it "
                    f"as Score(components=..., columns={{{name!r}: ...}}); the batch has {', '.join(sorted(batch.rollouts))}"
                )
        if self.objective.uses_reward:
            batch = self._advantages(batch)
        for term in self.objective.losses:
            before = self._before[term.name] = self._state[term.name]
            if before:
                stats = self._ranks(term.name).reduce(term.local(of_streams(batch, term.streams)))
                self._state[term.name] = term.advance(before, stats)
                self._metrics[f"coef/{term.name}"] = term.factor(before)
        return batch

    def _advantages(self, batch: Batch) -> Batch:
        record = self.objective.scalarise.start(batch)
        for i, term in enumerate(self.objective.credit):
            name = f"credit/{i}"
            stats = self._ranks(name).reduce(term.local(record))
            record = term.apply(record, stats, self._state[name])
            self._state[name] = term.advance(self._state[name], stats)
        self._metrics.update(record.metrics)
        made = batch.with_rollouts(reward=record.reward, advantage=record.advantage, keep=record.keep)
        columns = {"advantage": record.per_token(), **record.columns}
        return made.with_tokens(*(TokenColumn(name, values, "credit") for name, values in columns.items()))

    def metrics(self) -> Mapping[str, float]:
        """Numbers of the last `credit`: lone and dropped groups, coefficients in force. And of the optimiser steps since, for
        terms that correct for the sampler: ``TERM/correction_clipped``, the share of the tokens of their streams, with an
        advantage or not, that a correction cuts off or leaves out.
        """
        return self._metrics | {f"{n}/correction_clipped": float(cut / max(of, 1.0)) for n, (cut, of) in self._clipped.items()}

    # ---- once per optimiser step

    def prepare(self, batch: Batch) -> Batch:
        """Adds each term's token columns (``NAME/weight`` and its own); runs `credit` first where it has not been run.

        A term that reports gets ``NAME/acting`` too: ``1 / count`` on the tokens that it acts on, counted over the whole
        optimiser batch and all ranks, so that the shares of its means add up over micro-batches.

        Raises:
            DataError: a needed column is missing, or the batch is only a part of an optimiser batch.
        """
        self._check_whole(batch)
        if self.objective.uses_reward and "advantage" not in batch.tokens:
            batch = self.credit(batch)
        selections: dict[str, Selection] = {}
        columns: list[TokenColumn] = []
        for term in self.objective.losses:
            way = term.aggregate or self.objective.aggregate
            name = aggregate_name(self.objective, term)
            if name not in selections:
                selections[name] = select(batch, term.streams, way.denominator, self._ranks(name))
            factor = term.factor(self._before[term.name]) * self.scales.get(term.name, 1.0)
            share = way.share(selections[name])
            if ROW_WEIGHT in batch.rollouts:  # of rows that say so: the denominators count each once, whatever its weight
                share = share * batch.rollout(ROW_WEIGHT)[selections[name].owner]
            for own, values in term.prepare(batch, share, self._ranks(term.name)).items():
                scaled = values * factor if own in ("weight", "value") else values
                columns.append(TokenColumn(f"{term.name}/{own}", scaled, "objective"))
        return self._with_acting(batch.with_tokens(*columns))

    def _with_acting(self, batch: Batch) -> Batch:
        """The batch with the share of each token in the means of the terms that report."""
        used = {t.name: _used_tokens(batch, t) for t in self.objective.losses if t.reports}
        if not used:
            return batch
        here = {name: Sum(np.array([float(tokens.sum()), *self._cut(batch, name)])) for name, tokens in used.items()}
        totals = self._ranks("report").reduce(here)
        count = {name: float(total.values[0]) for name, total in totals.items()}
        for name, total in totals.items():
            if f"{name}/clipped" in batch.tokens:
                self._clipped[name] = self._clipped.get(name, 0.0) + total.values[1:]
        return batch.with_tokens(
            *(TokenColumn(f"{name}/acting", tokens / max(count[name], 1.0), "objective") for name, tokens in used.items())
        )

    def _cut(self, batch: Batch, name: str) -> tuple[float, float]:
        """Tokens of a term's streams that its corrections clip, and all of them; zeros of a term without."""
        if f"{name}/clipped" not in batch.tokens:
            return 0.0, 0.0
        rows = of_streams(batch, next(t.streams for t in self.objective.losses if t.name == name))
        mask = np.asarray(rows.token("mask"), np.bool_)
        return float(rows.token(f"{name}/clipped")[mask].sum()), float(mask.sum())

    def _check_whole(self, batch: Batch) -> None:
        found = int(np.asarray(batch.token("mask"), np.bool_).sum())
        if isinstance(self._reducer, Local) and found != batch.counts.tokens:
            raise DataError(
                f"the batch has {found} loss tokens, its global count says {batch.counts.tokens}: prepare() takes the whole "
                "optimiser batch before it is split into micro-batches; on several ranks compile the objective with a Reducer"
            )

    def _ranks(self, part: str) -> Reducer:
        return Named(self._reducer, part, self.plan.reductions)

    def active(self, batch: Batch) -> NDArray[np.bool_]:
        """``[B]`` rows with a token that has weight in some term; whole rollouts or groups where the plan asks."""
        used = np.zeros(int(batch.offsets[-1]) + 1, np.bool_)
        for term in self.objective.losses:
            used[:-1] |= _used_tokens(batch, term)
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
            A scalar tensor with a gradient, and numbers: ``loss/NAME`` per term, and this micro-batch's share of the means of
            what a term reports, over the tokens of the whole optimiser batch that it acts on.

        Raises:
            DataError: the batch was not prepared, or a live column is missing.
        """
        loss = live["logp_new"][:0].sum()
        metrics: dict[str, float] = {}
        for term in self.objective.losses:
            index = np.flatnonzero(_used_tokens(batch, term))
            view = View(batch, live, index, term.name, self._fresh)
            if len(index):
                part = term.total(view)
                loss = loss + part
                if term.reports:
                    each = float(batch.token(f"{term.name}/acting")[index[0]])
                    metrics |= {f"{term.name}/{k}": float(v.detach().sum()) * each for k, v in term.report(view).items()}
                metrics[f"loss/{term.name}"] = float(part.detach())
        return loss, metrics

    # ---- state

    def state_dict(self) -> State:
        """JSON-able state of every part, and under ``NAME@before`` the one by which the present batch is judged."""
        return {name: dict(state) for name, state in self._everything().items()}

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`.

        Raises:
            CheckpointError: the state belongs to another objective.
        """
        theirs = {name: sorted(part) for name, part in state.items()}
        ours = {name: sorted(part) for name, part in self._everything().items()}
        if theirs != ours:
            raise CheckpointError(
                f"the saved objective has the state {theirs}, this one {ours}: resume with the recipe that wrote it"
            )
        self._state = {name: dict(state[name]) for name in self._state}
        self._before = {name: dict(state.get(f"{name}@before", {})) for name in self._before}

    def _everything(self) -> dict[str, State]:
        return self._state | {f"{name}@before": state for name, state in self._before.items() if state}


def _used_tokens(batch: Batch, term: LossTerm) -> NDArray[np.bool_]:
    """``[N]`` tokens that the term acts on: those with a weight, or with a value of their own."""
    weight: F = batch.token(f"{term.name}/weight")
    value = batch.tokens.get(f"{term.name}/value")
    return (weight != 0) if value is None else (weight != 0) | (value.values != 0)
