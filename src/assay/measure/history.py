"""The course of a run's metrics: one series of (step, value) per name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from assay.runs.reader import MetricLine

__all__ = ["History", "Series"]

SUPERVISED = "warm-up"
"""Stage whose numbers are not those of reinforcement learning."""

PREFERENCES = "preferences"
"""Stage that learns from given preferences."""

REINFORCE = "rl"
"""Stage of reinforcement learning."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One metric over the steps at which it was recorded.

    Attributes:
        steps: ``[K]`` int64, ascending.
        values: ``[K]`` float64; NaN and infinities are kept, so that a reader can see them.
    """

    steps: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.steps)

    def finite(self) -> Series:
        """Without the points whose value is NaN or infinite."""
        keep = np.isfinite(self.values)
        return Series(self.steps[keep], self.values[keep])

    def first(self, n: int) -> Series:
        """The first ``n`` points."""
        return Series(self.steps[:n], self.values[:n])

    def last(self, n: int) -> Series:
        """The last ``n`` points."""
        return Series(self.steps[-n:], self.values[-n:]) if n else self.first(0)

    def window(self, share: float = 0.1, least: int = 5, most: int = 50) -> int:
        """How many points stand for "at the start" and "lately": a share of all, within bounds."""
        return max(min(least, len(self)), min(most, round(share * len(self))))

    @property
    def mean(self) -> float:
        """Mean of the values; NaN when there are none."""
        return float(self.values.mean()) if len(self) else float("nan")

    @property
    def span(self) -> tuple[int, int]:
        """First and last step.

        Raises:
            IndexError: an empty series.
        """
        return int(self.steps[0]), int(self.steps[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Practised:
    """How well the training rows of a run were answered when it first met them all, and the last time.

    Attributes:
        rows, groups: rows met, and groups drawn of them.
        before, after: mean success over the first and the last ``rows`` groups.
        error: standard error of ``after - before``.
    """

    rows: int
    groups: int
    before: float
    after: float
    error: float

    @property
    def times(self) -> float:
        """How often each row was drawn, on average."""
        return self.groups / self.rows


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """All series of a run.

    Attributes:
        series: name to series, never empty ones.
        stages: (stage, first step, last step) in order.
        learned: name to the index of the series' first point from a stage of reinforcement learning; absent where there is none.
        first_update: first step whose update `learning` is about: an evaluation before it is one of the base.
        eval_items: held-out items behind the smallest evaluation; 0 when unknown.
        item_scores: ``eval/MODE/all`` to step to item id to score, so that evaluations of different sizes can be compared on the
            items that both have; empty when unknown.
        held_out: whether the evaluations are of tasks that training never sees.
        practised: how the training rows were answered; None when unknown.
        vocabulary: tokens that the policy chooses among; 0 when unknown.

    >>> from assay.runs import MetricLine
    >>> h = History.of([MetricLine(step=s, stage="rl", metrics={"reward/mean": s / 4}) for s in range(1, 5)])
    >>> h["reward/mean"].last(2).mean, h["no/such"].steps.tolist(), h.stages
    (0.875, [], (('rl', 1, 4),))
    """

    series: Mapping[str, Series]
    stages: tuple[tuple[str, int, int], ...] = ()
    learned: Mapping[str, int] = field(default_factory=dict[str, int])
    first_update: int = field(default=0, kw_only=True)
    eval_items: int = field(default=0, kw_only=True)
    item_scores: Mapping[str, Mapping[int, Mapping[str, float]]] = field(
        default_factory=dict[str, Mapping[int, Mapping[str, float]]], kw_only=True
    )
    held_out: bool = field(default=True, kw_only=True)
    practised: Practised | None = field(default=None, kw_only=True)
    vocabulary: int = field(default=0, kw_only=True)

    @staticmethod
    def of(lines: Iterable[MetricLine], eval_items: int = 0) -> History:
        """From metric lines; of several values of a metric at one step the last counts."""
        points: dict[str, dict[int, float]] = {}
        stages: list[tuple[str, int, int]] = []
        learned: dict[str, int] = {}
        ordered = sorted(lines, key=lambda x: x.step)
        begin = _begin_of_learning(ordered)
        for at, line in enumerate(ordered):
            if stages and stages[-1][0] == line.stage:
                stages[-1] = (line.stage, stages[-1][1], line.step)
            else:
                stages.append((line.stage, line.step, line.step))
            for name, value in line.metrics.items():
                of_name = points.setdefault(name, {})
                of_name[line.step] = value
                if begin is not None and at >= begin and line.stage != SUPERVISED:
                    learned.setdefault(name, len(of_name) - 1)
        series = {name: Series(np.array(list(p), np.int64), np.array(list(p.values()), np.float64)) for name, p in points.items()}
        first = _first_update(ordered[begin or 0 :])
        return History(series, tuple(stages), learned, first_update=first, eval_items=eval_items)

    def __getitem__(self, name: str) -> Series:
        """The series, with no points where the run has none."""
        return self.series.get(name, Series(np.zeros(0, np.int64), np.zeros(0)))

    def names(self, prefix: str = "") -> tuple[str, ...]:
        """Names of the series that begin with ``prefix``, sorted."""
        return tuple(sorted(n for n in self.series if n.startswith(prefix)))

    @property
    def learning_from(self) -> int:
        """First step recorded for reinforcement learning; the first step of all where no stage is one."""
        starts = self._learning_stages() or self.stages
        return starts[0][1] if starts else 0

    def _learning_stages(self) -> tuple[tuple[str, int, int], ...]:
        return tuple(s for s in self.stages if s[0] != SUPERVISED and s[2] >= self.first_update)

    def learning(self) -> History:
        """The part from the start of reinforcement learning on; evaluations also keep their last point before it, the base.

        A history without such a stage is returned whole.
        """
        stages = self._learning_stages()
        if not stages:
            return self
        kept: dict[str, Series] = {}
        for name, s in self.series.items():
            begin = self.learned.get(name, len(s))
            if name.startswith("eval/") and begin and not (begin < len(s) and s.steps[begin] < self.first_update):
                begin -= 1
            if begin < len(s):
                kept[name] = Series(s.steps[begin:], s.values[begin:])
        return replace(self, series=kept, stages=stages, learned=dict.fromkeys(kept, 0))

    def supervised_part(self, name: str) -> Series:
        """The part of one series that was recorded before reinforcement learning."""
        s = self[name]
        return s.first(self.learned.get(name, len(s)))


def _begin_of_learning(lines: Sequence[MetricLine]) -> int | None:
    """The first line of reinforcement learning; without any, of learning from preferences, else of any stage but a warm-up."""
    rewarded = [line.stage for line in lines if "reward/mean" in line.metrics]
    wanted = rewarded[:1] or [PREFERENCES] * any(line.stage == PREFERENCES for line in lines)
    found = (i for i, line in enumerate(lines) if (line.stage in wanted if wanted else line.stage != SUPERVISED))
    return next(found, None)


def _first_update(lines: Sequence[MetricLine]) -> int:
    """The step of the first line of an update; where none says so, the step behind the first line."""
    updates = (line.step for line in lines if "reward/mean" in line.metrics or "loss/total" in line.metrics)
    return next(updates, lines[0].step + 1 if lines else 0)
