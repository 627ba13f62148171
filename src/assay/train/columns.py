"""Columns that an objective reads beside tokens and rewards, and who provides each: one registry for three moments of a step.

A provider is a frozen dataclass with a ``name`` (of the column), a ``moment`` and ``provide``. Moments, in the order of a step:

- ``group``: the rollouts of the step are graded; nothing is composed yet. Gets groups, gives groups.
- ``batch``: the optimiser batch is composed; nothing was learned from it yet. Gets the batch, gives the batch.
- ``update``: before each optimiser step, with the rows of that step. Gets this batch, gives it.

A stage names providers in `Reinforce.columns`; where it names none for a column, one of `AUTOMATIC` is taken. What a verifier
gives all its valid rollouts (`assay.core.Score.columns`, ``spans``) is never computed anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.group import Group
from assay.core.plan import Plan
from assay.core.rollout import Ids
from assay.core.score import ROLLOUT_COLUMNS, SpanScore
from assay.core.task import Context, Task
from assay.objective.objective import Objective

if TYPE_CHECKING:
    from assay.train.grade import ScoredRollouts
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = [
    "MOMENTS",
    "BatchColumn",
    "ColumnProvider",
    "GroupColumn",
    "Live",
    "Moment",
    "check_providers",
    "complete_batch",
    "complete_groups",
    "complete_update",
    "with_steps",
    "with_values",
]

Moment = Literal["group", "batch", "update"]
MOMENTS = ("group", "batch", "update")


class Live(Protocol):
    """What a provider may ask of the run.

    Attributes:
        objective: that the stage trains by.
        seed: of the run.
        step: global step, the number of steps finished.
        update: optimiser steps taken from this rollout batch so far: 0 but at the moment ``update``.
    """

    @property
    def objective(self) -> Objective: ...

    @property
    def seed(self) -> int: ...

    @property
    def step(self) -> int: ...

    @property
    def update(self) -> int: ...

    async def play(self, posed: Sequence[tuple[Task, Context]], n: int = 1, *, greedy: bool = False) -> list[ScoredRollouts]:
        """``n`` graded rollouts of the policy in each context, in the order given; ``greedy``: of the most likely tokens."""
        ...

    def logprobs(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        """``[len(row)]`` log-probabilities of each row's tokens by the policy, or by an anchor such as ``ref``."""
        ...


class GroupColumn(Protocol):
    """Provides a column of the rollouts, or of their steps, once they are graded: at the moment ``group``."""

    moment: ClassVar[Moment]

    @property
    def name(self) -> str:
        """Of the column."""
        ...

    def provide(self, live: Live, rows: Sequence[Group]) -> Sequence[Group] | Awaitable[Sequence[Group]]:
        """The groups with the column; `with_values` and `with_steps` put it there."""
        ...


class BatchColumn(Protocol):
    """Provides a column of the tokens, or of the rollouts, of an optimiser batch: at the moment ``batch`` or ``update``."""

    moment: ClassVar[Moment]

    @property
    def name(self) -> str:
        """Of the column."""
        ...

    def provide(self, live: Live, rows: Batch) -> Batch:
        """The batch with the column (`Batch.with_tokens`, `Batch.with_rollouts`)."""
        ...


ColumnProvider = GroupColumn | BatchColumn


def with_values(group: Group, name: str, values: Sequence[float] | NDArray[Any]) -> Group:
    """The group with a number for each of its rollouts in their column ``name``.

    >>> from assay_tasks import SortDigits
    >>> from assay.testing import graded
    >>> group = graded(SortDigits().task("sort", 3, "train", 0), [1.0, 0.0])
    >>> [x.columns["hardness"] for x in with_values(group, "hardness", [0.5, 0.25]).scores]
    [0.5, 0.25]
    """
    pairs = zip(group.scores, values, strict=True)
    return replace(group, scores=tuple(replace(x, columns={**x.columns, name: float(v)}) for x, v in pairs))


def with_steps(group: Group, name: str, values: Sequence[Sequence[float] | NDArray[Any]]) -> Group:
    """The group with a number for each sampled token of each rollout, call after call, in the token column ``name``.

    Each token is a step of its own then (`assay.core.spans`): its number in ``segment`` is its alone.

    Raises:
        DataError: a rollout has another number of sampled tokens than values.
    """
    scores = tuple(
        replace(x, spans=(*x.spans, *_spans(r.id, name, [len(c.completion.ids) for c in r.calls], list(v))))
        for r, x, v in zip(group.rollouts, group.scores, values, strict=True)
    )
    return replace(group, scores=scores)


def _spans(rollout: str, name: str, lengths: Sequence[int], values: Sequence[float]) -> list[SpanScore]:
    if len(values) != sum(lengths):
        raise DataError(f"rollout {rollout}: {len(values)} values of {name!r} for {sum(lengths)} sampled tokens; give one each")
    places = [(call, at) for call, n in enumerate(lengths) for at in range(n)]
    return [SpanScore(call, at, at + 1, name, float(v)) for (call, at), v in zip(places, values, strict=True)]


# ---- at work ----------------------------------------------------------------------------------------------------------


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
        from assay.train.evaluate import greedy as most_likely
        from assay.train.scoring import grade_rollouts

        run = self.runner.parts.run
        player = self.runner.parts.player(most_likely(run.sampling) if greedy else run.sampling)
        return await grade_rollouts(self.runner, posed, await player.collect([context for _, context in posed], n))

    def logprobs(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        return self.runner.parts.learner.score(rows, model)


async def complete_groups(s: ReinforceRunner, groups: list[Group]) -> list[Group]:
    """The groups with what the objective reads of rollouts and a provider gives; what the verifier gave all of them stays."""
    for provider in _wanted(s, "group"):
        if not all(_has(x, provider.name) for g in groups for x in g.scores if x.valid):
            given: Any = provider.provide(_LiveStage(s), groups)  # pyright: ignore[reportArgumentType]
            found: Sequence[Group] = await given if isawaitable(given) else given
            groups = _checked(provider, groups, list(found))
    return groups


def complete_batch(s: ReinforceRunner, batch: Batch) -> Batch:
    """The batch with what the objective reads of it and a provider gives."""
    for provider in _wanted(s, "batch"):
        if provider.name not in batch.tokens and provider.name not in batch.rollouts:
            batch = _provided(provider, _LiveStage(s), batch)
    return batch


def complete_update(s: ReinforceRunner, batch: Batch, update: int) -> Batch:
    """The rows of one optimiser step with what is to be known anew at each; ``update`` counts the steps of the rollout batch."""
    for provider in _wanted(s, "update"):
        batch = _provided(provider, _LiveStage(s, update), batch)
    return batch


def _wanted(s: ReinforceRunner, moment: Moment) -> list[ColumnProvider]:
    """The providers of a moment: those of the stage's own first, then automatic ones, of columns that the objective reads."""
    from assay.train.providers import AUTOMATIC

    own = s.stage.columns
    read = (*s.parts.plan.attempts, *s.parts.plan.columns)
    known = {**AUTOMATIC, **{p.name: p for p in own}}
    return [known[name] for name in dict.fromkeys(read) if name in known and known[name].moment == moment]


def _has(score: Any, name: str) -> bool:
    return name in score.columns or any(s.name == name for s in score.spans)


def _checked(provider: ColumnProvider, before: Sequence[Group], after: list[Group]) -> list[Group]:
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


def _provided(provider: ColumnProvider, live: Live, batch: Batch) -> Batch:
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
    read = {*plan.attempts, *plan.columns}
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
