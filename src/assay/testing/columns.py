"""The contract of a provider of columns: every row gets a finite number, and nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch, pack
from assay.core.canon import FrozenMap
from assay.core.columns import TokenColumn
from assay.core.errors import AssayError
from assay.core.group import Group
from assay.core.rollout import Ids
from assay.core.score import ROLLOUT_COLUMNS, Fault, Score
from assay.core.seeds import generator
from assay.core.task import Context, Task
from assay.objective.methods import grpo
from assay.objective.objective import Objective
from assay.testing.contracts import ContractError, Report, require, wait_for
from assay.testing.records import graded_group

if TYPE_CHECKING:
    from assay.train.columns import ColumnProvider
    from assay.train.grade import ScoredRollouts

__all__ = ["check_column_provider"]

_GIVEN = ("staleness",)
"""Token columns that a batch has before providers of a batch are asked."""


def check_column_provider(
    provider: ColumnProvider, *, objective: Objective | None = None, groups: Sequence[Group] | None = None
) -> Report:
    """Has a provider complete rows of all kinds, and holds it to what objectives and resumes rely on.

    - Its name is not that of a column which every rollout has, and its moment is one of the three.
    - Of ``group``: each group comes back, in its place, with its rollouts; each valid rollout with sampled tokens has the column,
      by a finite number, or by one for each of its sampled tokens; no verdict of the tasks is another than before, unless the
      whole group gets a fault. A single group gets the same as among others.
    - Of ``batch`` and ``update``: the batch comes back with the column, as long as its tokens or its rollouts and finite; rows,
      masks, counts and other columns are as before.
    - Asked twice, it says the same: what it draws is drawn by ``live.seed`` and ``live.step``.

    Args:
        provider: of a column.
        objective: that the stage trains by; `assay.objective.methods.grpo` when None.
        groups: graded groups to complete; when None some that are right, wrong, mixed and without verdict, of three levels.

    Raises:
        ContractError: it does not hold; says what, and of which rollout.

    >>> from assay.train import FailureRate
    >>> print(*check_column_provider(FailureRate()).passed, sep=", ")
    named, every rollout, nothing else, group by group, pure
    """
    subject = f"column provider {type(provider).__name__}"
    require(provider.name not in ROLLOUT_COLUMNS, subject, f"every rollout has {provider.name!r} of its own; use another name")
    require(bool(provider.name), subject, "its column has no name")
    moment: str = provider.moment
    require(moment in ("group", "batch", "update"), subject, f"moment {moment!r} is none of group, batch, update")
    given = list(groups) if groups is not None else _groups()
    live = _ScriptedLive(objective or grpo())
    if moment == "group":
        return _check_groups(subject, provider, live, given)
    return _check_batch(subject, provider, replace(live, update=1 if moment == "update" else 0), given)


# ---- of groups ----------------------------------------------------------------------------------------------------------


def _check_groups(subject: str, provider: ColumnProvider, live: _ScriptedLive, groups: list[Group]) -> Report:
    found = _complete_groups(subject, provider, live, groups)
    shape = [(g.key, [r.id for r in g.rollouts]) for g in found]
    require(
        shape == [(g.key, [r.id for r in g.rollouts]) for g in groups], subject, "gave other groups, or rollouts, than it got"
    )
    for before, after in zip(groups, found, strict=True):
        if before.scores != after.scores and not any(score.valid for score in after.scores):  # a fault for all
            continue
        for rollout, old, new in zip(before.rollouts, before.scores, after.scores, strict=True):
            same = dict(old.components) == dict(new.components) and old.fault == new.fault
            require(same, subject, f"changed the verdict of rollout {rollout.id}; it may add a column alone")
            kept = all(new.columns.get(name) == value for name, value in old.columns.items())
            require(kept and new.spans[: len(old.spans)] == old.spans, subject, f"changed other columns of {rollout.id}")
            sampled = sum(len(c.completion.ids) for c in rollout.calls)
            values = _values(provider.name, new)
            if new.valid and sampled:
                require(bool(values), subject, f"rollout {rollout.id} has no number in {provider.name!r}")
    for group, whole in zip(groups, found, strict=True):
        (alone,) = _complete_groups(subject, provider, live, [group])
        same = [_values(provider.name, s) for s in alone.scores] == [_values(provider.name, s) for s in whole.scores]
        require(same, subject, f"gives group {group.key!r} other numbers alone than among others")
    again = _complete_groups(subject, provider, live, groups)
    require(repr([g.scores for g in again]) == repr([g.scores for g in found]), subject, "asked twice, it says two things")
    passed = ("named", "every rollout", "nothing else", "group by group", "pure")
    return Report(subject=subject, passed=passed, numbers={"groups": float(len(groups))})


def _complete_groups(subject: str, provider: ColumnProvider, live: _ScriptedLive, groups: list[Group]) -> list[Group]:
    try:
        given: Any = provider.provide(live, groups)  # pyright: ignore[reportArgumentType]
        given = wait_for(_result(given)) if isawaitable(given) else given
    except AssayError as error:
        raise ContractError(f"{subject}: failed on {len(groups)} groups: {error}") from error
    found = list(given)
    require(all(isinstance(g, Group) for g in found), subject, f"gave {found[:1]}; give the groups back with the column")
    return found


async def _result(given: Any) -> Any:
    return await given


def _values(name: str, score: Score) -> list[float]:
    """The numbers of a score in a column: of the rollout, or of its steps."""
    own = [float(score.columns[name])] if name in score.columns else []
    return own + [float(s.value) for s in score.spans if s.name == name]


# ---- of batches ---------------------------------------------------------------------------------------------------------


def _check_batch(subject: str, provider: ColumnProvider, live: _ScriptedLive, groups: list[Group]) -> Report:
    batch = pack(groups)
    batch = batch.with_tokens(*(TokenColumn(n, np.ones(int(batch.offsets[-1]), np.int32), "testing") for n in _GIVEN))
    found, again = _extend_batch(subject, provider, live, batch), _extend_batch(subject, provider, live, batch)
    for kind in ("tokens", "rows", "rollouts"):
        before, after = getattr(batch, kind), getattr(found, kind)
        for name in before:
            same = name == provider.name or (name in after and _equal(_array(before[name]), _array(after[name])))
            require(same, subject, f"changed the column {name!r} of {kind}, which is not its own")
    same = found.counts == batch.counts and found.drawn == batch.drawn and _equal(found.offsets, batch.offsets)
    require(same, subject, "changed the rows or the counts of the batch; it may add a column alone")
    ours, theirs = _column(provider.name, found), _column(provider.name, again)
    require(bool(np.isfinite(ours.astype(np.float64)).all()), subject, f"has numbers in {provider.name!r} that are not finite")
    require(_equal(ours, theirs), subject, "asked twice, it says two things")
    return Report(subject=subject, passed=("named", "every row", "nothing else", "pure"), numbers={"tokens": float(len(ours))})


def _extend_batch(subject: str, provider: ColumnProvider, live: _ScriptedLive, batch: Batch) -> Batch:
    try:
        found: Any = provider.provide(live, batch)  # pyright: ignore[reportArgumentType]
    except AssayError as error:
        raise ContractError(f"{subject}: failed on a batch of {len(batch)} rows: {error}") from error
    has = isinstance(found, Batch) and (provider.name in found.tokens or provider.name in found.rollouts)
    require(has, subject, f"its batch has no column {provider.name!r}; give it back with_tokens or with_rollouts")
    return found


def _column(name: str, batch: Batch) -> NDArray[Any]:
    return batch.tokens[name].values if name in batch.tokens else batch.rollouts[name]


def _array(column: Any) -> NDArray[Any]:
    return column.values if isinstance(column, TokenColumn) else column


def _equal(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


# ---- what is completed ----------------------------------------------------------------------------------------------------


def _groups() -> list[Group]:
    """Right, wrong, mixed, and with rollouts of which nobody could tell, of three levels."""
    lost = Score(components={}, fault=Fault.INFRA)
    kinds: list[list[float | Score]] = [[1.0] * 4, [0.0] * 4, [1.0, 0.0, 0.0, 1.0], [1.0, lost, 0.0, lost], [lost] * 4]
    return [
        graded_group(_task(level, k), scores, key=f"g{level}/{k}", texts={0: "31", 1: "12", 2: "1"})
        for level in (1, 2, 3)
        for k, scores in enumerate(kinds)
    ]


def _task(level: int, index: int) -> Task:
    public, private = FrozenMap({"prompt": f"{level}+{index}"}), FrozenMap({"answer": "12", "solution": "12"})
    return Task(
        id=f"t{level}/{index}", domain="testing", arm="a", level=level, split="train", index=index, public=public, private=private
    )


@dataclass(frozen=True, slots=True)
class _ScriptedLive:
    """`assay.train.columns.Live` of a run that does not take place: answers and log-probabilities by seed alone."""

    objective: Objective
    seed: int = 0
    step: int = 3
    update: int = 0

    async def play(self, posed: Sequence[tuple[Task, Context]], n: int = 1, *, greedy: bool = False) -> list[ScoredRollouts]:
        from assay.train.grade import ScoredRollouts

        out: list[ScoredRollouts] = []
        for task, context in posed:
            right = generator("testing/columns", self.seed, context.key).random(n) < 0.5
            made = graded_group(task, [float(x) for x in right], key=context.key)
            out.append(ScoredRollouts(task=task, context=context, rollouts=made.rollouts, scores=made.scores))
        return out

    def logprobs(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        """Of each token by its id and the model, 0 first."""
        found = [(-0.1 - (np.asarray(row) % (3 + len(model))) / 7.0).astype(np.float32) for row in rows]
        for row in found:
            row[:1] = 0.0
        return found
