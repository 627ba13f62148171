"""Graded groups written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.core.group import Draw, Group
from assay.core.score import Score
from assay.core.task import Task
from assay.verify.attempts import attempt

__all__ = ["graded"]


def graded(task: Task, verdicts: Sequence[float | Score], *, key: str = "g0", texts: Mapping[int, str] | None = None) -> Group:
    """A group with one attempt per verdict; a number stands for the component ``correct``.

    Args:
        task: the problem.
        verdicts: in order.
        key: of the group.
        texts: what single attempts said, by position; ``"ab"`` by default.

    >>> from assay.core import FrozenMap, Task
    >>> task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "1+1="}))
    >>> graded(task, [0.0, 1.0]).success
    0.5
    """
    said = texts or {}
    rollouts = tuple(attempt(task, said.get(i, "ab"), id=f"{key}/{i}", group=key) for i in range(len(verdicts)))
    scores = tuple(v if isinstance(v, Score) else Score(components={"correct": v}) for v in verdicts)
    return Group(key=key, task=task, draw=Draw(task.arm, task.level, 1.0), rollouts=rollouts, scores=scores)
