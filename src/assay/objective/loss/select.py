"""Which tokens a term acts on, beside its streams: by the task's metric, by a group's success, by columns of rollouts or
tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.columns import Array
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.plan import Scope
from assay.core.sample import STREAMS
from assay.core.util.renamed import refuse_renamed
from assay.objective.reducers import F, Partials, Sum, tally

__all__ = ["Correct", "Incorrect", "Known", "Marked", "OneOf", "PassRate", "Selector", "metric_of"]

_INF = float("inf")
_CLOSE = 1e-9


def metric_of(batch: Batch) -> F:
    """``[R]`` the task's own metric, as `Scalarise` knows it, never the shaped reward: ``correct``, else ``reward``, else the
    only component. NaN for a rollout without a verdict; what the credit chain was paid where there are several components and
    neither.

    Raises:
        DataError: there are no components and no rewards.
    """
    found = {n.removeprefix("components/"): v for n, v in batch.rollouts.items() if n.startswith("components/")}
    if len(found) == 1:
        values: Array = next(iter(found.values()))
    elif "correct" in found and "reward" in found:
        values = np.where(np.isnan(found["correct"]), found["reward"], found["correct"])
    else:
        values = found["correct"] if "correct" in found else found.get("reward", batch.rollouts.get("reward", np.zeros(0)))
    if len(values) != len(batch.rollout("group")):
        raise DataError(
            "a term chooses rollouts by their metric, but the batch has no reward components; grade the rollouts first"
        )
    return np.where(batch.rollouts.get("valid", np.ones(len(values), np.bool_)), values, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector(ABC):
    """Base of all selectors: ``local -> reduce -> choose``."""

    def __init_subclass__(cls) -> None:
        super(Selector, cls).__init_subclass__()
        refuse_renamed(cls, {"attempts": "rollout_columns", "chosen": "choose"})

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns that it reads."""
        return ()

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """Columns of the rollouts that it reads."""
        return ()

    @property
    def reward(self) -> bool:
        """Whether it reads rewards, so that the batch must be graded."""
        return False

    @property
    def scope(self) -> Scope:
        """How much must be visible to choose; micro-batches do not matter, it is done before them."""
        return Scope.SEQUENCE

    @property
    def reduces(self) -> bool:
        """Whether it has statistics that cross ranks."""
        return type(self).local is not Selector.local

    def local(self, batch: Batch) -> Partials:
        """Partial statistics of the optimiser batch's rows on this rank."""
        return {}

    @abstractmethod
    def choose(self, batch: Batch, stats: Partials) -> NDArray[np.bool_]:
        """``[N]`` tokens that are acted on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correct(Selector):
    """Rollouts whose task metric reaches a threshold.

    Attributes:
        threshold: metric from which a rollout is correct.
    """

    threshold: float = field(default=0.5, kw_only=False)

    @property
    def reward(self) -> bool:
        """The metric."""
        return True

    def choose(self, batch: Batch, stats: Partials) -> NDArray[np.bool_]:
        """``[N]`` tokens of correct rollouts."""
        return _spread(batch, metric_of(batch) >= self.threshold - _CLOSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incorrect(Selector):
    """Rollouts whose task metric stays below a threshold.

    Attributes:
        threshold: metric from which a rollout is correct.
    """

    threshold: float = field(default=0.5, kw_only=False)

    @property
    def reward(self) -> bool:
        """The metric."""
        return True

    def choose(self, batch: Batch, stats: Partials) -> NDArray[np.bool_]:
        """``[N]`` tokens of wrong rollouts."""
        return _spread(batch, metric_of(batch) < self.threshold - _CLOSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRate(Selector):
    """Groups by their share of correct rollouts: ``PassRate(high=0.0)`` are those without a success, ``PassRate(low=1.0)`` those
    without a failure.

    Rollouts with rows in the optimiser batch are counted, so it must hold groups whole. A group none of whose rollouts is counted
    is not chosen.

    Attributes:
        low, high: shares, both included.
        threshold: metric from which a rollout is correct.
        streams: whose rollouts are counted; those acted on are the term's own.
    """

    low: float = 0.0
    high: float = 1.0
    threshold: float = 0.5
    streams: tuple[str, ...] = ("on_policy", "replay")

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1 or (self.low == 0 and self.high == 1):
            raise ConfigError(
                f"PassRate(low={self.low}, high={self.high}): use shares 0 <= low <= high <= 1, not both bounds open"
            )
        for stream in self.streams:
            if stream not in STREAMS:
                raise UnknownNameError("stream", stream, STREAMS)
        if not self.streams:
            raise ConfigError("PassRate.streams is empty, so no rollout would be counted; name at least one stream")

    @property
    def reward(self) -> bool:
        """The metric."""
        return True

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    def local(self, batch: Batch) -> Partials:
        """Rollouts and correct rollouts of each group."""
        rows = np.isin(batch.rows["stream"], [STREAMS.index(s) for s in self.streams])
        metric = metric_of(batch)
        here = np.unique(np.asarray(batch.rows["rollout"], np.int64)[rows])
        here = here[np.isfinite(metric[here])]
        group = np.asarray(batch.rollout("group"), np.int64)
        size = int(group.max()) + 1
        right = (metric[here] >= self.threshold - _CLOSE).astype(np.float64)
        return {
            "attempts": Sum(tally(group[here], np.ones(len(here)), size)),
            "correct": Sum(tally(group[here], right, size)),
        }

    def choose(self, batch: Batch, stats: Partials) -> NDArray[np.bool_]:
        """``[N]`` tokens of the groups."""
        count, right = stats["attempts"].values, stats["correct"].values
        rate = right / np.maximum(count, 1)
        inside = (count > 0) & (rate >= self.low - _CLOSE) & (rate <= self.high + _CLOSE)
        return _spread(batch, inside[np.asarray(batch.rollout("group"), np.int64)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Known(Selector):
    """Rollouts by a column that rows bring, such as the base model's pass rate at the prompt.

    Attributes:
        column: the column of the rollouts.
        low, high: bounds, both included.
    """

    column: str = field(kw_only=False)
    low: float = -_INF
    high: float = _INF

    def __post_init__(self) -> None:
        if not self.low <= self.high or (self.low == -_INF and self.high == _INF):
            raise ConfigError(f"Known({self.column!r}, low={self.low}, high={self.high}): give a bound, with low <= high")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def choose(self, batch: Batch, stats: Partials) -> NDArray[np.bool_]:
        """``[N]`` tokens of the rollouts inside."""
        values = np.asarray(batch.rollout(self.column), np.float64)
        return _spread(batch, (values >= self.low - _CLOSE) & (values <= self.high + _CLOSE))


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf(Selector):
    """Rollouts by a column of names: those of some tasks' ``domain`` or ``arm``, say, that one of several teachers teaches.

    Attributes:
        values: those that are chosen.
        by: the column of the rollouts.
    """

    values: tuple[str, ...] = field(kw_only=False)
    by: str = "domain"

    def __post_init__(self) -> None:
        if not self.values:
            raise ConfigError(f"OneOf((), by={self.by!r}) chooses nothing; give at least one value")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.by,)

    def choose(self, batch: Batch, stats: Partials) -> NDArray[np.bool_]:
        """``[N]`` tokens of the rollouts chosen."""
        return _spread(batch, np.isin(np.asarray(batch.rollout(self.by)).astype(str), self.values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked(Selector):
    """Tokens by a column that rows bring: those where it is not 0.

    Attributes:
        column: the token column.
    """

    column: str = field(kw_only=False)

    @property
    def needs(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def scope(self) -> Scope:
        """A token."""
        return Scope.TOKEN

    def choose(self, batch: Batch, stats: Partials) -> NDArray[np.bool_]:
        """``[N]`` marked tokens."""
        return np.asarray(batch.token(self.column)) != 0


def _spread(batch: Batch, rollouts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``[N]`` from ``[R]``."""
    return np.repeat(rollouts[np.asarray(batch.rows["rollout"], np.int64)], batch.lengths)
