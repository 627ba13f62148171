"""One step of reinforcement learning, to be read first: the walk from a choice of tasks to a report.

``choose → pose → roll out → score → observe → compose → credit, loss, update → publish, prove → report``
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.group import Draw, Group
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.seeds import generator
from assay.core.task import Context, Task
from assay.train.clock import Clock
from assay.train.metrics import step_metrics
from assay.train.session import Session

__all__ = ["StepResult", "annotated", "attempt", "publish", "step", "update"]

Graded = tuple[tuple[Rollout, ...], tuple[Score, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step leaves for the journal: named numbers, and the graded groups."""

    metrics: Mapping[str, float]
    groups: tuple[Group, ...] = field(default=(), repr=False)


async def step(s: Session) -> StepResult:
    """Advances a session by one rollout batch."""
    clock = Clock()
    draws = s.curriculum.draw(s.rl.groups)
    tasks = [s.counter.next(s.run.tasks, draw) for draw in draws]
    groups = await attempt(s, tasks, draws, clock)
    s.curriculum.observe(groups)
    batch = s.rl.composer.compose(groups, s.replay, s.step)
    if s.replay is not None:
        s.replay.put(groups, s.step)
    stats: Mapping[str, float] = {}
    if batch is not None:
        batch = annotated(s, batch, clock)
        stats = update(s, batch)
    proved = await publish(s, clock) if batch is not None else s.proved
    s.remember(groups)
    metrics = step_metrics(groups, batch, stats, s.curriculum.metrics(), clock.seconds())
    return StepResult(metrics={**metrics, "proof/state": float(proved)}, groups=tuple(groups))


async def attempt(s: Session, tasks: Sequence[Task], draws: Sequence[Draw], clock: Clock) -> list[Group]:
    """Poses each task as the guidance says, round after round, and grades the attempts."""
    done: list[list[Group]] = [[] for _ in tasks]
    live = list(range(len(tasks)))
    while live:
        posed: list[tuple[int, Context]] = [(i, c) for i in live for c in s.rl.guidance.next(tasks[i], done[i], f"s{s.step}/{i}")]
        live = sorted({i for i, _ in posed})
        if not posed:
            break
        with clock("generate"):
            rollouts = await s.player.collect([c for _, c in posed], s.rl.group_size)
        with clock("score"):
            graded = _grade(s, [(tasks[i], c) for i, c in posed], rollouts)
        for (i, context), (members, scores) in zip(posed, graded, strict=True):
            done[i].append(Group(key=context.group, task=tasks[i], draw=draws[i], rollouts=members, scores=scores))
    return [group for groups in done for group in groups]


def annotated(s: Session, batch: Batch, clock: Clock) -> Batch:
    """The batch with the columns that the objective asks the learner for before the first update: none, often."""
    with clock("forward"):
        for forward in s.plan.forwards:
            if forward.when == "batch":
                batch = s.learner.annotate(batch, forward)
    return batch


def update(s: Session, batch: Batch) -> Mapping[str, float]:
    """Rewards to advantages, then the optimiser steps; returns their metrics and those of the credit."""
    batch = s.program.credit(batch)
    if s.rl.epochs == s.rl.minibatches == 1:
        stats = [s.learner.step(batch, s.plan, s.program).metrics]
    else:
        stats = [s.learner.step(part, s.plan, s.program).metrics for part in _minibatches(s, batch)]
    return {**s.program.metrics(), **_together(stats)}


def _together(stats: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The numbers of several optimiser steps as one: counts and seconds add up, all else is averaged."""
    names = dict.fromkeys(name for m in stats for name in m)
    values = {name: [m[name] for m in stats if name in m] for name in names}
    return {n: float(sum(v) if n.startswith(("tokens/", "rows/", "time/")) else np.mean(v)) for n, v in values.items()}


async def publish(s: Session, clock: Clock) -> bool:
    """Hands the new weights to the engine and proves that they arrived."""
    with clock("publish"):
        manifest = s.learner.publish()
        await s.engine.swap(manifest)
    with clock("proof"):
        s.proved = await s.proof.check(manifest, s.engine, s.learner) if s.proof else False
    return s.proved


def _grade(s: Session, posed: Sequence[tuple[Task, Context]], rollouts: Sequence[Rollout]) -> list[Graded]:
    """The attempts at each context with their scores, in the order of ``posed``."""
    of_context: dict[str, list[Rollout]] = {c.key: [] for _, c in posed}
    for rollout in rollouts:
        of_context[rollout.context.key].append(rollout)
    pairs = [(t, r) for t, c in posed for r in of_context[c.key]]
    scores = s.pool.score(pairs)
    graded: list[Graded] = []
    for _, context in posed:
        members = tuple(of_context[context.key])
        graded.append((members, tuple(scores[r.id] for r in members)))
    return graded


def _minibatches(s: Session, batch: Batch) -> Iterator[Batch]:
    """Whole groups in a seeded order, ``minibatches`` parts an epoch."""
    group = batch.per_row("group")
    keys: NDArray[np.int64] = np.unique(group)
    for epoch in range(s.rl.epochs):
        order = generator("minibatch", s.run.seed, f"step-{s.step}", epoch).permutation(keys)
        for part in np.array_split(order, s.rl.minibatches):
            rows = np.flatnonzero(np.isin(group, part))
            if len(rows):
                yield batch.mini(rows)
