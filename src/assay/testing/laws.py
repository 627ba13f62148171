"""The laws of the objective algebra, each computed twice along two ways that must agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.plan import Scope
from assay.core.sample import STREAMS
from assay.core.seeds import generator
from assay.objective.objective import Objective
from assay.objective.reduce import F, Partials, Reducer
from assay.testing.batches import shard, split_rows
from assay.testing.contracts import require
from assay.testing.passes import Outcome, evaluate, over_ranks

__all__ = ["LAWS", "Law", "subject_of"]

Law = Callable[[Objective, Batch, Mapping[str, F], int], None]
"""Objective, batch, values of the live columns, seed; raises ContractError where it is broken."""


def _partition(objective: Objective, batch: Batch, live: Mapping[str, F], seed: int) -> None:
    """Loss, gradient and metrics do not depend on the split into micro-batches."""
    unit = np.arange(len(batch))
    scope = objective.plan().split
    if scope is not Scope.TOKEN:
        unit = batch.per_row("group") if scope is Scope.GROUP else batch.rows["rollout"]
    rng = generator("testing/parts", seed)
    keys = rng.permutation(np.unique(unit))
    pieces = [np.flatnonzero(np.isin(unit, keys)).tolist()]
    if scope is not Scope.BATCH:
        cuts = np.sort(rng.integers(0, len(keys) + 1, 3))
        pieces = [np.flatnonzero(np.isin(unit, k)).tolist() for k in np.split(keys, cuts) if len(k)]
    _same(
        objective,
        "partition law",
        seed,
        evaluate(objective.compile(), batch, live),
        evaluate(objective.compile(), batch, live, pieces),
    )


def _masked(objective: Objective, batch: Batch, live: Mapping[str, F], seed: int) -> None:
    """What stands outside the loss mask changes nothing, not even NaN."""
    outside = ~batch.token("mask")
    other = {name: np.where(outside.reshape(-1, *[1] * (values.ndim - 1)), np.nan, values) for name, values in live.items()}
    hidden = {n: replace(c, values=np.where(outside, -9.0, c.values)) for n, c in batch.tokens.items() if c.dtype == np.float64}
    changed = batch.with_tokens(*hidden.values())
    first, second = evaluate(objective.compile(), batch, live), evaluate(objective.compile(), changed, other)
    _same(objective, "mask law", seed, first, second)
    for name, gradient in second.gradients.items():
        require(
            not gradient[outside].any(), subject_of(objective), f"mask law, seed {seed}: {name} has a gradient outside the mask"
        )


def _rows(objective: Objective, batch: Batch, live: Mapping[str, F], seed: int) -> None:
    """A rollout in several rows teaches what it teaches in one."""
    split, source = split_rows(batch, seed)
    second = evaluate(objective.compile(), split, {name: values[source] for name, values in live.items()})
    gradients = {name: np.zeros(values.shape) for name, values in live.items()}
    for name, gradient in second.gradients.items():
        np.add.at(gradients[name], source, gradient)
    first = evaluate(objective.compile(), batch, live)
    _same(objective, "row-split law", seed, first, replace(second, gradients=gradients))


def _skips(objective: Objective, batch: Batch, live: Mapping[str, F], seed: int) -> None:
    """Leaving inactive rows out changes nothing."""
    first = evaluate(objective.compile(), batch, live)
    _same(objective, "skip law", seed, first, evaluate(objective.compile(), batch, live, whole=False))


def _faults(objective: Objective, batch: Batch, live: Mapping[str, F], seed: int) -> None:
    """The reward of a faulty rollout is never read."""
    reward = np.where(batch.rollout("valid"), batch.rollout("components/correct"), 77.0)
    changed = batch.with_rollouts(**{"components/correct": reward})
    _same(objective, "fault law", seed, evaluate(objective.compile(), batch, live), evaluate(objective.compile(), changed, live))


def _streams(objective: Objective, batch: Batch, live: Mapping[str, F], seed: int) -> None:
    """Rows of a stream that no part names change nothing: neither losses nor states, whatever they hold."""
    named = {s for term in objective.losses for s in term.streams or STREAMS} | set(objective.scalarise.streams)
    named |= {s for term in objective.credit for s in term.streams}
    foreign = next((s for s in STREAMS if s not in named), None)
    if foreign is None:
        return
    attempts = generator("testing/streams", seed).random(len(batch.rollout("group"))) < 0.5
    rows = attempts[batch.rows["rollout"]]
    stream = np.where(rows, STREAMS.index(foreign), batch.rows["stream"])
    mixed = replace(batch, rows={**batch.rows, "stream": stream})
    theirs = np.repeat(rows, batch.lengths)
    columns = {n: replace(c, values=np.where(theirs, -9.0, c.values)) for n, c in batch.tokens.items() if c.dtype == np.float64}
    reward = np.where(attempts, 77.0, batch.rollout("components/correct"))
    changed = mixed.with_tokens(*columns.values()).with_rollouts(**{"components/correct": reward})
    programs = [objective.compile(), objective.compile()]
    pairs = zip(programs, (mixed, changed), strict=True)
    _same(objective, "stream law", seed, *(evaluate(p, p.credit(b), live) for p, b in pairs))
    first, second = (p.state_dict() for p in programs)
    require(
        first == second, subject_of(objective), f"stream law, seed {seed}: the state is {first} one way and {second} the other"
    )


@dataclass(frozen=True, slots=True)
class _Recorder:
    """A single process's reducer that notes what it is asked for."""

    seen: set[str]

    def reduce(self, partials: Partials) -> Partials:
        self.seen.update(partials)
        return partials


