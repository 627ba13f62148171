"""One step of reinforcement learning, to be read first: the walk from a choice of tasks to a report.

``choose → pose → roll out → score → filter → compose → credit → loss, update → publish, prove → observe → report``
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.sample import STREAMS
from assay.core.seeds import generator
from assay.core.timing import StepTimer, span
from assay.guide import replays_apart
from assay.train.collect import collect_groups
from assay.train.complete_columns import complete_batch, complete_groups, complete_update
from assay.train.experts import expert_groups
from assay.train.group_outcomes import outcomes_of
from assay.train.independent_check import IndependentVerdicts
from assay.train.metrics import step_metrics
from assay.train.row_replay import join_replayed
from assay.train.runner import StepResult
from assay.train.source_batch import join_sources
from assay.train.source_metrics import SourceObserver, has_others, of_trust, source_counts, source_metrics, with_entropy

if TYPE_CHECKING:
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = ["StepResult", "step", "update", "with_staleness"]


async def step(s: ReinforceRunner) -> StepResult:
    """Advances a stage by one rollout batch."""
    p, stage, replay = s.parts, s.stage, s.replay
    with StepTimer() as timer:
        with p.record_states():
            taken = await collect_groups(s)
        found = IndependentVerdicts()
        if p.checker:
            with span("check"):
                found = p.checker.look(taken.graded)
        with span("columns"):
            groups, experts = await complete_groups(s, taken.kept), await expert_groups(s, taken.kept)
        batch = stage.composer.compose(groups, replay, p.step, experts)
        if stage.sources:
            with span("columns"):
                batch = await join_sources(s, batch, groups)
        if replay is not None:
            batch = join_replayed(s, batch, groups)
            replay.put(groups, p.step)
        stats: Mapping[str, float] = {}
        apart: Mapping[str, float] = {}
        if batch is None:  # nothing to learn from: weights and sampler stay, the schedule goes on
            p.learner.skip(stage.updates)
        else:
            batch = p.annotate(with_staleness(s, complete_batch(s, batch)))
            apart = p.agreement.before_update(batch, p.learner, p.step + 1, first=p.stage_step == 0)
            with span("credit"):
                batch = p.program.credit(batch)
            stats = update(s, batch)
            await p.publish()
        outcomes = outcomes_of(taken.graded, batch)
        s.observe(outcomes)
        graded = taken.graded_with(groups)
        p.remember(graded)
        metrics = step_metrics(graded, batch, stats, s.metrics(), timer.seconds())
        metrics = p.agreement.add_alarm(metrics | {**taken.metrics, **apart})
        metrics |= source_counts(batch) if batch is not None and (s.brings_rows or has_others(batch)) else {}
        metrics |= {**found.metrics, "proof/state": float(p.proved)}
        return StepResult(metrics=metrics, groups=tuple(graded), found=found, outcomes=tuple(outcomes))


def with_staleness(s: ReinforceRunner, batch: Batch) -> Batch:
    """The batch with how old it is, in updates since the weights that sampled it: ``staleness`` per token, and of each rollout
    its oldest token's as ``lag``. Under a `Reinforce.lag` also ``logp_old``, where the plan takes it for the sampler's.

    Columns that the rows bring stay; a batch without ``weight_version`` stays as it is.
    """
    version = s.parts.version
    if "weight_version" not in batch.tokens:
        return batch
    age = np.where(batch.token("mask"), version - batch.token("weight_version"), 0).astype(np.int32)
    oldest = np.zeros(len(batch.rollout("group")), np.int64)
    np.maximum.at(oldest, np.repeat(batch.rows["rollout"], batch.lengths), age)
    made = [TokenColumn("staleness", age, "train", version)]
    if "logp_old" in s.parts.plan.columns and "logp_old" not in s.stage.objective.brings:
        made.append(TokenColumn("logp_old", batch.token("logp_engine"), "engine"))
    return batch.with_rollouts(**{"lag": oldest, **batch.rollouts}).with_tokens(*(c for c in made if c.name not in batch.tokens))


def update(s: ReinforceRunner, batch: Batch) -> Mapping[str, float]:
    """The optimiser steps of a batch after credit; returns their metrics, those of the credit, and what the first pass says of
    the engine's log-probabilities: it is by the weights that sampled.
    """
    p = s.parts
    minibatches = [batch] if s.stage.updates == 1 else _minibatches(s, batch)
    first = p.agreement.observer(p.version)
    watched = has_others(batch)
    watches = [SourceObserver(None if i else first) for i in range(s.stage.updates)] if watched else []
    plan = with_entropy(p.plan) if watched else p.plan
    observers = watches or chain([first], repeat(None))
    with span("update"):
        stats = [
            p.learner.step(complete_update(s, rows, i), plan, p.program, observer)
            for i, (rows, observer) in enumerate(zip(minibatches, observers, strict=False))
        ]
    p.learner.skip(s.stage.updates - len(stats))
    p.untrained = stats[-1].untrained
    together = of_trust(_together([x.metrics for x in stats]))
    return {**p.program.metrics(), **first.metrics(), **together, **source_metrics(watches)}


def _together(stats: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The numbers of several optimiser steps as one: counts and seconds add up, all else is averaged."""
    names = dict.fromkeys(name for m in stats for name in m)
    values = {name: [m[name] for m in stats if name in m] for name in names}
    return {n: float(sum(v) if n.startswith(("tokens/", "rows/", "time/")) else np.mean(v)) for n, v in values.items()}


def _minibatches(s: ReinforceRunner, batch: Batch) -> Iterator[Batch]:
    """Whole groups in a seeded order, ``minibatches`` parts an epoch, those left out that have no row; behind them what was put
    off, where it has an update of its own.
    """
    late = (batch.rows["stream"] == STREAMS.index("replay")) & replays_apart(s.stage.composer)
    group = np.where(late, -1, batch.per_row("group"))
    keys: NDArray[np.int64] = np.unique(group[~late])
    for epoch in range(s.stage.epochs):
        order = generator("minibatch", s.parts.run.seed, f"step-{s.parts.step}", epoch).permutation(keys)
        for part in np.array_split(order, s.stage.minibatches):
            rows = np.flatnonzero(np.isin(group, part))
            if len(rows):
                yield batch.mini(rows)
    if late.any():
        yield batch.mini(np.flatnonzero(late))
