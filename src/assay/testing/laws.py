"""The laws of the objective algebra, each computed twice along two ways that must agree."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.plan import Plan, Scope
from assay.core.sample import STREAMS
from assay.core.seeds import generator
from assay.objective.objective import Objective
from assay.objective.program import Program
from assay.objective.reducers import F, Partials, Reducer
from assay.testing.batches import shard, split_rows
from assay.testing.contracts import require
from assay.testing.passes import RanksOutcome, evaluate, over_ranks

__all__ = ["LAWS", "Law", "Trial", "subject_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What a law is held on: a composition, a batch, and what one pass over all of it gave, which most laws compare with.

    Attributes:
        objective: the composition.
        batch: with all that it reads.
        live: ``[N]`` values of the live columns.
        seed: of the batch and of what a law draws.
        plan: of the composition.
        whole: one pass over the whole batch on one rank.
    """

    objective: Objective
    batch: Batch
    live: Mapping[str, F]
    seed: int
    plan: Plan
    whole: RanksOutcome

    def program(self, reducer: Reducer | None = None) -> Program:
        """The composition as compiled, with the state of a beginning."""
        return Program(self.objective, self.plan, reducer=reducer)

    def same(self, law: str, second: RanksOutcome, first: RanksOutcome | None = None) -> None:
        """Raises ContractError unless ``second`` is ``first``, by default the one pass over the whole."""
        first = first or self.whole
        pairs: list[tuple[str, Any, Any]] = [("loss", first.loss, second.loss)]
        pairs += [(f"gradient of {n}", g, second.gradients[n]) for n, g in first.gradients.items()]
        names = sorted({*first.metrics, *second.metrics})
        pairs += [(n, first.metrics.get(n, 0.0), second.metrics.get(n, 0.0)) for n in names]
        for name, a, b in pairs:
            if not _near(a, b):
                self.require(False, law, f"{name} is {a} one way and {b} the other")

    def require(self, held: bool, law: str, said: str) -> None:
        """Raises ContractError with the law, the seed and what was found unless ``held``."""
        require(held, subject_of(self.objective), f"{law}, seed {self.seed}: {said}")


Law = Callable[[Trial], None]
"""Raises ContractError where it is broken."""


def _near(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):  # as below, without numpy's cost per number
        return math.isfinite(a) and abs(a - b) <= 1e-11 + 1e-9 * abs(b)
    finite = bool(np.isfinite(a).all()) and bool(np.isfinite(b).all())
    return finite and bool((np.abs(a - b) <= 1e-11 + 1e-9 * np.abs(b)).all())


def _partition(trial: Trial) -> None:
    """Loss, gradient and metrics do not depend on the split into micro-batches."""
    batch, live, seed = trial.batch, trial.live, trial.seed
    unit = np.arange(len(batch))
    scope = trial.plan.split
    if scope is not Scope.TOKEN:
        unit = batch.per_row("group") if scope is Scope.GROUP else batch.rows["rollout"]
    rng = generator("testing/parts", seed)
    keys = rng.permutation(np.unique(unit))
    pieces = [np.flatnonzero(np.isin(unit, keys)).tolist()]
    if scope is not Scope.BATCH:
        cuts = np.sort(rng.integers(0, len(keys) + 1, 3))
        pieces = [np.flatnonzero(np.isin(unit, k)).tolist() for k in np.split(keys, cuts) if len(k)]
    trial.same("partition law", evaluate(trial.program(), batch, live, pieces))


def _check_masked(trial: Trial) -> None:
    """What stands outside the loss mask changes nothing, not even NaN."""
    batch, live = trial.batch, trial.live
    outside = ~batch.token("mask")
    other = {name: np.where(outside.reshape(-1, *[1] * (values.ndim - 1)), np.nan, values) for name, values in live.items()}
    hidden = {n: replace(c, values=np.where(outside, -9.0, c.values)) for n, c in batch.tokens.items() if c.dtype == np.float64}
    changed = batch.with_tokens(*hidden.values())
    second = evaluate(trial.program(), changed, other)
    trial.same("mask law", second)
    for name, gradient in second.gradients.items():
        trial.require(not gradient[outside].any(), "mask law", f"{name} has a gradient outside the mask")


def _rows(trial: Trial) -> None:
    """A rollout in several rows teaches what it teaches in one."""
    batch, live, seed = trial.batch, trial.live, trial.seed
    split, source = split_rows(batch, seed)
    second = evaluate(trial.program(), split, {name: values[source] for name, values in live.items()})
    gradients = {name: np.zeros(values.shape) for name, values in live.items()}
    for name, gradient in second.gradients.items():
        np.add.at(gradients[name], source, gradient)
    trial.same("row-split law", replace(second, gradients=gradients))


