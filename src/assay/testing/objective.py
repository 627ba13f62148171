"""The laws of the objective algebra, as checks for built-in terms and users' own.

Each law computes loss and gradient twice, in float64, on a small random batch, along two ways that must agree: whole or in
micro-batches, on
one rank or on two, with a rollout in one row or in several, with or without the rows that may be skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch, Counts
from assay.core.columns import Array, TokenColumn
from assay.core.plan import Scope
from assay.core.sample import STREAMS
from assay.core.seeds import generator
from assay.objective.credit.base import CreditTerm
from assay.objective.credit.baseline import Center
from assay.objective.loss.aggregate import Aggregation, SeqSum
from assay.objective.loss.base import LossTerm
from assay.objective.loss.likelihood import Nll
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.weights import TokenWeight
from assay.objective.objective import Objective
from assay.objective.plan import forward_of
from assay.objective.program import Program
from assay.objective.reduce import F, Partials, Reducer
from assay.testing.contracts import Report, require

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Outcome",
    "check_objective",
    "check_term",
    "evaluate",
    "objective_around",
    "over_ranks",
    "random_batch",
    "random_live",
    "shard",
    "split_rows",
]

T = TypeVar("T")

Part = CreditTerm | LossTerm | TokenWeight | Aggregation


# ---- batches ----------------------------------------------------------------------------------------------------------


def random_batch(seed: int, columns: Sequence[str] = (), groups: int = 3, size: int = 4, attempts: Sequence[str] = ()) -> Batch:
    """A small graded batch: rows of 2 to 7 tokens, rewards of few values, one faulty rollout, tool tokens outside the mask.

    Args:
        seed: everything derives from it.
        columns: further token columns: ``logp_*`` get log-probabilities, ``entropy*`` positive numbers, others any.
        groups, size: groups and attempts per group.
        attempts: further columns of the attempts, each 0, 0.5 or 1: keys as well as shares.

    Returns:
        ``groups * size`` attempts, one of them faulty and without rows; arrays are read-only.
    """
    rng = generator("testing/batch", seed)
    total = groups * size
    faulty = int(rng.integers(total))
    owner = np.array([i for i in range(total) if i != faulty], np.int64)
    lengths = rng.integers(2, 8, len(owner))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(offsets[-1])
    mask = rng.random(n) < 0.8
    mask[offsets[1:] - 1] = True
    mask[offsets[:-1]] = False
    tokens = {"ids": rng.integers(0, 32, n).astype(np.int32), "mask": mask}
    tokens |= {name: _column(name, n, rng) for name in dict.fromkeys(columns)}
    reward = rng.integers(0, 3, total) / 2.0
    reward[rng.integers(groups) * size :][:size] = 1.0  # one group without variance
    per_attempt = np.zeros(total, np.int64)
    np.add.at(per_attempt, np.repeat(owner, lengths), mask)
    table: dict[str, Array] = {
        "group": np.repeat(np.arange(groups), size),
        "valid": np.arange(total) != faulty,
        "length": per_attempt,
        "truncated": rng.random(total) < 0.2,
        "tokens": per_attempt,
        "components/correct": reward,
    }
    extra = {name: rng.integers(0, 3, total) / 2.0 for name in dict.fromkeys(attempts)}
    table = {**extra, **table}
    rows: dict[str, Array] = {"rollout": owner, "stream": np.zeros(len(owner), np.int8)}
    for array in (*tokens.values(), *table.values(), *rows.values()):
        array.setflags(write=False)
    prompts = len(np.unique(table["group"][owner]))
    counts = Counts(int(mask.sum()), len(owner), len(owner), prompts)
    return Batch(
        offsets=offsets, tokens={k: TokenColumn(k, v, "testing") for k, v in tokens.items()}, rows=rows, rollouts=table,
        counts=counts, drawn=replace(counts, tokens=counts.tokens + 5, rows=counts.rows + 2, rollouts=counts.rollouts + 2),
    )  # fmt: skip


def _column(name: str, n: int, rng: np.random.Generator) -> F:
    values = rng.normal(size=n)
    if name.startswith("logp"):
        return -np.abs(values) - 0.05
    return np.abs(values) if name.startswith("entropy") else values


def random_live(batch: Batch, names: Sequence[str], seed: int, widths: Mapping[str, int] | None = None) -> dict[str, F]:
    """``[N]`` values of the live columns, as `evaluate` takes them; ``[N, k]`` of those with a width ``k`` above 1."""
    rng = generator("testing/live", seed)
    n, widths = int(batch.offsets[-1]), widths or {}
    return {m: _column(m, n, rng) if widths.get(m, 1) == 1 else rng.normal(size=(n, widths[m])) for m in names}


def head_widths(objective: Objective) -> dict[str, int]:
    """Outputs per token of the heads that an objective fits, by name."""
    return {name: form[1] for t in objective.losses for name, form in t.heads.items()}


def shard(batch: Batch, groups: Sequence[int]) -> Batch:
    """One rank's part: the rollouts and rows of some groups, with group numbers and counts of the whole."""
    table = np.isin(batch.rollout("group"), groups)
    part = batch.micro(np.flatnonzero(table[batch.rows["rollout"]]))
    position = np.cumsum(table) - 1
    rows = {**part.rows, "rollout": position[part.rows["rollout"]]}
    return replace(part, rows=rows, rollouts={k: v[table] for k, v in batch.rollouts.items()})


