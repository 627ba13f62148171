"""One verifier for tasks of several kinds: each task goes to the verifier of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, cast

from assay.core.canon import FrozenMap, canonical
from assay.core.errors import ConfigError, DataError, nearest
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.verify.abilities import ability_of, scale_of
from assay.verify.composite import CompositeVerifier, seconds_of
from assay.verify.workers.cache import at_once

__all__ = ["Routed"]


@dataclass(frozen=True, slots=True)
class Routed(CompositeVerifier):
    """The verdict of the verifier that a task's own key names.

    Attributes:
        routes: key to verifier.
        by: what the key is: the task's ``arm`` or ``domain``, or else the name of a field of its private part, or of the user's
            own row in it (``data_source``); what is no text there, as canonical JSON.
        default: judges tasks whose key has no route; None refuses them.

    Raises:
        ConfigError: no routes.
        DataError: a task has no key, or one without a route; names the task, the key and the nearest route.

    >>> from assay.core.canon import FrozenMap, canonical
    >>> from assay.verify import ExactMatch, MathAnswer
    >>> from assay.verify.rollouts import task_and_rollout
    >>> both = Routed({"sums": MathAnswer(), "words": ExactMatch()}, by="data_source")
    >>> task, rollout = task_and_rollout("1/2", "0.5")
    >>> from dataclasses import replace
    >>> [both(replace(task, private=FrozenMap({"answer": "1/2", "data_source": kind})), rollout).primary for kind in both.routes]
    [1.0, 0.0]
    """

    routes: Mapping[str, Verifier]
    by: Literal["arm", "domain"] | str = "arm"
    default: Verifier | None = None

    def __post_init__(self) -> None:
        if not self.routes:
            raise ConfigError("Routed needs at least one route from a key to a verifier, got none")
        object.__setattr__(self, "routes", FrozenMap(self.routes))

    @property
    def members(self) -> tuple[Verifier, ...]:
        """The different verifiers, in the order of their first routes."""
        every = (*self.routes.values(), *(() if self.default is None else (self.default,)))
        return tuple({id(part): part for part in every}.values())  # a part need not be hashable

    def with_members(self, members: tuple[Verifier, ...]) -> Routed:
        """The same routes to other parts."""
        other = {id(old): new for old, new in zip(self.members, members, strict=True)}
        default = None if self.default is None else other[id(self.default)]
        return Routed({key: other[id(part)] for key, part in self.routes.items()}, self.by, default)

    def merge_scores(self, task: Task, scores: tuple[Score, ...]) -> Score:
        """The one verdict that there is."""
        (score,) = scores
        return score

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout by its task's verifier."""
        return self._reward_score(self.route(task)(task, rollout))

    def at_once(self, task: Task, rollout: Rollout) -> Score | None:
        """The verdict, where the task's verifier gives its own without a worker."""
        score = at_once(self.route(task), task, rollout)
        return None if score is None else self._reward_score(score)

    def _reward_score(self, score: Score) -> Score:
        """The verdict; where another part's ``reward`` is learned from, with one of its own: the task's metric."""
        if "reward" in score.components or not score.components or not self.weighted_sum:
            return score
        return replace(score, components={**score.components, "reward": score.primary})

    @property
    def by_text(self) -> bool:
        """Whether every part's verdict depends on nothing but how a rollout ended and its last text."""
        return all(ability_of(part, "by_text") for part in self.members)

    @property
    def deadline(self) -> float:
        """Seconds that the slowest part may take; without end where one of them does not say."""
        return max(seconds_of(part) for part in self.members)

    @property
    def names(self) -> tuple[str, ...]:
        """Components that any of the parts declares; a task's verdict has those of its own verifier."""
        return tuple(dict.fromkeys(name for part in self.members for name in ability_of(part, "names")))

    @property
    def floor(self) -> dict[str, float]:
        """The least floor of each component that the parts declare."""
        floors: dict[str, float] = {}
        for part in self.members:
            for name, floor in scale_of(part).named_floors.items():
                floors[name] = min(floors.get(name, inf), floor)
        return floors

    def route(self, task: Task) -> Verifier:
        """The verifier of a task.

        Raises:
            DataError: as the class says.
        """
        key = self._key(task)
        found = self.default if key is None else self.routes.get(key, self.default)
        if found is None:
            close = nearest(str(key), self.routes)
            hint = f"did you mean {close!r}?" if close else f"there are routes for {sorted(self.routes)}"
            raise DataError(f"task {task.id!r} has {self.by} {key!r}, for which there is no verifier; {hint}")
        return found

    def _key(self, task: Task) -> str | None:
        if self.by in ("arm", "domain"):
            return str(getattr(task, self.by))
        row: Any = task.private.get("row")
        found = cast("Mapping[str, Any]", row).get(self.by) if isinstance(row, Mapping) else None
        found = task.private.get(self.by, found)
        return found if found is None or isinstance(found, str) else canonical(found).decode()
