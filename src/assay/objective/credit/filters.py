"""Filters: weights per rollout. They change the estimator; the aggregation names the denominator (``kept`` or ``drawn``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm, check_one_handling
from assay.objective.credit.shape import solved_rollouts
from assay.objective.credit.stats import Keyed, column, each, identity, peers
from assay.objective.reducers import Moments, Partials

__all__ = [
    "DropOneClass",
    "DropSmall",
    "DropStale",
    "DropTruncated",
    "DropZeroVariance",
    "Filter",
    "PassRateHistory",
    "PassRateWindow",
    "PositivesOnly",
]


def drop_rollouts(credit: Credit, dropped: NDArray[np.bool_]) -> Credit:
    """The record without some rollouts: no weight in any loss, and no part in the statistics of the terms that follow."""
    return replace(credit, keep=np.where(dropped, 0.0, credit.keep), counted=credit.counted & ~dropped)


@dataclass(frozen=True, slots=True)
class Filter(CreditTerm):
    """Base of the filters."""

    kind: ClassVar[str] = "filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropZeroVariance(Filter):
    """Drops groups whose rollouts all have the same *task metric* (DAPO's dynamic sampling without the refill).

    It looks at the metric, not at the shaped reward: a length penalty cannot bring a solved group back. Dropped rollouts also
    leave the statistics of the terms that follow.

    Attributes:
        tolerance: largest standard deviation that still counts as none.
    """

    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if not self.tolerance >= 0:
            raise ConfigError(f"DropZeroVariance.tolerance={self.tolerance}; use 0 or a small positive number")

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    @property
    def min_group(self) -> int:
        """One rollout has no variance."""
        return 2

    def local(self, credit: Credit) -> Partials:
        """Moments of the metric per group."""
        return {"moments": peers(credit, credit.metric)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets the weight of the dropped rollouts to 0."""
        m: Moments = stats["moments"]
        varied = (m.std(0) > self.tolerance) | (m.count == 0)  # rows of other streams alone are no group to judge
        told = credit.with_metrics(credit_dropped_groups=float(np.sum((m.count > 0) & ~varied)))
        return drop_rollouts(told, ~varied[credit.group])


@dataclass(frozen=True, slots=True)
class DropTruncated(Filter):
    """Takes rollouts that were cut off at the length limit out of every loss (DAPO's overlong filtering).

    Their rewards stay in the statistics: only their tokens are not learned from.
    """

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """Whether a rollout was cut off."""
        return ("truncated",)

    @property
    def handles_truncation(self) -> bool:
        """It masks them."""
        return True

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: answers that were cut off are treated one way."""
        check_one_handling(self, before)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets their weight to 0."""
        cut = np.asarray(credit.batch.rollout("truncated"), np.bool_)
        return replace(credit.with_metrics(credit_dropped_truncated=float(cut.sum())), keep=np.where(cut, 0.0, credit.keep))


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRateWindow(Filter):
    """Keeps prompts with a pass rate in ``[low, high)``: the group's own mean metric, or what a column knows of the prompt.

    Attributes:
        low, high: the window; ScaleRL: 0 and 0.9.
        column: a column of the rollouts with the rate; the group's own when empty.
    """

    low: float = 0.0
    high: float = 0.9
    column: str = ""

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ConfigError(f"PassRateWindow(low={self.low}, high={self.high}) keeps nothing; use low < high")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The rate."""
        return (self.column,) if self.column else ()

    @property
    def scope(self) -> Scope:
        """A group, unless a column tells."""
        return Scope.SEQUENCE if self.column else Scope.GROUP

    @property
    def reduces(self) -> bool:
        """When it asks the group."""
        return not self.column

    def local(self, credit: Credit) -> Partials:
        """Moments of the metric per group."""
        return {} if self.column else {"moments": peers(credit, credit.metric)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets the weight of the dropped rollouts to 0."""
        rate = column(credit, self.column) if self.column else each(credit, stats["moments"]).mean
        dropped = (rate < self.low - 1e-9) | (rate >= self.high - 1e-9)
        return drop_rollouts(credit.with_metrics(credit_dropped_by_rate=float(np.sum(dropped & credit.counted))), dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRateHistory(Filter):
    """Drops prompts whose pass rate over *earlier* batches has reached ``high`` (ScaleRL's No-Positive-Resampling), or lies under
    ``low``. Prompts that it has not seen stay. The rates are part of the saved state.

    Attributes:
        low, high: prompts with a rate in ``[low, high)`` stay.
        by: column of the rollouts that names the prompt in all batches, such as a hash of its text.
        least: rollouts that must be known before a prompt is judged.
    """

    low: float = 0.0
    high: float = 0.9
    by: str = "prompt"
    least: int = 1

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ConfigError(f"PassRateHistory(low={self.low}, high={self.high}) keeps nothing; use low < high")
        if self.least < 1:
            raise ConfigError(f"PassRateHistory.least={self.least}; use 1 or more")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The prompt's name."""
        return (self.by,)

    @property
    def scope(self) -> Scope:
        """A prompt may stand in any group."""
        return Scope.BATCH

    def init(self) -> State:
        """Rollouts and their mean metric, by prompt."""
        return {"seen": {}}

    def local(self, credit: Credit) -> Partials:
        """Moments of the metric per prompt."""
        here = credit.counted
        return {"moments": Keyed.of(credit.metric[here], self._keys(credit)[here, None])}

    def advance(self, state: State, stats: Partials) -> State:
        """Adds the batch to what is known."""
        found: Keyed = stats["moments"]
        seen = dict(state["seen"])
        for key, n, mean in zip(
            found.keys[:, 0].tolist(), found.moments.count.tolist(), found.moments.mean.tolist(), strict=True
        ):
            before, old = seen.get(str(key), (0.0, 0.0))
            seen[str(key)] = [before + n, (before * old + n * mean) / (before + n)]
        return {"seen": seen}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets the weight of the dropped rollouts to 0."""
        known = [state["seen"].get(str(key), (0.0, 0.0)) for key in self._keys(credit).tolist()]
        count, rate = np.array(known).T
        dropped = (count >= self.least) & ((rate < self.low - 1e-9) | (rate >= self.high - 1e-9))
        return drop_rollouts(credit.with_metrics(credit_dropped_by_rate=float(np.sum(dropped & credit.counted))), dropped)

    def _keys(self, credit: Credit) -> NDArray[np.int64]:
        return identity(credit.batch.rollout(self.by))


@dataclass(frozen=True, slots=True, kw_only=True)
class DropStale(Filter):
    """Drops rollouts that were sampled by weights more than ``limit`` versions behind the learner's.

    Attributes:
        limit: largest lag that stays.
        column: column of the rollouts with the lag: the learner's version less the oldest that sampled the rollout.
    """

    limit: int = 8
    column: str = "lag"

    def __post_init__(self) -> None:
        if not self.limit >= 0:
            raise ConfigError(f"DropStale.limit={self.limit}; use 0 (only the present weights) or more")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The lag."""
        return (self.column,)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets the weight of the dropped rollouts to 0."""
        dropped = column(credit, self.column) > self.limit
        return drop_rollouts(credit.with_metrics(credit_dropped_stale=float(np.sum(dropped & credit.counted))), dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSmall(Filter):
    """Drops rollouts whose advantage is smaller than ``limit`` in size (LOOP: 0.01); put it behind what makes the advantage.

    Their rewards stay in the statistics of the terms that follow: only their tokens are not learned from.

    Attributes:
        limit: smallest ``|A|`` that stays.
    """

    limit: float = 0.01

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ConfigError(f"DropSmall.limit={self.limit} drops nothing; use a positive number")

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: there is no advantage before a baseline."""
        if not any(t.kind in ("baseline", "whiten") for t in before):
            raise PlanError("DropSmall before a baseline would look at the reward itself: put it behind Center or the like")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets their weight to 0."""
        small = np.abs(credit.advantage) < self.limit
        told = credit.with_metrics(credit_dropped_small=float(np.sum(small & (credit.keep > 0))))
        return replace(told, keep=np.where(small, 0.0, credit.keep))


@dataclass(frozen=True, slots=True, kw_only=True)
class DropOneClass(Filter):
    """Drops groups whose rollouts are all correct, all wrong, or either.

    Attributes:
        which: ``correct``, ``wrong`` or ``any``.
        threshold: task metric from which a rollout is correct.
    """

    which: str = "any"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.which not in ("any", "correct", "wrong"):
            raise UnknownNameError("class of groups", self.which, ("any", "correct", "wrong"))

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    @property
    def min_group(self) -> int:
        """One rollout is of one class."""
        return 2

    def local(self, credit: Credit) -> Partials:
        """Share of correct rollouts per group."""
        return {"moments": peers(credit, solved_rollouts(credit, self.threshold).astype(np.float64))}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets the weight of the dropped rollouts to 0."""
        m: Moments = stats["moments"]
        one = {"correct": m.mean == 1, "wrong": m.mean == 0, "any": m.m2 == 0}[self.which] & (m.count > 0)
        told = credit.with_metrics(credit_dropped_groups=float(one.sum()))
        return drop_rollouts(told, one[credit.group])


@dataclass(frozen=True, slots=True, kw_only=True)
class PositivesOnly(Filter):
    """Keeps correct rollouts alone (expert iteration, rejection sampling).

    Attributes:
        threshold: task metric from which a rollout is correct.
    """

    threshold: float = 0.5

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets the weight of the others to 0."""
        wrong = ~solved_rollouts(credit, self.threshold)
        return drop_rollouts(credit.with_metrics(credit_positives=float(np.sum(credit.counted & ~wrong))), wrong)
