"""One answer in a process that can be killed, for callers without a `ScoringPool`: from any thread, several at once."""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.rollout import Call, Completion, Rollout, Sampling, Stop, ids_of
from assay.core.score import Fault, Score
from assay.core.task import Context, Task
from assay.verify.math import symbolic
from assay.verify.workers.cpu import cores
from assay.verify.workers.dispatch import Dispatcher, JudgingOutcome

__all__ = ["judge_in_subprocess", "rollout_from_texts"]

_KEPT = 10_000
"""Verdicts that are remembered; the oldest is forgotten first."""


@dataclass(frozen=True, slots=True)
class _Deferred:
    """Judges with the verifier that comes with the task, so that one dispatcher serves all settings."""

    def prepare(self) -> None:
        symbolic.prepare()

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        return task.private["judge"].decide(task, rollout)


class _SharedDispatchers:
    """The dispatchers of this process, made at the first need."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._dispatchers: dict[float, Dispatcher] = {}
        self._owner = 0
        self._seen: OrderedDict[Hashable, Score] = OrderedDict()
        self._free_cores = threading.BoundedSemaphore(cores())

    def judge(self, task: Task, rollout: Rollout, key: Hashable, deadline: float) -> Score:
        dispatcher = self._dispatcher(deadline)
        if key in self._seen:
            return self._seen[key]
        with self._free_cores:  # an answer that shares its core could miss a deadline that it meets alone
            first = dispatcher.pipeline([(task, rollout)])[0]
            score = _settle_score(first if first.good else dispatcher.pipeline([(task, rollout)], fresh=True)[0], first)
        with self._lock:
            if score.valid:
                self._seen[key] = score
            while len(self._seen) > _KEPT:
                self._seen.popitem(last=False)
        return score

    def _dispatcher(self, deadline: float) -> Dispatcher:
        with self._lock:
            if self._owner != os.getpid():  # a fork has no workers of its own
                self._dispatchers, self._owner = {}, os.getpid()
            if deadline not in self._dispatchers:
                self._dispatchers[deadline] = Dispatcher(_Deferred(), deadline, 1, Counter())
            return self._dispatchers[deadline]


def _settle_score(last: JudgingOutcome, first: JudgingOutcome) -> Score:
    if not (first.stopped and last.stopped):
        return last.score
    info = {**last.score.info, "error": f"{last.score.info['error']}, twice on the same answer"}
    return Score(components={"correct": 0.0}, fault=Fault.POLICY, info=FrozenMap(info))


_shared = _SharedDispatchers()


def judge_in_subprocess(judge: Any, task: Task, rollout: Rollout) -> Score:
    """The verdict of ``judge.decide(task, rollout)`` in another process; an answer that hangs it twice scores 0.

    Raises:
        RewardError: no process comes up.
    """
    private = FrozenMap({"answer": task.private["answer"], "judge": judge})
    key = (judge, *judge.key(task, rollout))
    return _shared.judge(replace(task, private=private), rollout, key, judge.deadline)


def rollout_from_texts(gold: str, answer: str) -> tuple[Task, Rollout]:
    """A task and a rollout at it, from their texts."""
    task = Task(
        id="compare",
        domain="math",
        arm="compare",
        level=0,
        split="test",
        index=0,
        public=FrozenMap({"prompt": ""}),
        private=FrozenMap({"answer": gold}),
    )
    world = task.public_view()
    nothing = Completion(ids=ids_of([]), logp_engine=np.zeros(0, np.float32), spans=(), stop=Stop.DONE, sampling=Sampling())
    call = Call(id=0, parent=None, prefix=ids_of([]), completion=nothing, text=answer)
    context = Context(key="compare", group="compare", task=world, messages=world.messages)
    return task, Rollout(id="compare", context=context, calls=(call,), stop=Stop.DONE, seed=0)
