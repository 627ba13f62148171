"""One step of reinforcement learning, to be read first: the walk from a choice of tasks to a report.

``choose → pose → roll out → score → observe → compose → credit, loss, update → publish, prove → report``
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.group import Draw, Group
from assay.core.parts import timed
from assay.core.seeds import generator
from assay.core.task import Context, Task
from assay.train import supply
from assay.train.check import Checked
from assay.train.clock import Clock
from assay.train.experts import expert_groups
from assay.train.grade import grade, groups_of
from assay.train.metrics import step_metrics
from assay.train.mismatch import Watched, before_update, coarser
from assay.train.room import asking
from assay.train.session import Session

__all__ = ["StepResult", "aged", "annotated", "attempt", "publish", "step", "update"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step leaves for the journal: named numbers, the graded groups, and what a second judge found in them."""

    metrics: Mapping[str, float]
    groups: tuple[Group, ...] = field(default=(), repr=False)
    found: Checked = field(default_factory=Checked, repr=False)


async def step(s: Session) -> StepResult:
    """Advances a session by one rollout batch."""
    clock = Clock()
    stage, curriculum, replay = s.rl.stage, s.rl.curriculum, s.rl.replay
    draws = curriculum.draw(stage.groups)
    tasks = [s.counter.next(s.run.tasks, draw) for draw in draws]
    with s.recorded():
        groups = await attempt(s, tasks, draws, clock)
    curriculum.observe(groups)
    found = Checked()
    if s.checker:
        with clock("check"):
            found = s.checker.look(groups)
    with clock("supply"):
        groups, experts = await supply.with_columns(s, groups), await expert_groups(s, groups)
    batch = stage.composer.compose(groups, replay, s.step, experts)
    if replay is not None:
        replay.put(groups, s.step)
    stats: Mapping[str, float] = {}
    apart: Mapping[str, float] = {}
    if batch is None:  # nothing to learn from: weights and sampler stay, the schedule goes on
        s.learner.skip(stage.updates)
    else:
        batch = annotated(s, aged(s, supply.with_tokens(s, batch)), clock)
        apart = before_update(s, batch, clock)
        stats = update(s, batch)
        await publish(s, clock)
    s.remember(groups)
    metrics = step_metrics(groups, batch, stats, curriculum.metrics(), clock.seconds())
    metrics |= apart
    if "engine/mismatch_k3" in metrics:
        metrics["engine/alarm"] = float(bool(s.run.mismatch.alarmed(metrics, coarser(s))))
    return StepResult(metrics={**metrics, **found.metrics, "proof/state": float(s.proved)}, groups=tuple(groups), found=found)


async def attempt(s: Session, tasks: Sequence[Task], draws: Sequence[Draw], clock: Clock) -> list[Group]:
    """Poses each task as the guidance says, round after round, and grades the attempts."""
    guidance, size = s.rl.stage.guidance, s.rl.stage.group_size
    done: list[list[Group]] = [[] for _ in tasks]
    live = list(range(len(tasks)))
    while live:
        posed: list[tuple[int, Context]] = [(i, c) for i in live for c in guidance.next(tasks[i], done[i], f"s{s.step}/{i}")]
        live = sorted({i for i, _ in posed})
        if not posed:
            break
        with clock("generate"), asking("the sampler"):
            rollouts = await s.player.collect([c for _, c in posed], size)
        with clock("score"):
            graded = grade(s.pool, [(tasks[i], c) for i, c in posed], rollouts)
        for (i, _), a in zip(posed, graded, strict=True):
            done[i] += groups_of(a, draws[i])
    return [group for groups in done for group in groups]


def aged(s: Session, batch: Batch) -> Batch:
    """The batch with how old it is, in updates since the weights that sampled it: ``staleness`` per token, and of each attempt
    its oldest token's as ``lag``. Under a `Reinforce.lag` also ``logp_old``, where the plan takes it for the sampler's.

    Columns that the rows bring stay; a batch without ``weight_version`` stays as it is.
    """
    if "weight_version" not in batch.tokens:
        return batch
    age = np.where(batch.token("mask"), s.version - batch.token("weight_version"), 0).astype(np.int32)
    oldest = np.zeros(len(batch.rollout("group")), np.int64)
    np.maximum.at(oldest, np.repeat(batch.rows["rollout"], batch.lengths), age)
    made = [TokenColumn("staleness", age, "train", s.version)]
    if "logp_old" in s.plan.columns and "logp_old" not in s.rl.stage.objective.brings:
        made.append(TokenColumn("logp_old", batch.token("logp_engine"), "engine"))
    return batch.with_rollouts(**{"lag": oldest, **batch.rollouts}).with_tokens(*(c for c in made if c.name not in batch.tokens))


def annotated(s: Session, batch: Batch, clock: Clock) -> Batch:
    """The batch with the columns that the objective asks the learner for before the first update: none, often."""
    wanted = [f for f in s.plan.forwards if f.when == "batch"]
    with clock("forward"), asking("the passes before a step"):
        return s.learner.annotate(batch, *wanted) if wanted else batch


def update(s: Session, batch: Batch) -> Mapping[str, float]:
    """Rewards to advantages, then the optimiser steps; returns their metrics, those of the credit, and what the first pass says
    of the sampler's log-probabilities: it is by the weights that sampled.
    """
    with timed("credit"):
        batch = s.program.credit(batch)
    parts = [batch] if s.rl.stage.updates == 1 else _minibatches(s, batch)
    watched = Watched(s.program, s.version)
    programs = chain([watched], repeat(s.program))
    with asking("the gradient pass"):
        stats = [s.learner.step(part, s.plan, program).metrics for part, program in zip(parts, programs, strict=False)]
    s.learner.skip(s.rl.stage.updates - len(stats))
    return {**s.program.metrics(), **watched.metrics(), **_together(stats)}


def _together(stats: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The numbers of several optimiser steps as one: counts and seconds add up, all else is averaged."""
    names = dict.fromkeys(name for m in stats for name in m)
    values = {name: [m[name] for m in stats if name in m] for name in names}
    return {n: float(sum(v) if n.startswith(("tokens/", "rows/", "time/")) else np.mean(v)) for n, v in values.items()}


async def publish(s: Session, clock: Clock) -> None:
    """Hands the new weights to the engine and proves that they arrived."""
    with clock("publish"), asking("publishing weights"):
        manifest = await s.serve()
    with clock("proof"):
        s.proved = await s.proof.check(manifest, s.engine, s.learner) if s.proof else False


def _minibatches(s: Session, batch: Batch) -> Iterator[Batch]:
    """Whole groups in a seeded order, ``minibatches`` parts an epoch, those left out that have no row."""
    group = batch.per_row("group")
    keys: NDArray[np.int64] = np.unique(group)
    for epoch in range(s.rl.stage.epochs):
        order = generator("minibatch", s.run.seed, f"step-{s.step}", epoch).permutation(keys)
        for part in np.array_split(order, s.rl.stage.minibatches):
            rows = np.flatnonzero(np.isin(group, part))
            if len(rows):
                yield batch.mini(rows)
