"""From rollouts to scored rollouts, for training and evaluation alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, RewardError, a_kind
from assay.core.group import Draw, Group
from assay.core.protocols import Tokenizer
from assay.core.rollout import Ids, Rollout, Stop
from assay.core.score import Score
from assay.core.scoring import JudgePort, RolloutGroup, ScoreContext, Scorer
from assay.core.task import Context, Task
from assay.core.timing import span
from assay.scorers import FromTasks
from assay.verify import ScoringPool
from assay.verify.verdict import check_score, failed_rollout

__all__ = ["Posed", "ScoreGroups", "ScoredRollouts", "VerifierContext", "grade", "groups_of", "no_stage", "verify_rollouts"]

Posed = Sequence[tuple[Task, Context]]
"""Tasks as they were posed."""

ScoreGroups = Callable[[Sequence[RolloutGroup]], Awaitable[Sequence[Sequence[Score]]]]
"""Scores of groups, as a `Scorer` gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRollouts:
    """All rollouts of a task in one context, with their scores in the same order."""

    task: Task
    context: Context
    rollouts: tuple[Rollout, ...]
    scores: tuple[Score, ...]


class VerifierContext:
    """What a scorer may ask for where there is a verifier and no stage: in an evaluation.

    Args:
        pool: the tasks' verifier.
    """

    def __init__(self, pool: ScoringPool) -> None:
        self._pool = pool

    @property
    def step(self) -> int:
        """0: there is no stage."""
        return 0

    @property
    def tokenizer(self) -> Tokenizer:
        """Raises ConfigError: there is no stage."""
        raise no_stage("a tokenizer")

    @property
    def task_floor(self) -> Mapping[str, float]:
        """The floors that the verifier declares."""
        return self._pool.floor()

    async def verify(self, groups: Sequence[RolloutGroup]) -> list[tuple[Score, ...]]:
        """The verifier's verdicts, all in one call of the pool."""
        found = self._pool.score([(g.task, r) for g in groups for r in g.rollouts])
        return [tuple(found[r.id] for r in g.rollouts) for g in groups]

    async def logprob(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        """Raises ConfigError: there is no stage."""
        raise no_stage("log-probabilities")

    def judge(self, name: str) -> JudgePort:
        """Raises ConfigError: there is no stage."""
        raise no_stage("judges")


async def grade(
    scorer: Scorer, ctx: ScoreContext, posed: Posed, rollouts: Sequence[Rollout], score: ScoreGroups | None = None
) -> list[ScoredRollouts]:
    """The rollouts of each context with their scores.

    A rollout that ended in an error is not shown to the scorer: it is an ``infra`` fault, or, where that was because of what the
    policy said, it scores the scorer's floor.

    Args:
        scorer: scores them, all in one call.
        ctx: what it may ask for.
        posed: each task as it was posed; no two contexts share a key.
        rollouts: of these contexts, in any order.
        score: gives the scores in the scorer's place, where some were asked for before.

    Returns:
        One record per element of ``posed``, in its order.

    Raises:
        RewardError: the scorer gave another number of scores than there are rollouts.
    """
    at: dict[str, list[Rollout]] = {context.key: [] for _, context in posed}
    for rollout in rollouts:
        at[rollout.context.key].append(rollout)
    errors = [r for r in rollouts if r.stop is Stop.ERROR]
    groups = [RolloutGroup(task=t, context=c, rollouts=tuple(at[c.key])) for t, c in posed]
    if errors:
        shown = [replace(g, rollouts=tuple([r for r in g.rollouts if r.stop is not Stop.ERROR])) for g in groups]
    else:
        shown = groups
    shown = [g for g in shown if g.rollouts]
    with span("verify"):
        found = _lists(await (score(shown) if score else scorer.score(shown, ctx)), scorer)
    if [len(scores) for scores in found] != [len(g.rollouts) for g in shown]:
        raise RewardError(
            f"{type(scorer).__name__}.score gave {[len(scores) for scores in found]} scores for groups of "
            f"{[len(g.rollouts) for g in shown]} rollouts; give one score per rollout, in order"
        )
    if type(scorer) is not FromTasks:  # the tasks' own verdicts were checked where they were given
        found = [[check_score(score) for score in scores] for scores in found]
    scores = _failed_scores(errors, scorer, ctx)
    for group, of_group in zip(shown, found, strict=True):
        scores.update(zip([r.id for r in group.rollouts], of_group, strict=True))
    return [
        ScoredRollouts(task=g.task, context=g.context, rollouts=g.rollouts, scores=tuple([scores[r.id] for r in g.rollouts]))
        for g in groups
    ]


async def verify_rollouts(pool: ScoringPool, posed: Posed, rollouts: Sequence[Rollout]) -> list[ScoredRollouts]:
    """`grade` by the tasks' own verifier."""
    return await grade(FromTasks(), VerifierContext(pool), posed, rollouts)


def _lists(found: Any, scorer: Scorer) -> Sequence[Sequence[Score]]:
    """What a scorer gave, where that is a list of lists."""
    outer: list[Any] = [*found] if isinstance(found, Sequence) else [found]  # pyright: ignore[reportUnknownArgumentType]
    wrong = [x for x in outer if not isinstance(x, Sequence)]
    if wrong:
        raise RewardError(f"{type(scorer).__name__}.score gave {a_kind(wrong[0])} where a list of scores for each group is due")
    others = [x for scores in outer for x in scores if not isinstance(x, Score)]
    if others:
        kind = "None" if others[0] is None else a_kind(others[0])
        raise RewardError(
            f"{type(scorer).__name__}.score gave {kind} where a Score of a rollout is due; of one that it cannot judge give "
            "assay.core.unanswered_score(EngineError(why))"
        )
    return outer


def _failed_scores(rollouts: Sequence[Rollout], scorer: Scorer, ctx: ScoreContext) -> dict[str, Score]:
    if not rollouts:
        return {}
    floor = scorer.floor(ctx)
    found = {r.id: failed_rollout(r, floor) for r in rollouts}
    return {name: score for name, score in found.items() if score is not None}


def no_stage(what: str) -> ConfigError:
    """The error of a scorer that asks for what is not there."""
    return ConfigError(f"a scorer asked for {what}, which only a stage of reinforcement learning in a run's folder has")


def groups_of(rollouts: ScoredRollouts, draw: Draw) -> list[Group]:
    """The groups that share a baseline: one, or one for each role of an environment that several play."""
    key = rollouts.context.group
    if rollouts.rollouts and all(r.context.group == key for r in rollouts.rollouts):
        return [Group(key=key, task=rollouts.task, draw=draw, rollouts=rollouts.rollouts, scores=rollouts.scores)]
    sharing: dict[str, list[tuple[Rollout, Score]]] = {}
    for rollout, score in zip(rollouts.rollouts, rollouts.scores, strict=True):
        sharing.setdefault(rollout.context.group, []).append((rollout, score))
    return [
        Group(key=key, task=rollouts.task, draw=draw, rollouts=tuple(r for r, _ in pairs), scores=tuple(s for _, s in pairs))
        for key, pairs in sharing.items()
    ]
