"""Graded groups written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from assay.core.group import Draw, Group, Outcome
from assay.core.score import Score
from assay.core.task import Task
from assay.verify.rollouts import rollout_of

__all__ = ["as_outcomes", "graded_group"]


def graded_group(
    task: Task, verdicts: Sequence[float | Score], *, key: str = "g0", texts: Mapping[int, str] | None = None
) -> Group:
    """A group with one rollout per verdict; a number stands for the component ``correct``.

    Args:
        task: the problem.
        verdicts: in order.
        key: of the group.
        texts: what single rollouts said, by position; ``"ab"`` by default.

    >>> from assay.core import FrozenMap, Task
    >>> task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "1+1="}))
    >>> graded_group(task, [0.0, 1.0]).success
    0.5
    """
    said = texts or {}
    rollouts = tuple(rollout_of(task, said.get(i, "ab"), id=f"{key}/{i}", group=key) for i in range(len(verdicts)))
    scores = tuple(v if isinstance(v, Score) else Score(components={"correct": v}) for v in verdicts)
    return Group(key=key, task=task, draw=Draw(task.arm, task.level, 1.0), rollouts=rollouts, scores=scores)


def as_outcomes(groups: Sequence[Group]) -> list[Outcome]:
    """Graded groups as curricula observe them: learned from, with the advantage ``value - mean`` where a rollout is valid.

    >>> from assay.core import FrozenMap, Task
    >>> task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "1+1="}))
    >>> as_outcomes([graded_group(task, [0.0, 1.0])])[0].advantages.tolist()
    [-0.5, 0.5]
    """
    out: list[Outcome] = []
    for group in groups:
        values = np.array([score.primary if score.valid else np.nan for score in group.scores], np.float64)
        known = np.isfinite(values)
        advantages = values - values[known].mean() if known.any() else None
        out.append(Outcome(group=group, advantages=advantages, kept=bool(known.any())))
    return out
