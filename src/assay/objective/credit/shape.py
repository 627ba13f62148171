"""Transforms of the reward by numbers that rows bring, and by class. The task's metric stays what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm, check_behind
from assay.objective.credit.stats import column
from assay.objective.reducers import Partials

__all__ = ["Bonus", "PairwiseWin", "Rescale", "ScaleByClass", "solved_rollouts"]

_INF = float("inf")


def solved_rollouts(credit: Credit, threshold: float) -> NDArray[np.bool_]:
    """``[R]`` rollouts whose task metric reaches a threshold, up to rounding."""
    return credit.metric >= threshold - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale(CreditTerm):
    """``clip(scale * R + shift, low, high)``: the reward on another scale, within bounds.

    Attributes:
        scale, shift: of the reward; a negative scale is refused.
        low, high: bounds on the result.
    """

    scale: float = 1.0
    shift: float = 0.0
    low: float = -_INF
    high: float = _INF

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not 0 < self.scale < _INF or not abs(self.shift) < _INF:
            raise ConfigError(f"Rescale(scale={self.scale}, shift={self.shift}): use a positive scale and a finite shift")
        if not self.low < self.high:
            raise ConfigError(f"Rescale(low={self.low}, high={self.high}): every reward would be the same; use low < high")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Rescales and clips."""
        return credit.with_reward(np.clip(self.scale * credit.reward + self.shift, self.low, self.high))


@dataclass(frozen=True, slots=True)
class Bonus(CreditTerm):
    """``R' = R + coef * c_i``: a number per rollout that rows bring, such as a novelty bonus or the cost of its tools.

    Attributes:
        column: the column of the rollouts.
        coef: its factor; negative for a cost.
    """

    column: str
    coef: float = 1.0

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not self.coef:
            raise ConfigError("Bonus.coef=0 does nothing; use another number or leave the term out")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds it."""
        return credit.with_reward(credit.reward + self.coef * column(credit, self.column))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairwiseWin(CreditTerm):
    """The chance that a judge prefers the rollout to a fixed anchor answer, in place of the reward.

    ``R_i = (P(o_i > y_a) + 1 - P(y_a > o_i)) / 2``: the mean over both orders of presentation. A judge without a bias of position
    gives the same either way, and a rollout equal to the anchor gets 1/2.

    Attributes:
        win: column of the rollouts with ``P(o_i > y_a)``.
        loss: column with ``P(y_a > o_i)``, asked in the other order; None when only one order was asked.
        centre: subtracted from the result.
    """

    win: str = "win"
    loss: str | None = "loss"
    centre: float = 0.0

    kind: ClassVar[str] = "shape"

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The judge's columns."""
        return (self.win,) if self.loss is None else (self.win, self.loss)

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it would undo what other shapes did."""
        check_behind(self, before, ("shape",), "it replaces the reward, and with it what was added before: put it first")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Replaces the reward."""
        win = column(credit, self.win)
        if self.loss is not None:
            win = (win + 1.0 - column(credit, self.loss)) / 2
        return credit.with_reward(win - self.centre)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleByClass(CreditTerm):
    """One reward for correct rollouts, another for wrong ones (W-GRPO: 1 and ``-lambda``), in place of the reward.

    Two values are an affine map of any other two: a group mean *and* a group's standard deviation after it cancel both. They act
    under a baseline alone, or under the batch's standard deviation.

    Attributes:
        correct, wrong: the two rewards.
        threshold: task metric from which a rollout is correct.
    """

    correct: float = 1.0
    wrong: float = -1.0
    threshold: float = 0.5

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not self.correct > self.wrong:
            raise ConfigError(f"ScaleByClass(correct={self.correct}, wrong={self.wrong}): correct rollouts must be worth more")

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it would undo what other shapes did."""
        check_behind(self, before, ("shape",), "it replaces the reward, and with it what was added before: put it first")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Replaces the reward."""
        return credit.with_reward(np.where(solved_rollouts(credit, self.threshold), self.correct, self.wrong))