def _reductions(objective: Objective, batch: Batch, live: Mapping[str, F], seed: int) -> None:
    """The plan names the parts whose statistics cross ranks, all of them and no others."""
    recorder = _Recorder(set())
    program = objective.compile(reducer=recorder)
    evaluate(program, program.credit(batch), live)
    planned, seen = sorted(program.plan.reductions), sorted({name.rpartition("/")[0] for name in recorder.seen})
    require(planned == seen, subject_of(objective), f"reduction law, seed {seed}: the plan names {planned}, a run reduces {seen}")


def _ranks(objective: Objective, batch: Batch, live: Mapping[str, F], seed: int) -> None:
    """Two ranks that hold some groups each add up to one that holds all."""
    numbered = batch.with_tokens(TokenColumn("token", np.arange(int(batch.offsets[-1]))))
    parts = [shard(numbered, [0]), shard(numbered, list(range(1, int(batch.rollout("group").max()) + 1)))]
    where = [np.asarray(p.token("token"), np.int64) for p in parts]

    def run(rank: int, reducer: Reducer) -> Outcome:
        here = {name: values[where[rank]] for name, values in live.items()}
        return evaluate(objective.compile(reducer=reducer), parts[rank], here)

    both = over_ranks(run, 2)
    gradients = {name: np.zeros(values.shape) for name, values in live.items()}
    for outcome, tokens in zip(both, where, strict=True):
        for name, gradient in outcome.gradients.items():
            gradients[name][tokens] += gradient
    names = {n for o in both for n in o.metrics}
    metrics = {n: sum(o.metrics.get(n, 0.0) for o in both) for n in names}
    second = Outcome(loss=sum(o.loss for o in both), gradients=gradients, metrics=metrics)
    _same(objective, "rank law", seed, evaluate(objective.compile(), batch, live), second)


def _remembers(objective: Objective, batch: Batch, live: Mapping[str, F], seed: int) -> None:
    """A state that went through JSON continues as the one that did not."""
    first, second = objective.compile(), objective.compile()
    first.credit(batch)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    _same(objective, "state law", seed, evaluate(first, batch, live), evaluate(second, batch, live))


def _same(objective: Objective, law: str, seed: int, first: Outcome, second: Outcome) -> None:
    pairs: list[tuple[str, Any, Any]] = [("loss", first.loss, second.loss)]
    pairs += [(f"gradient of {n}", g, second.gradients[n]) for n, g in first.gradients.items()]
    names = sorted({*first.metrics, *second.metrics})
    pairs += [(n, first.metrics.get(n, 0.0), second.metrics.get(n, 0.0)) for n in names]
    for name, a, b in pairs:
        held = bool(np.all(np.isfinite(a))) and bool(np.allclose(a, b, rtol=1e-9, atol=1e-11))
        require(held, subject_of(objective), f"{law}, seed {seed}: {name} is {a} one way and {b} the other")


def subject_of(objective: Objective) -> str:
    """A composition's parts, for reports."""
    parts = (*objective.credit, *objective.losses, objective.aggregate)
    return " | ".join(type(p).__name__ for p in parts)


LAWS: Mapping[str, Law] = {
    "partition": _partition,
    "mask": _masked,
    "row split": _rows,
    "skip": _skips,
    "faulty rollouts": _faults,
    "streams": _streams,
    "ranks": _ranks,
    "reductions": _reductions,
    "state": _remembers,
}
