"""Schedules of a stage's settings: values that change by step, or when a metric reaches a bound.

The factor of a learning rate has a schedule of its own (`assay.runtime.LearningRateSchedule`), and so has the coefficient of a
term (`assay.objective.Annealed`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from assay.core.errors import ConfigError
from assay.core.fields import check_positive
from assay.core.protocols import State

__all__ = ["Piecewise", "Ramp", "StepSchedule", "WhenFlat", "WhenReached"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSchedule(ABC):
    """Base of schedules that depend on the number of the step alone: ``values`` and ``at`` are left to say."""

    @property
    @abstractmethod
    def values(self) -> tuple[float, ...]:
        """The values that it goes through; all others lie between the least and the greatest of these."""

    @property
    def reads(self) -> tuple[str, ...]:
        """No metric."""
        return ()

    def init(self) -> State:
        """Nothing to remember."""
        return {}

    def advance(self, state: State, metrics: Mapping[str, float]) -> State:
        """Nothing to remember."""
        return state

    @abstractmethod
    def at(self, step: int, state: State) -> float:
        """The value at a step of the stage, counted from 0."""

    def describe(self) -> str:
        """As it is written."""
        return str(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Points(StepSchedule):
    """A schedule through points ``(step, value)``."""

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _checked_points(self.points, type(self).__name__))

    @property
    def values(self) -> tuple[float, ...]:
        """Those of the points."""
        return tuple(value for _, value in self.points)

    def _before(self, step: int) -> int:
        """Index of the last point that is not after a step."""
        return bisect_right([at for at, _ in self.points], step) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(_Points):
    """Constant between points: each value holds from its step on.

    DeepScaleR lengthens its answers in such stages, to 8, 16 and 24 thousand tokens; POLARIS raises its temperature in stages.

    Attributes:
        points: pairs of a step of the stage, counted from 0, and the value from there on; the first at step 0, ascending.

    Raises:
        ConfigError: no points, steps that are not whole or not ascending from 0, or a value that is not finite.

    >>> lengths = Piecewise(points=((0, 8192), (1000, 16384), (1500, 24576)))
    >>> [lengths.at(step, {}) for step in (0, 999, 1000, 9999)]
    [8192.0, 8192.0, 16384.0, 24576.0]
    """

    def at(self, step: int, state: State) -> float:
        """The value of the last point that is not after the step."""
        return self.points[self._before(step)][1]

    def describe(self) -> str:
        """``1 from step 0, 2 from step 10``."""
        return ", ".join(f"{value:g} from step {step}" for step, value in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp(_Points):
    """Linear between points, constant after the last.

    Attributes:
        points: pairs of a step of the stage, counted from 0, and the value there; the first at step 0, ascending.

    Raises:
        ConfigError: as `Piecewise`.

    >>> warmer = Ramp(points=((0, 0.8), (100, 1.0), (300, 1.4)))
    >>> [round(warmer.at(step, {}), 3) for step in (0, 50, 100, 200, 300, 400)]
    [0.8, 0.9, 1.0, 1.2, 1.4, 1.4]
    """

    def at(self, step: int, state: State) -> float:
        """The value on the line between the points around the step."""
        index = self._before(step)
        start, first = self.points[index]
        if index + 1 == len(self.points):
            return first
        end, last = self.points[index + 1]
        return first + (last - first) * (step - start) / (end - start)

    def describe(self) -> str:
        """``1 at step 0, to 2 at step 10``."""
        return ", to ".join(f"{value:g} at step {step}" for step, value in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhenReached:
    """Moves on to the next value each time a metric satisfies a bound, for example to longer answers when many are truncated.

    It observes the metrics of each finished step, and of the evaluation after it if there is one. A step without this metric
    does not count. The last value stays.

    Attributes:
        metric: by its name in ``metrics.jsonl``, such as ``length/truncated`` or ``eval/greedy/all``; not a time, nor a count of
            the pool (``time/``, ``verify/``), which no two runs have alike.
        values: in order; the first holds from the start.
        at_least, at_most: bounds, both kept; one or both.
        patience: how many observations in a row must satisfy the bounds; counted anew for each value.

    Raises:
        ConfigError: no values or one that is not finite, no bound or an empty range, a patience below 1, or a metric that no two
            runs have alike.

    >>> longer = WhenReached(metric="length/truncated", at_least=0.25, values=(4, 8, 16), patience=2)
    >>> state = longer.init()
    >>> for share in (0.5, 0.1, 0.3, 0.25):
    ...     state = longer.advance(state, {"length/truncated": share})
    >>> longer.at(4, state)
    8.0
    """

    metric: str
    values: tuple[float, ...]
    at_least: float | None = None
    at_most: float | None = None
    patience: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked_values(self.values, "WhenReached.values"))
        check_positive(self, "patience")
        low, high = self._bounds
        if self.at_least is None and self.at_most is None:
            raise ConfigError(f"WhenReached({self.metric!r}) has no bound; give at_least, at_most, or both")
        if not low <= high:
            raise ConfigError(
                f"WhenReached.at_least={self.at_least}, at_most={self.at_most}: no metric satisfies both; swap them"
            )
        _check_repeatable(self.metric, "WhenReached.metric")

    @property
    def _bounds(self) -> tuple[float, float]:
        return -math.inf if self.at_least is None else self.at_least, math.inf if self.at_most is None else self.at_most

    @property
    def reads(self) -> tuple[str, ...]:
        """Its metric."""
        return (self.metric,)

    def init(self) -> State:
        """The first value, and no observation."""
        return {"index": 0, "met": 0}

    def advance(self, state: State, metrics: Mapping[str, float]) -> State:
        """The state after the metrics of a finished step."""
        if self.metric not in metrics:
            return state
        low, high = self._bounds
        met = int(state["met"]) + 1 if low <= metrics[self.metric] <= high else 0
        if met < self.patience:
            return {**state, "met": met}
        return {"index": min(int(state["index"]) + 1, len(self.values) - 1), "met": 0}

    def at(self, step: int, state: State) -> float:
        """The value in force."""
        return self.values[int(state["index"])]

    def describe(self) -> str:
        """Its values, and what moves it on."""
        bounds = [
            f"{word} {bound:g}" for word, bound in (("at least", self.at_least), ("at most", self.at_most)) if bound is not None
        ]
        often = f" {self.patience} times in a row" if self.patience > 1 else ""
        values = ", then ".join(f"{value:g}" for value in self.values)
        return f"{values}: the next when {self.metric} is {' and '.join(bounds)}{often}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhenFlat:
    """Moves on to the next value when a metric no longer grows: its last window is hardly above the window before.

    MiroMind-M1 lets answers be longer in stages, each when the length of answers saturates (CAMPO, arXiv 2507.14683). UNSURE:
    its numeric rule; here the mean ``a`` of the newest ``window`` observations is compared with the mean ``b`` of the ``window``
    before them, and ``a - b <= tolerance |b|`` moves on. Observations are counted anew for each value. A step without the metric
    does not count; the last value stays.

    Attributes:
        metric: by its name in ``metrics.jsonl``, such as ``length/mean``; as `WhenReached`.
        values: in order; the first holds from the start.
        window: observations whose mean is compared with that of as many before.
        tolerance: relative growth from which the metric still grows, at least 0.

    Raises:
        ConfigError: no values or one that is not finite, a window below 1, a tolerance below 0, or a metric that no two runs
            have alike.

    >>> longer = WhenFlat(metric="length/mean", values=(16384, 32768), window=2, tolerance=0.05)
    >>> state = longer.init()
    >>> for length in (100, 200, 300, 320, 310, 315):
    ...     state = longer.advance(state, {"length/mean": length})
    >>> longer.at(6, state)
    32768.0
    """

    metric: str
    values: tuple[float, ...]
    window: int = 20
    tolerance: float = 0.02

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked_values(self.values, "WhenFlat.values"))
        check_positive(self, "window")
        if not 0.0 <= self.tolerance < math.inf:
            raise ConfigError(f"WhenFlat.tolerance={self.tolerance}; use a share of the metric's level, at least 0")
        _check_repeatable(self.metric, "WhenFlat.metric")

    @property
    def reads(self) -> tuple[str, ...]:
        """Its metric."""
        return (self.metric,)

    def init(self) -> State:
        """The first value, and no observation."""
        return {"index": 0, "seen": []}

    def advance(self, state: State, metrics: Mapping[str, float]) -> State:
        """The state after the metrics of a finished step."""
        if self.metric not in metrics or int(state["index"]) == len(self.values) - 1:
            return state
        seen = [*state["seen"], float(metrics[self.metric])][-2 * self.window :]
        if len(seen) < 2 * self.window:
            return {**state, "seen": seen}
        before, newest = sum(seen[: self.window]) / self.window, sum(seen[self.window :]) / self.window
        if newest - before > self.tolerance * abs(before):
            return {**state, "seen": seen}
        return {"index": int(state["index"]) + 1, "seen": []}

    def at(self, step: int, state: State) -> float:
        """The value in force."""
        return self.values[int(state["index"])]

    def describe(self) -> str:
        """Its values, and what moves it on."""
        values = ", then ".join(f"{value:g}" for value in self.values)
        return (
            f"{values}: the next when {self.metric} has grown by at most {self.tolerance:.3g} of itself over {self.window} steps"
        )


def _check_repeatable(metric: str, place: str) -> None:
    """Raises ConfigError for a metric that no two runs have alike, or for none."""
    if not metric or metric.startswith(("time/", "verify/")):
        raise ConfigError(
            f"{place}={metric!r}: seconds and counts of the pool differ between two runs of one seed, so "
            "that none could be resumed exactly; use another metric of a step, such as reward/mean, or of an evaluation"
        )


def _checked_values(values: tuple[float, ...], place: str) -> tuple[float, ...]:
    """The values as floats, so that a run is the same whichever way it is written down."""
    if not values:
        raise ConfigError(f"{place}={values!r} is empty; give at least one value")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{place}={values!r}: {value!r} is no finite number; give numbers")
    return tuple(map(float, values))


def _checked_points(points: tuple[tuple[int, float], ...], name: str) -> tuple[tuple[int, float], ...]:
    place = f"{name}.points"
    example = f"{name}(points=((0, 1.0), (100, 2.0)))"
    try:
        pairs = [(step, value) for step, value in points]
    except (TypeError, ValueError):
        raise ConfigError(f"{place}={points!r}: a point is a pair of a step and a value, as in {example}") from None
    values = _checked_values(tuple(value for _, value in pairs), place)
    steps = [step for step, _ in pairs]
    if any(isinstance(step, bool) or not isinstance(step, int) for step in steps):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{place}={points!r}: steps are whole numbers, as in {example}")
    if steps[0] != 0:
        raise ConfigError(f"{place}={points!r}: no value is said for the steps before {steps[0]}; begin with step 0")
    if any(later <= earlier for earlier, later in pairwise(steps)):
        raise ConfigError(f"{place}={points!r}: the steps {steps} do not ascend; sort them, each step once")
    return tuple(zip(steps, values, strict=True))
