"""Comparisons that may rank: two arms, each tuned on the same budget, judged on seeds that tuned nothing, against a prediction.

A comparison is one `Comparison`; `evidence.cells.comparisons` holds those of this repository, and a new one is a value there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.import_path import filed_as
from assay.core.seeds import generator
from assay.lab.gate import accuracy
from assay.measure.intervals import Interval
from assay.train.reinforce import Reinforce

__all__ = ["Arm", "Comparison", "ComparisonResult", "over_seeds"]

VERDICTS = ("higher", "lower", "no difference seen")

_T = {5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Student's 97.5 % quantile by number of seeds."""

_RESAMPLES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One of two ways.

    Attributes:
        name: in tables and file names.
        stage: what it does; its learning rate is replaced by those of the grid.
    """

    name: str
    stage: Reinforce


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A question, what is expected, and how it is decided; written before it is run.

    Attributes:
        name: of the comparison.
        question: in one sentence.
        rung: of the models that it is asked for, such as ``L0``.
        predicted: of the second arm against the first, in held-out sampled accuracy after the last step: one of `VERDICTS`.
        because: why.
        arms: the two; equal steps, contexts and rollouts.
        rates: learning rates, the same grid for both arms.
        tuning: seeds that choose each arm's rate, by the mean of the metric; the lower rate where two are equal.
        test: seeds that decide, none of them among ``tuning``.

    Raises:
        ConfigError: budgets differ, a seed both tunes and tests, or too few seeds.
        UnknownNameError: the prediction is no verdict.

    Carries: Hyperparameters in RL and how to tune them (arXiv 2306.01324), in part.
    """

    name: str
    question: str
    rung: str
    predicted: str
    because: str
    arms: tuple[Arm, Arm]
    rates: tuple[float, ...]
    tuning: tuple[int, ...]
    test: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.predicted not in VERDICTS:
            raise UnknownNameError("verdict", self.predicted, VERDICTS)
        budgets = [(a.stage.steps, a.stage.groups, a.stage.group_size) for a in self.arms]
        if budgets[0] != budgets[1]:
            raise ConfigError(
                f"Comparison {self.name!r}: steps, groups and group_size are {budgets[0]} and {budgets[1]}; make them equal"
            )
        if both := sorted({*self.tuning} & {*self.test}):
            raise ConfigError(f"Comparison {self.name!r}: the seeds {both} both tune and test; keep them apart")
        if not self.tuning or not self.rates or len({*self.test}) not in _T:
            raise ConfigError(f"Comparison {self.name!r}: give rates, a tuning seed or more, and 5 to 10 different test seeds")

    @property
    def steps(self) -> int:
        """Rollout batches of every cell."""
        return self.arms[0].stage.steps

    def arm(self, name: str) -> Arm:
        """The arm of a name; raises UnknownNameError."""
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise UnknownNameError("arm", name, [a.name for a in self.arms])

    def kind(self, arm: Arm, rate: float) -> str:
        """What a cell of an arm at a rate is called: ``COMPARISON~ARM~RATE``."""
        return f"{self.name}~{arm.name}~{rate:g}"

    def tuning_cells(self) -> list[tuple[str, int, int | None]]:
        """Every rate of each arm at each tuning seed."""
        return [(self.kind(a, r), s, None) for s in self.tuning for r in self.rates for a in self.arms]

    def chosen_rates(self, records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Each arm's rate, by the records of `tuning_cells`."""
        mean = self.tuning_accuracy(records)
        return {a.name: max(sorted(self.rates), key=lambda r: mean[a.name, r]) for a in self.arms}

    def tuning_accuracy(self, records: Sequence[Mapping[str, Any]]) -> dict[tuple[str, float], float]:
        """Mean accuracy over the tuning seeds, by arm and rate."""
        by = {(r["kind"], r["seed"]): accuracy(r["now_sampled"]) for r in records}
        return {(a.name, r): float(np.mean([by[self.kind(a, r), s] for s in self.tuning])) for a in self.arms for r in self.rates}

    def test_cells(self, rates: Mapping[str, float]) -> list[tuple[str, int, int | None]]:
        """Each arm at its rate and each test seed."""
        return [(self.kind(a, rates[a.name]), s, None) for s in self.test for a in self.arms]

    def result_of(self, tuning: Sequence[Mapping[str, Any]], test: Sequence[Mapping[str, Any]]) -> ComparisonResult:
        """What the cells say."""
        rates = self.chosen_rates(tuning)
        by = {(r["kind"], r["seed"]): r["now_sampled"] for r in test}
        first, second = ([by[self.kind(a, rates[a.name]), s] for s in self.test] for a in self.arms)
        return ComparisonResult(
            comparison=self,
            rates=rates,
            tuned=self.tuning_accuracy(tuning),
            accuracy={a.name: tuple(map(accuracy, of)) for a, of in zip(self.arms, (first, second), strict=True)},
            difference=over_seeds([_gaps(a, b) for a, b in zip(first, second, strict=True)]),
        )


@filed_as("assay.lab.comparison:Found")
@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult:
    """What a comparison found.

    Attributes:
        comparison: that was asked.
        rates: chosen learning rate by arm.
        tuned: mean accuracy over the tuning seeds, by arm and rate.
        accuracy: of each test seed, by arm.
        difference: second arm minus first, over seeds and items.
    """

    comparison: Comparison
    rates: Mapping[str, float]
    tuned: Mapping[tuple[str, float], float]
    accuracy: Mapping[str, tuple[float, ...]]
    difference: Interval

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`: what the interval says of the second arm."""
        higher, lower, unseen = VERDICTS
        return higher if self.difference.low > 0 else lower if self.difference.high < 0 else unseen

    @property
    def edge(self) -> list[str]:
        """Arms whose rate is the lowest or the highest of the grid, so that a better one may lie beyond."""
        ends = (min(self.comparison.rates), max(self.comparison.rates))
        return [arm for arm, rate in self.rates.items() if rate in ends]


def over_seeds(gaps: Sequence[NDArray[np.float64]], seed: int = 0) -> Interval:
    """95 % interval of a mean difference over runs: runs are drawn anew, and in each run its items.

    Args:
        gaps: per seed ``[items]``, second minus first, each -1, 0 or 1.
        seed: of the resampling.

    The bootstrap's quantiles are moved outwards as Student's distribution asks for so few runs (the expanded percentile interval
    of Hesterberg 2015); plain ones would be too narrow by half.

    >>> over_seeds([np.array([1.0, 0.0, 1.0, 1.0])] * 5).low > 0
    True
    """
    n = len(gaps)
    rng = generator("lab/over-seeds", seed)
    shares = np.array([[(g == v).mean() for v in (-1, 0, 1)] for g in gaps])
    items = np.array([len(g) for g in gaps])
    runs = rng.integers(0, n, (_RESAMPLES, n))
    counts = rng.multinomial(items[runs], shares[runs])
    means = ((counts[..., 2] - counts[..., 0]) / items[runs]).mean(axis=1)
    tail = NormalDist().cdf(-_T[n] * np.sqrt(n / (n - 1)))
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(np.mean([g.mean() for g in gaps])), float(low), float(high), 0.95, n)


def _gaps(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """``[items]`` right under the second minus right under the first, item by item."""
    a, b = ({i["id"]: float(i["values"][0] >= 1.0) for i in items} for items in (first, second))
    return np.array([b[k] - a[k] for k in sorted(a)])
