"""Columns completed at their three moments: groups, the batch, each update; by the providers that the plan needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.group import Group
from assay.core.plan import Plan
from assay.core.rollout import Ids
from assay.core.score import ROLLOUT_COLUMNS
from assay.core.task import Context, Task
from assay.objective.objective import Objective
from assay.train.columns import MOMENTS, ColumnProvider, Live, Moment
from assay.train.evaluate import greedy as most_likely
from assay.train.providers import AUTOMATIC
from assay.train.scoring import grade_rollouts

if TYPE_CHECKING:
    from assay.train.grade import ScoredRollouts
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = ["check_providers", "complete_batch", "complete_groups", "complete_update"]


@dataclass(frozen=True, slots=True)
class _LiveStage:
    """`Live` of a stage at work."""

    runner: ReinforceRunner
    update: int = 0

    @property
    def objective(self) -> Objective:
        return self.runner.stage.objective

    @property
    def seed(self) -> int:
        return self.runner.parts.run.seed

    @property
    def step(self) -> int:
        return self.runner.parts.step

    async def play(self, posed: Sequence[tuple[Task, Context]], n: int = 1, *, greedy: bool = False) -> list[ScoredRollouts]:

        run = self.runner.parts.run
        player = self.runner.parts.player(most_likely(run.sampling) if greedy else run.sampling)
        return await grade_rollouts(self.runner, posed, await player.collect([context for _, context in posed], n))

    def logprobs(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        return self.runner.parts.learner.score(rows, model)


async def complete_groups(s: ReinforceRunner, groups: list[Group]) -> list[Group]:
    """The groups with what the objective reads of rollouts and a provider gives; what the verifier gave all of them stays."""
    for provider in _providers_of(s, "group"):
        if not all(_has(x, provider.name) for g in groups for x in g.scores if x.valid):
            given: Any = provider.provide(_LiveStage(s), groups)  # pyright: ignore[reportArgumentType]
            found: Sequence[Group] = await given if isawaitable(given) else given
            groups = _check_provided(provider, groups, list(found))
    return groups


def complete_batch(s: ReinforceRunner, batch: Batch) -> Batch:
    """The batch with what the objective reads of it and a provider gives."""
    for provider in _providers_of(s, "batch"):
        if provider.name not in batch.tokens and provider.name not in batch.rollouts:
            batch = _provide_columns(provider, _LiveStage(s), batch)
    return batch


def complete_update(s: ReinforceRunner, batch: Batch, update: int) -> Batch:
    """The rows of one optimiser step with what is to be known anew at each; ``update`` counts the steps of the rollout batch."""
    for provider in _providers_of(s, "update"):
        batch = _provide_columns(provider, _LiveStage(s, update), batch)
    return batch


def _providers_of(s: ReinforceRunner, moment: Moment) -> list[ColumnProvider]:
    """The providers of a moment: those of the stage's own first, then automatic ones, of columns that the objective reads."""
    own = s.stage.columns
    read = (*s.parts.plan.rollout_columns, *s.parts.plan.columns)
    known = {**AUTOMATIC, **{p.name: p for p in own}}
    return [known[name] for name in dict.fromkeys(read) if name in known and known[name].moment == moment]


def _has(score: Any, name: str) -> bool:
    return name in score.columns or any(s.name == name for s in score.spans)


def _check_provided(provider: ColumnProvider, before: Sequence[Group], after: list[Group]) -> list[Group]:
    if [(g.key, len(g.rollouts)) for g in after] != [(g.key, len(g.rollouts)) for g in before]:
        raise DataError(f"{provider}: it gave other groups than it got; give each one back, in their order, with the column")
    for group in after:
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            tokens = any(len(c.completion.ids) for c in rollout.calls)
            if score.valid and tokens and not _has(score, provider.name):
                raise DataError(
                    f"{provider}: rollout {rollout.id} has no column {provider.name!r} behind it; give every valid one a number "
                    "(assay.train.columns.with_values)"
                )
    return after


def _provide_columns(provider: ColumnProvider, live: Live, batch: Batch) -> Batch:
    given: Any = provider.provide(live, batch)  # pyright: ignore[reportArgumentType]
    if not isinstance(given, Batch) or (provider.name not in given.tokens and provider.name not in given.rollouts):
        raise DataError(f"{provider}: its batch has no column {provider.name!r}; give it back with_tokens or with_rollouts")
    return given


def check_providers(providers: Sequence[ColumnProvider], plan: Plan) -> None:
    """Looks at the providers of a stage.

    Raises:
        ConfigError: two of one name, a name that every rollout has, or a column that the objective does not read; says which it
            reads.
        UnknownNameError: another moment.
    """
    read = {*plan.rollout_columns, *plan.columns}
    names = [p.name for p in providers]
    for p in providers:
        if p.moment not in MOMENTS:
            raise UnknownNameError(f"moment of {p}", p.moment, MOMENTS)
        if p.name in ROLLOUT_COLUMNS:
            raise ConfigError(f"Reinforce.columns: {p}: every rollout has {p.name!r} of its own; call the column something else")
        if names.count(p.name) > 1:
            raise ConfigError(f"Reinforce.columns: {names.count(p.name)} providers of {p.name!r}; give one")
        if p.name not in read:
            raise ConfigError(
                f"Reinforce.columns: nothing in the objective reads {p.name!r} (it reads {', '.join(sorted(read)) or 'none'}): "
                f"leave {p} out; of a token column of yours say Objective(brings=({p.name!r},)) too"
            )
