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
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import DataError
from assay.core.group import Group
from assay.core.rollout import Ids
from assay.core.score import SpanScore
from assay.core.task import Context, Task
from assay.objective.objective import Objective

if TYPE_CHECKING:
    from assay.train.grade import ScoredRollouts

__all__ = [
    "MOMENTS",
    "BatchColumn",
    "ColumnProvider",
    "GroupColumn",
    "Live",
    "Moment",
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
    >>> from assay.testing import graded_group
    >>> group = graded_group(SortDigits().task("sort", 3, "train", 0), [1.0, 0.0])
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
