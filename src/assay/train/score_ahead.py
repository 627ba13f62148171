"""Verdicts on rollouts while others are still sampled and the learner works."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence

from assay.core.errors import AssayError
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.verify import ScoringPool

__all__ = ["ScoreAhead"]

_Items = Sequence[tuple[Task, Rollout]]


class ScoreAhead:
    """A thread that has groups judged as they arrive.

    A step that finds a verdict on each of its rollouts takes these. Where one is missing or a fault, it has all of them judged in
    one batch, as without this: whether too many failed, and what a hang scores, is said of a batch.

    Args:
        pool: judges; by a verifier whose verdict on a rollout is always the same.
    """

    def __init__(self, pool: ScoringPool) -> None:
        self._pool = pool
        self._inbox: queue.SimpleQueue[tuple[str, _Items] | None] = queue.SimpleQueue()
        self._found: dict[str, Mapping[str, Score]] = {}
        self._left = set[str]()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="score-ahead", daemon=True)
        self._thread.start()

    def add(self, key: str, items: _Items) -> None:
        """A group to judge; from any thread."""
        with self._changed:
            self._left.add(key)
        self._inbox.put((key, items))

    def take(self, keys: Sequence[str]) -> dict[str, Score]:
        """Verdicts by rollout id on groups that a step takes, once they are judged; empty where one is missing or a fault."""
        with self._changed:
            while not self._left.isdisjoint(keys):
                self._changed.wait()
            groups = [self._found.pop(key, {}) for key in keys]
        return {name: score for group in groups for name, score in group.items()} if all(groups) else {}

    def forget(self, keys: Sequence[str]) -> None:
        """Groups that nobody learns from."""
        with self._changed:
            for key in keys:
                self._found.pop(key, None)

    def close(self) -> None:
        """Ends the thread behind the group that it has judged."""
        self._inbox.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (message := self._inbox.get()) is not None:
            key, items = message
            verdicts = self._judge(items)
            with self._changed:
                self._left.discard(key)
                if verdicts:
                    self._found[key] = verdicts
                self._changed.notify_all()

    def _judge(self, items: _Items) -> Mapping[str, Score]:
        try:
            found = self._pool.score(items)
        except AssayError:  # the step meets it again, and says it
            return {}
        return found if all(score.valid for score in found.values()) else {}
