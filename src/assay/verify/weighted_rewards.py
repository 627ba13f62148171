"""Several rewards of the user's as one: a weighted sum, and each by its name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, RewardError, a_kind
from assay.core.fields import later
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import LEARNED, Score
from assay.core.task import Task
from assay.verify.abilities import measured, scale_of
from assay.verify.user_reward import Pending, UserReward, abstained, abstention, gather, settle

__all__ = ["RewardPart", "WeightedRewards"]


@dataclass(frozen=True, slots=True)
class RewardPart:
    """One of several rewards.

    Attributes:
        name: of its component.
        verifier: a `RewardFunction`, or an adapter of `assay.interop`.
        weight: factor in the sum.

    Raises:
        ConfigError: the name or the weight cannot stand.
    """

    name: str
    verifier: UserReward
    weight: float = 1.0

    def __post_init__(self) -> None:
        weight: Any = self.weight
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
            raise ConfigError(f"the weight of reward {self.name!r} is {a_kind(weight)} ({weight!r}); give a finite number")
        if not self.name or self.name == "reward" or "/" in self.name:
            raise ConfigError(
                f"a reward is called {self.name!r}; give another name, without '/': 'reward' is the weighted sum of all of them"
            )


@dataclass(frozen=True, slots=True)
class WeightedRewards:
    """The weighted sum of several rewards under ``reward``, and each value, unweighted, under its name.

    A part that has no verdict (None) is left out of the sum; where no part has one, there is no score. A part that returns named
    values counts by its main one, ``correct`` or ``reward``; the others stand under ``PART/NAME``. Asynchronous parts are awaited
    together; others are called on the same event loop.

    A stage learns from the sum. Accuracy, curricula and the doctor read one part, the metric, which stands under ``correct``: a
    sum says nothing of whether an answer is right. Where nobody names it, it is the part called ``correct``, else the first; of a
    rollout on which that one has no verdict, the next part that has one. Where a named metric has no verdict, there is no score.

    Attributes:
        parts: in order.
        metric: name of the part that accuracy is measured by; None as said above.

    Raises:
        ConfigError: no part, two of one name, or a metric that is no part, or another one than the part called ``correct``.

    >>> from assay.verify import RewardFunction
    >>> right, short = RewardFunction(lambda p, c, row: c == row["answer"]), RewardFunction(lambda p, c, row: 1 / len(c))
    >>> both = WeightedRewards((RewardPart("right", right), RewardPart("short", short, 0.5)))
    >>> both.names, both.measured_by
    (('reward', 'correct', 'right', 'short'), 'right')
    """

    parts: tuple[RewardPart, ...]
    metric: str | None = later(None)

    weighted_sum: ClassVar[bool] = True

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"the rewards are called {names}; give at least one, and each a name of its own")
        if self.metric is not None and self.metric not in names:
            raise ConfigError(f"metric={self.metric!r} names none of the rewards; they are called {', '.join(names)}")
        if self.metric not in (None, "correct") and "correct" in names:
            raise ConfigError(
                f"metric={self.metric!r}, and another reward is called 'correct', under which the metric stands; rename that one"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Components: the sum first, then the metric."""
        return tuple(dict.fromkeys(("reward", "correct", *(part.name for part in self.parts))))

    @property
    def measured_by(self) -> str:
        """Name of the part that accuracy is measured by."""
        return self._metrics[0]

    @property
    def _metrics(self) -> list[str]:
        """Parts that may be the metric of a rollout, in order."""
        if self.metric is not None:
            return [self.metric]
        return sorted((part.name for part in self.parts), key=lambda name: name != "correct")

    @property
    def floor(self) -> Mapping[str, float]:
        """The lowest value of each component that the parts declare."""
        floors = {part.name: min(scale_of(cast("Verifier", part.verifier)).floors.values()) for part in self.parts}
        total = sum(part.weight * floors[part.name] for part in self.parts)
        return FrozenMap({"reward": total, "correct": floors[self.measured_by], **floors})

    @property
    def batched(self) -> bool:
        """Whether a part judges several rollouts in one call."""
        return any(part.verifier.batched for part in self.parts)

    @property
    def concurrent(self) -> bool:
        """Whether a part is known to be asynchronous, and none is batched."""
        return not self.batched and any(part.verifier.concurrent for part in self.parts)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout.

        Raises:
            RewardError: a function broke its contract.
        """
        found = self.start(self.views([(task, rollout)])[0])
        return settle(found.result()) if isinstance(found, Pending) else found

    def views(self, items: Sequence[tuple[Task, Rollout]]) -> list[tuple[Any, ...]]:
        """What each part sees."""
        return list(zip(*(part.verifier.views(items) for part in self.parts), strict=True))

    def start(self, view: tuple[Any, ...]) -> Score | Pending[Score]:
        """Calls every part for one rollout."""
        return gather([part.verifier.start(seen) for part, seen in zip(self.parts, view, strict=True)], self._join_scores)

    def start_batch(self, views: Sequence[tuple[Any, ...]]) -> list[Score] | Pending[list[Score]]:
        """Calls every part for several rollouts, those that are batched once."""
        columns = [_column(part.verifier, seen) for part, seen in zip(self.parts, zip(*views, strict=True), strict=True)]
        return gather(columns, lambda found: [self._join_scores(scores) for scores in zip(*found, strict=True)])

    def _join_scores(self, scores: Sequence[Score]) -> Score:
        """The verdict, from those of the parts."""
        total, components, info = 0.0, dict[str, float](), dict[str, Any]()
        for part, score in zip(self.parts, scores, strict=True):
            if abstained(score):
                continue
            main = _main(part, score)
            total += part.weight * score.components[main]
            components[part.name] = score.components[main]
            components |= {f"{part.name}/{name}": value for name, value in score.components.items() if name != main}
            info |= score.info
        # a part of weight 0 only measures: where it alone has a verdict, a sum of 0 would be made of nothing
        if not components.keys() & {part.name for part in self.parts if part.weight or not any(p.weight for p in self.parts)}:
            return abstention("every one of the reward functions gave None: no verdict on this item")
        metric = next((name for name in self._metrics if name in components), None)
        if metric is None:
            return abstention(f"the metric {self.metric!r} gave None: no verdict on this item")
        components = {"reward": total, "correct": components[metric], **components}
        return Score(components=components, info=FrozenMap({**info, LEARNED: "reward"}))


def _column(verifier: UserReward, views: Sequence[Any]) -> Any:
    """What a part says of several rollouts."""
    if verifier.batched:
        return verifier.start_batch(views)
    return gather([verifier.start(view) for view in views], list)


def _main(part: RewardPart, score: Score) -> str:
    """The component that counts.

    Raises:
        RewardError: it gave several, and none of them is the main one.
    """
    if not measured(score.components):
        raise RewardError(
            f"the reward {part.name!r} gave {list(score.components)}, and none of them says what counts; call one of them "
            "'correct' or 'reward', or return a number"
        )
    return next((name for name in ("correct", "reward") if name in score.components), next(iter(score.components)))
