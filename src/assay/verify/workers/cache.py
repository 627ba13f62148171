"""What need not go to a worker: verdicts that a verifier gives at once, and those of questions already judged."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.verify.abilities import abilities_of, ability_of

__all__ = ["CachedVerdicts", "VerdictCache", "at_once"]

_KEPT = 10_000
"""Verdicts that are remembered; the oldest is forgotten first."""


@dataclass(frozen=True, slots=True)
class CachedVerdicts:
    """A batch before any worker is asked, by places in the batch.

    Attributes:
        verdicts: those that are there.
        asked: what workers must judge.
        twins: what is the same question as an item of ``asked``, and which.
    """

    verdicts: Mapping[int, Score]
    asked: tuple[int, ...]
    twins: Mapping[int, int]


class VerdictCache:
    """Spares workers what a verifier that has more than ``__call__`` makes needless.

    ``at_once(task, rollout)`` gives a verdict that needs no worker, or None; it neither hangs nor crashes on any text.
    ``key(task, rollout)`` names the question: rollouts with the same key have the same verdict, so one of them is judged.

    Args:
        verifier: any verifier.
    """

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._key = abilities_of(verifier).key
        self._seen: OrderedDict[Hashable, Score] = OrderedDict()

    def look(self, items: Sequence[tuple[Task, Rollout]]) -> CachedVerdicts:
        """What is known of a batch."""
        verdicts: dict[int, Score] = {}
        asked: dict[Hashable, int] = {}
        twins: dict[int, int] = {}
        for n, (task, rollout) in enumerate(items):
            key: Hashable = (n, None)
            score = None
            with suppress(Exception):  # a worker will meet the same failure, and make it a fault
                score = at_once(self._verifier, task, rollout)
                key = key if self._key is None else self._key(task, rollout)
            if score is None:
                score = self._seen.get(key)
                if score is None and asked.setdefault(key, n) != n:
                    twins[n] = asked[key]
            if score is not None:
                verdicts[n] = score
        return CachedVerdicts(verdicts, tuple(asked.values()), twins)

    def remember(self, items: Sequence[tuple[Task, Rollout]], verdicts: Sequence[Score]) -> None:
        """Keep the verdicts that count; an answer that stopped its judge twice is not given a third."""
        if self._key is None:
            return
        for (task, rollout), score in zip(items, verdicts, strict=True):
            if score.valid:  # it has been judged, so it has a key
                self._seen[self._key(task, rollout)] = score
        while len(self._seen) > _KEPT:
            self._seen.popitem(last=False)


def at_once(verifier: Verifier, task: Task, rollout: Rollout) -> Score | None:
    """The verdict that a verifier gives without a worker: always when ``trusted``, else by its ``at_once``, if it has one."""
    if ability_of(verifier, "trusted"):
        return verifier(task, rollout)
    quick: Callable[[Task, Rollout], Score | None] | None = ability_of(verifier, "at_once")
    return None if quick is None else quick(task, rollout)
