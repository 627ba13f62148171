"""A problem and a rollout at it, written by hand: what a verifier needs where there is neither a family nor a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import FrozenMap
from assay.core.rollout import Call, Completion, Rollout, Sampling, Span, Stop, ids_of
from assay.core.task import Context, Task

__all__ = ["rollout_of", "task_and_rollout"]


def task_and_rollout(
    gold: Any, answer: str, *, id: str = "case", prompt: str = "", stop: Stop = Stop.DONE
) -> tuple[Task, Rollout]:
    """A task whose ``private["answer"]`` is ``gold``, and a rollout at it that says ``answer``.

    >>> from assay.verify import ExactMatch
    >>> ExactMatch()(*task_and_rollout("4", "4")).primary
    1.0
    """
    task = Task(
        id=id,
        domain="case",
        arm="case",
        level=1,
        split="test",
        index=0,
        public=FrozenMap({"prompt": prompt}),
        private=FrozenMap({"answer": gold}),
    )
    return task, rollout_of(task, answer, id=id, group=id, stop=stop)


def rollout_of(task: Task, *texts: str, id: str = "r0", group: str = "g0", stop: Stop = Stop.DONE) -> Rollout:
    """A rollout in which the policy said ``texts``, one per call.

    Token ids are the characters' code points, log-probabilities are -1, and each call's prefix is all that was said before.

    >>> from assay.core import FrozenMap, Task
    >>> task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "1+1="}))
    >>> rollout_of(task, "2").text, rollout_of(task, "2").length
    ('2', 1)
    """
    world = task.public_view()
    context = Context(key=id, group=group, task=world, messages=world.messages)
    seen = _points("".join(m.content for m in world.messages))
    calls: list[Call] = []
    for position, text in enumerate(texts):
        ids = _points(text)
        completion = Completion(
            ids=ids_of(ids),
            logp_engine=np.full(len(ids), -1.0, np.float32),
            spans=(Span(0, 0, len(ids)),) if text else (),
            stop=stop if position == len(texts) - 1 else Stop.DONE,
            sampling=Sampling(),
        )
        parent = position - 1 if position else None
        calls.append(Call(id=position, parent=parent, prefix=ids_of(seen), completion=completion, text=text))
        seen = np.concatenate([seen, ids])
    return Rollout(id=id, context=context, calls=tuple(calls), stop=stop, seed=0)


def _points(text: str) -> NDArray[np.uint32]:
    """Code points, of halves of characters too."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
