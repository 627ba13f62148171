"""Attempts and graded groups written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from assay.core.group import Draw, Group
from assay.core.rollout import Call, Completion, Rollout, Sampling, Span, Stop, ids_of
from assay.core.score import Score
from assay.core.task import Context, Task

__all__ = ["attempt", "graded"]


def attempt(task: Task, *texts: str, id: str = "r0", group: str = "g0", stop: Stop = Stop.DONE) -> Rollout:
    """A rollout in which the policy said ``texts``, one per call.

    Token ids are the characters' code points, log-probabilities are -1, and each call's prefix is all that was said before.

    >>> from assay.core import FrozenMap, Task
    >>> task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "1+1="}))
    >>> attempt(task, "2").text, attempt(task, "2").length
    ('2', 1)
    """
    world = task.exposed()
    context = Context(key=id, group=group, task=world, messages=world.messages)
    seen = [ord(c) for m in world.messages for c in m.content]
    calls: list[Call] = []
    for position, text in enumerate(texts):
        ids = [ord(c) for c in text]
        completion = Completion(
            ids=ids_of(ids), logp_engine=np.full(len(ids), -1.0, np.float32), spans=(Span(0, 0, len(ids)),) if ids else (),
            stop=stop if position == len(texts) - 1 else Stop.DONE, sampling=Sampling(),
        )  # fmt: skip
        parent = position - 1 if position else None
        calls.append(Call(id=position, parent=parent, prefix=ids_of(seen), completion=completion, text=text))
        seen += ids
    return Rollout(id=id, context=context, calls=tuple(calls), stop=stop, seed=0)


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
