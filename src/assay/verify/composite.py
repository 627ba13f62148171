"""What every verifier made of others has of them, so that nothing of a part is lost by wrapping it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import inf
from typing import Any, Self

from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.core.util.renamed import refuse_renamed
from assay.verify.abilities import abilities_of, ability_of
from assay.verify.workers.cache import at_once

__all__ = ["CompositeVerifier", "seconds_of"]


class CompositeVerifier(ABC):
    """Base of verifiers whose verdict is made of others' verdicts on the same rollout.

    A `ScoringPool` sees the parts through it: it is trusted when every part is, judges at once where each does, is spread over
    the cores where any is, and says what contains the programs of any. The first verdict that is a fault is the verdict.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        refuse_renamed(cls, {"joined": "merge_scores", "made_of": "with_members"})

    @property
    @abstractmethod
    def members(self) -> tuple[Verifier, ...]:
        """The parts, in the order in which they judge."""
        ...

    @abstractmethod
    def with_members(self, members: tuple[Verifier, ...]) -> Self:
        """The same verifier made of other parts."""
        ...

    @abstractmethod
    def merge_scores(self, task: Task, scores: tuple[Score, ...]) -> Score:
        """The verdict, from the parts' verdicts, of which none is a fault.

        Raises:
            DataError: they cannot stand together; names the task.
        """
        ...

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout.

        Raises:
            DataError: a gold is not of a part's form, or verdicts cannot stand together; names the task.
        """
        return self._verdict(task, (part(task, rollout) for part in self.members))

    @property
    def trusted(self) -> bool:
        """Whether every part may run in this process."""
        return all(ability_of(part, "trusted") for part in self.members)

    @property
    def by_text(self) -> bool:
        """Whether every part's verdict depends on nothing but how a rollout ended and its last text."""
        return type(self).__call__ is CompositeVerifier.__call__ and all(ability_of(part, "by_text") for part in self.members)

    @property
    def weighted_sum(self) -> bool:
        """Whether a stage learns from the component ``reward``: so it does of any part."""
        return any(ability_of(part, "weighted_sum") for part in self.members)

    @property
    def deadline(self) -> float:
        """Seconds that the parts may take; without end where one of them does not say."""
        return sum(map(seconds_of, self.members))

    def ready(self) -> None:
        """Raise what would fail on every answer: a package that a part needs and that is absent."""
        for part in self.members:
            abilities_of(part).ready()

    def prepare(self) -> None:
        """Import what the parts need in a worker."""
        for part in self.members:
            abilities_of(part).prepare()

    def at_once(self, task: Task, rollout: Rollout) -> Score | None:
        """The verdict, where every part gives its own without a worker."""
        scores: list[Score] = []
        for part in self.members:
            score = at_once(part, task, rollout)
            if score is None:
                return None
            scores.append(score)
        return self._verdict(task, scores)

    def isolation(self) -> dict[str, Any] | None:
        """What contains the programs that parts start, as plain values for a run's record; None where none starts any."""
        found: list[dict[str, Any]] = []
        for part in self.members:
            said = abilities_of(part).isolation()
            if said and said not in found:
                found.append(dict(said))
        if len(found) < 2:
            return found[0] if found else None
        return {
            "tag": ", ".join(one["tag"] for one in found),
            "held": all(one["held"] for one in found),
            "line": "; ".join(one["line"] for one in found),
            "parts": found,
        }

    def for_workers(self, answers: int) -> Self | None:
        """The same verifier where so many answers are judged side by side; None where no part starts programs."""
        found = [abilities_of(part).for_workers(answers) for part in self.members]
        if not any(found):
            return None
        return self.with_members(tuple(other or part for other, part in zip(found, self.members, strict=True)))

    def _verdict(self, task: Task, scores: Iterable[Score]) -> Score:
        good: list[Score] = []
        for score in scores:
            if score.fault is not Fault.NONE:
                return score
            good.append(score)
        return self.merge_scores(task, tuple(good))


def seconds_of(part: Verifier) -> float:
    """Seconds that a part may take in a worker; without end where it does not say."""
    deadline = ability_of(part, "deadline")
    return 0.0 if ability_of(part, "trusted") else inf if deadline is None else float(deadline)