def _skips(trial: Trial) -> None:
    """Leaving inactive rows out changes nothing."""
    batch, live = trial.batch, trial.live
    trial.same("skip law", evaluate(trial.program(), batch, live, whole=False))


def _faults(trial: Trial) -> None:
    """The reward of a faulty rollout is never read."""
    batch, live = trial.batch, trial.live
    reward = np.where(batch.rollout("valid"), batch.rollout("components/correct"), 77.0)
    changed = batch.with_rollouts(**{"components/correct": reward})
    trial.same("fault law", evaluate(trial.program(), changed, live))


def _streams(trial: Trial) -> None:
    """Rows of a stream that no part names change nothing: neither losses nor states, whatever they hold."""
    objective, batch, live, seed = trial.objective, trial.batch, trial.live, trial.seed
    named = {s for term in objective.losses for s in term.streams or STREAMS} | set(objective.scalarise.streams)
    named |= {s for term in objective.credit for s in term.streams}
    foreign = next((s for s in STREAMS if s not in named), None)
    if foreign is None:
        return
    rollouts = generator("testing/streams", seed).random(len(batch.rollout("group"))) < 0.5
    rows = rollouts[batch.rows["rollout"]]
    stream = np.where(rows, STREAMS.index(foreign), batch.rows["stream"])
    mixed = replace(batch, rows={**batch.rows, "stream": stream})
    theirs = np.repeat(rows, batch.lengths)
    columns = {n: replace(c, values=np.where(theirs, -9.0, c.values)) for n, c in batch.tokens.items() if c.dtype == np.float64}
    reward = np.where(rollouts, 77.0, batch.rollout("components/correct"))
    changed = mixed.with_tokens(*columns.values()).with_rollouts(**{"components/correct": reward})
    programs = [trial.program(), trial.program()]
    first, second = (evaluate(p, p.credit(b), live) for p, b in zip(programs, (mixed, changed), strict=True))
    trial.same("stream law", second, first)
    one, other = (p.state_dict() for p in programs)
    trial.require(one == other, "stream law", f"the state is {one} one way and {other} the other")


@dataclass(frozen=True, slots=True)
class _Recorder:
    """A single process's reducer that notes what it is asked for."""

    seen: set[str]

    def reduce(self, partials: Partials) -> Partials:
        self.seen.update(partials)
        return partials


def _reductions(trial: Trial) -> None:
    """The plan names the parts whose statistics cross ranks, all of them and no others."""
    batch, live = trial.batch, trial.live
    recorder = _Recorder(set())
    program = trial.program(recorder)
    evaluate(program, program.credit(batch), live)
    planned, seen = sorted(program.plan.reductions), sorted({name.rpartition("/")[0] for name in recorder.seen})
    trial.require(planned == seen, "reduction law", f"the plan names {planned}, a run reduces {seen}")


def _ranks(trial: Trial) -> None:
    """Two ranks that hold some groups each add up to one that holds all."""
    batch, live = trial.batch, trial.live
    numbered = batch.with_tokens(TokenColumn("token", np.arange(int(batch.offsets[-1]))))
    parts = [shard(numbered, [0]), shard(numbered, list(range(1, int(batch.rollout("group").max()) + 1)))]
    where = [np.asarray(p.token("token"), np.int64) for p in parts]

    def run(rank: int, reducer: Reducer) -> RanksOutcome:
        here = {name: values[where[rank]] for name, values in live.items()}
        return evaluate(trial.program(reducer), parts[rank], here)

    both = over_ranks(run, 2)
    gradients = {name: np.zeros(values.shape) for name, values in live.items()}
    for outcome, tokens in zip(both, where, strict=True):
        for name, gradient in outcome.gradients.items():
            gradients[name][tokens] += gradient
    names = {n for o in both for n in o.metrics}
    metrics = {n: sum(o.metrics.get(n, 0.0) for o in both) for n in names}
    trial.same("rank law", RanksOutcome(loss=sum(o.loss for o in both), gradients=gradients, metrics=metrics))


def _remembers(trial: Trial) -> None:
    """A state that went through JSON continues as the one that did not."""
    batch, live = trial.batch, trial.live
    first, second = trial.program(), trial.program()
    first.credit(batch)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    trial.same("state law", evaluate(second, batch, live), evaluate(first, batch, live))


def subject_of(objective: Objective) -> str:
    """A composition's parts, for reports."""
    parts = (*objective.credit, *objective.losses, objective.aggregate)
    return " | ".join(type(p).__name__ for p in parts)


LAWS: Mapping[str, Law] = {
    "partition": _partition,
    "mask": _check_masked,
    "row split": _rows,
    "skip": _skips,
    "faulty rollouts": _faults,
    "streams": _streams,
    "ranks": _ranks,
    "reductions": _reductions,
    "state": _remembers,
}
