"""From attempts to graded attempts, for training and evaluation alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.core.group import Draw, Group
from assay.core.parts import timed
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Context, Task
from assay.verify import ScoringPool

__all__ = ["Attempts", "grade", "groups_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """All attempts at a task in one context, with their scores in the same order."""

    task: Task
    context: Context
    rollouts: tuple[Rollout, ...]
    scores: tuple[Score, ...]


def grade(pool: ScoringPool, posed: Sequence[tuple[Task, Context]], rollouts: Sequence[Rollout]) -> list[Attempts]:
    """The attempts at each context with their scores.

    Args:
        pool: scores them, all in one call.
        posed: each task as it was posed; no two contexts share a key.
        rollouts: attempts at these contexts, in any order.

    Returns:
        One record per element of ``posed``, in its order.
    """
    at: dict[str, list[Rollout]] = {context.key: [] for _, context in posed}
    for rollout in rollouts:
        at[rollout.context.key].append(rollout)
    with timed("verify"):
        scores = pool.score([(task, r) for task, context in posed for r in at[context.key]])
    return [
        Attempts(task=t, context=c, rollouts=tuple(at[c.key]), scores=tuple(scores[r.id] for r in at[c.key])) for t, c in posed
    ]


def groups_of(attempts: Attempts, draw: Draw) -> list[Group]:
    """The groups that share a baseline: one, or one for each role of an environment that several play."""
    pairs = list(zip(attempts.rollouts, attempts.scores, strict=True))
    return [
        Group(
            key=key, task=attempts.task, draw=draw, rollouts=tuple(r for r, _ in pairs if r.context.group == key),
            scores=tuple(s for r, s in pairs if r.context.group == key),
        )
        for key in dict.fromkeys(r.context.group for r in attempts.rollouts)
    ]  # fmt: skip