def split_rows(batch: Batch, seed: int) -> tuple[Batch, NDArray[np.int64]]:
    """The same rollouts, some in two rows: the second row holds the first one's tokens as context.

    Returns:
        The batch, and ``[N']`` for each of its tokens the token of ``batch`` that it copies.
    """
    rng = generator("testing/split", seed)
    twice = (rng.random(len(batch)) < 0.5) & (batch.part_lengths() > 1)
    index = np.repeat(np.arange(len(batch)), np.where(twice, 2, 1))
    part = batch.with_tokens(TokenColumn("source", np.arange(int(batch.offsets[-1])))).micro(index)
    mask = np.array(part.token("mask"))
    for row in np.flatnonzero(np.diff(index, prepend=-1) == 0):  # second rows
        first, start, end = part.offsets[row - 1], part.offsets[row], part.offsets[row + 1]
        loss = np.flatnonzero(mask[start:end])
        cut = int(loss[rng.integers(1, len(loss))])
        mask[first + cut : start] = False
        mask[start : start + cut] = False
    more = len(index) - len(batch)
    made = replace(
        part.with_tokens(TokenColumn("mask", mask, "testing")),
        counts=replace(part.counts, rows=part.counts.rows + more), drawn=replace(part.drawn, rows=part.drawn.rows + more),
    )  # fmt: skip
    return made, np.asarray(made.token("source"), np.int64)


# ---- evaluation -------------------------------------------------------------------------------------------------------


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


# ---- laws -------------------------------------------------------------------------------------------------------------


def check_objective(objective: Objective, seeds: Sequence[int] = range(6)) -> Report:
    """Holds a composition to the laws that need no knowledge of what it computes.

    Raises:
        ContractError: names the law, the seed and both numbers.
        PlanError: the composition does not compile.
    """
    plan = objective.plan()
    columns = (*plan.columns, *(f.column for f in plan.forwards))
    attempts = [name for term in (*objective.credit, *objective.losses) for name in term.attempts]
    for seed in seeds:
        batch = random_batch(seed, columns, attempts=attempts)
        live = random_live(batch, plan.live, seed, head_widths(objective))
        for law in (_partition, _masked, _rows, _skips, _faults, _streams, _ranks, _reductions, _remembers):
            law(objective, batch, live, seed)
    laws = ("partition", "mask", "row split", "skip", "faulty rollouts", "streams", "ranks", "reductions", "state")
    return Report(subject=_subject(objective), passed=laws)


def check_term(term: Part, seeds: Sequence[int] = range(6)) -> Report:
    """Holds one part, built-in or a user's own, to the laws, inside the smallest objective that uses it.

    Args:
        term: a credit term, a loss term, a token weight or an aggregation.
        seeds: batches to try.

    Raises:
        ContractError: names the law, the seed and both numbers.

    >>> from assay.objective import Center
    >>> from assay.testing.objective import check_term
    >>> check_term(Center("leave_one_out"), seeds=[0]).passed[0]
    'partition'
    """
    objective = objective_around(term)
    report = check_objective(objective, seeds)
    if isinstance(term, LossTerm):
        plan = objective.plan()
        columns = (*plan.columns, *(f.column for f in plan.forwards))
        moved = False
        for seed in seeds:
            batch = random_batch(seed, columns)
            outcome = evaluate(objective.compile(), batch, random_live(batch, plan.live, seed, head_widths(objective)))
            moved = moved or any(bool(np.any(g)) for g in outcome.gradients.values())
        require(moved, type(term).__name__, f"the gradient is zero on all of the seeds {list(seeds)}: the term teaches nothing")
        report = replace(report, passed=(*report.passed, "gradient"))
    return replace(report, subject=f"{type(term).__name__}")


def objective_around(term: Part) -> Objective:
    """The smallest objective that uses a part; columns that no pass produces count as brought by the user."""
    plain = PolicyGradient(ratio=Ratio("none"), trust=None)
    if isinstance(term, Aggregation):
        return Objective(terms=(Nll(),), aggregate=term)
    if isinstance(term, TokenWeight):
        return Objective(
            credit=(Center("group"),), policy=replace(plain, weights=(term,)), aggregate=SeqSum(), brings=_own(term.needs)
        )
    if isinstance(term, CreditTerm):
        before = (Center("group"),) if term.kind == "scale" else ()
        return Objective(credit=(*before, term), policy=plain, aggregate=SeqSum(), brings=_own(term.needs))
    credit = (Center("group"),) if term.reward else ()
    if term.terminal:
        return Objective(credit=credit, policy=term, brings=_own(term.needs))
    policy = plain if "advantage" in term.needs else None
    return Objective(
        credit=credit or ((Center("group"),) if policy else ()), policy=policy, terms=(term,), brings=_own(term.needs)
    )


def _own(needs: Sequence[str]) -> tuple[str, ...]:
    return tuple(n for n in needs if forward_of(n, ()) is None and n != "advantage")


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
            not gradient[outside].any(), _subject(objective), f"mask law, seed {seed}: {name} has a gradient outside the mask"
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
    require(first == second, _subject(objective), f"stream law, seed {seed}: the state is {first} one way and {second} the other")


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
    require(planned == seen, _subject(objective), f"reduction law, seed {seed}: the plan names {planned}, a run reduces {seen}")


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
        require(held, _subject(objective), f"{law}, seed {seed}: {name} is {a} one way and {b} the other")


def _subject(objective: Objective) -> str:
    parts = (*objective.credit, *objective.losses, objective.aggregate)
    return " | ".join(type(p).__name__ for p in parts)
