"""One step of reinforcement learning, to be read first: the walk from a choice of tasks to a report.

``choose → pose → roll out → score → filter → compose → credit → loss, update → publish, prove → observe → report``
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.group import Group
from assay.core.seeds import generator
from assay.core.util.profiler import timed
from assay.train.check import Checked
from assay.train.clock import Clock
from assay.train.collect import collect, outcomes_of
from assay.train.columns import complete_batch, complete_groups, complete_update
from assay.train.experts import expert_groups
from assay.train.metrics import step_metrics
from assay.train.mismatch import Watched, before_update, coarser, without_mismatch
from assay.train.room import asking
from assay.train.session import Session

__all__ = ["StepResult", "aged", "annotated", "publish", "step", "update"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step leaves for the journal: named numbers, the graded groups, and what a second judge found in them."""

    metrics: Mapping[str, float]
    groups: tuple[Group, ...] = field(default=(), repr=False)
    found: Checked = field(default_factory=Checked, repr=False)


async def step(s: Session) -> StepResult:
    """Advances a session by one rollout batch."""
    clock = Clock()
    stage, replay = s.rl.stage, s.rl.replay
    with s.recorded():
        taken = await collect(s, clock)
    found = Checked()
    if s.checker:
        with clock("check"):
            found = s.checker.look(taken.graded)
    with clock("supply"):
        groups, experts = await complete_groups(s, taken.kept), await expert_groups(s, taken.kept)
    batch = stage.composer.compose(groups, replay, s.step, experts)
    if replay is not None:
        replay.put(groups, s.step)
    stats: Mapping[str, float] = {}
    apart: Mapping[str, float] = {}
    if batch is None:  # nothing to learn from: weights and sampler stay, the schedule goes on
        s.learner.skip(stage.updates)
    else:
        batch = annotated(s, aged(s, complete_batch(s, batch)), clock)
        apart = before_update(s, batch, clock)
        with timed("credit"):
            batch = s.program.credit(batch)
        stats = update(s, batch)
        await publish(s, clock)
    s.rl.observe(outcomes_of(taken.graded, batch))
    graded = taken.graded_with(groups)
    s.remember(graded)
    metrics = step_metrics(graded, batch, stats, s.rl.metrics(), clock.seconds())
    metrics = without_mismatch(s, metrics | {**taken.metrics, **apart})
    if "engine/mismatch_k3" in metrics:
        metrics["engine/alarm"] = float(bool(s.run.mismatch.alarmed(metrics, coarser(s))))
    metrics |= {**found.metrics, "proof/state": float(s.proved)}
    return StepResult(metrics=metrics, groups=tuple(graded), found=found)


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
    """The optimiser steps of a batch after credit; returns their metrics, those of the credit, and what the first pass says of
    the sampler's log-probabilities: it is by the weights that sampled.
    """
    parts = [batch] if s.rl.stage.updates == 1 else _minibatches(s, batch)
    watched = Watched(s.program, s.version)
    programs = chain([watched], repeat(s.program))
    with asking("the gradient pass"):
        stats = [
            s.learner.step(complete_update(s, part, i), s.plan, program)
            for i, (part, program) in enumerate(zip(parts, programs, strict=False))
        ]
    s.learner.skip(s.rl.stage.updates - len(stats))
    s.untrained = stats[-1].untrained
    return {**s.program.metrics(), **watched.metrics(), **_together([x.metrics for x in stats])}


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
