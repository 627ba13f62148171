"""Rewards by length: soft limits, cosine schedules, comparison with the group. The task's metric stays what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm, check_behind, check_one_handling
from assay.objective.credit.shape import solved_rollouts
from assay.objective.credit.stats import Largest, column, each, peers
from assay.objective.reducers import F, Partials

__all__ = ["CosineLength", "CostInGroup", "LengthInGroup", "Overlong", "TruncatedReward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlong(CreditTerm):
    """Soft penalty on long answers (DAPO): added to the reward is 0 up to ``limit - cache`` tokens, then falls linearly to -1
    at ``limit``.

    Attributes:
        limit: answer length at which the full penalty is reached.
        cache: length of the ramp.

    >>> from assay.objective import Overlong
    >>> Overlong(limit=20480, cache=4096).ramp(np.array([16384, 18432, 20480, 30000])).tolist()
    [0.0, -0.5, -1.0, -1.0]
    """

    limit: int
    cache: int

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not 0 < self.cache <= self.limit:
            raise ConfigError(f"Overlong.cache={self.cache} must be in (0, limit={self.limit}]")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """How long a rollout is."""
        return ("length",)

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: answers that were cut off are treated one way."""
        check_one_handling(self, before)

    @property
    def handles_truncation(self) -> bool:
        """It penalises them, and what is nearly as long."""
        return True

    def ramp(self, length: F) -> F:
        """The penalty at each length."""
        return np.clip((self.limit - self.cache - length) / self.cache, -1.0, 0.0)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds the penalty to the reward."""
        return credit.with_reward(credit.reward + self.ramp(column(credit, "length")))


@dataclass(frozen=True, slots=True)
class TruncatedReward(CreditTerm):
    """Answers cut off at the length limit keep ``factor`` of their reward: 0 pays them nothing (ProRL v2).

    Attributes:
        factor: from 0 to less than 1.
    """

    factor: float = 0.0

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not 0 <= self.factor < 1:
            raise ConfigError(f"TruncatedReward.factor={self.factor}; use a number in [0, 1)")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """Whether a rollout was cut off."""
        return ("truncated",)

    @property
    def handles_truncation(self) -> bool:
        """It pays them less."""
        return True

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: answers that were cut off are treated one way."""
        check_one_handling(self, before)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Lowers their reward."""
        return credit.with_reward(np.where(column(credit, "truncated") != 0, self.factor * credit.reward, credit.reward))


@dataclass(frozen=True, slots=True, kw_only=True)
class CosineLength(CreditTerm):
    """A reward by class and length along half a cosine, in place of the reward ("Demystifying Long Chain-of-Thought", 2025).

    ``R = far + (near - far) (1 + cos(pi min(L / limit, 1))) / 2``, from ``near`` at length 0 to ``far`` at the limit: short
    correct answers are worth more than long ones, short wrong ones less.

    Attributes:
        limit: answer length at which the far end is reached.
        correct, wrong: the near and the far value of each class.
        threshold: task metric from which a rollout is correct.
    """

    limit: int
    correct: tuple[float, float] = (1.0, 0.5)
    wrong: tuple[float, float] = (-1.0, -0.5)
    threshold: float = 0.5

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ConfigError(f"CosineLength.limit={self.limit}; use the generation budget in tokens")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """How long a rollout is."""
        return ("length",)

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it would undo what other shapes did."""
        check_behind(self, before, ("shape",), "it replaces the reward, and with it what was added before: put it first")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Replaces the reward."""
        near, far = np.where(solved_rollouts(credit, self.threshold)[:, None], self.correct, self.wrong).T
        share = (1.0 + np.cos(np.pi * np.minimum(column(credit, "length") / self.limit, 1.0))) / 2
        return credit.with_reward(far + (near - far) * share)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthInGroup(CreditTerm):
    """Length compared with the group's (Kimi k1.5): added is ``coef * l_i``, ``l_i = 1/2 - (L_i - min) / (max - min)``, for wrong
    rollouts at most 0. Nothing is added in a group whose rollouts are all equally long.

    Attributes:
        coef: weight.
        threshold: task metric from which a rollout is correct.
    """

    coef: float = 1.0
    threshold: float = 0.5

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not self.coef > 0:
            raise ConfigError(f"LengthInGroup.coef={self.coef} does nothing or rewards length; use a positive number")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """How long a rollout is."""
        return ("length",)

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    def local(self, credit: Credit) -> Partials:
        """The longest and the shortest of each group."""
        here = credit.counted
        length, group = column(credit, "length")[here], credit.group[here]
        return {
            "long": Largest.of(length, group, credit.groups, 1),
            "short": Largest.of(-length, group, credit.groups, 1),
        }

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds the comparison."""
        long, short = stats["long"].values[credit.group, 0], -stats["short"].values[credit.group, 0]
        apart = np.isfinite(long) & (long > short)
        low, width = np.where(apart, short, 0.0), np.where(apart, long - short, 1.0)
        worth = np.where(apart, 0.5 - (column(credit, "length") - low) / width, 0.0)
        worth = np.where(solved_rollouts(credit, self.threshold), worth, np.minimum(worth, 0.0))
        return credit.with_reward(credit.reward + self.coef * worth)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostInGroup(CreditTerm):
    """Costs in proportion to how well the group does (prime-rl): ``R' = R - mu_q sum_c w_c x_ic / max_q x_c``.

    A group that solves nothing pays nothing for length; one that solves everything pays most.

    Attributes:
        costs: pairs of a column of the rollouts and its weight, such as ``(("length", 0.25), ("turns", 0.1))``.
    """

    costs: tuple[tuple[str, float], ...] = (("length", 0.25),)

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not self.costs or any(not w > 0 for _, w in self.costs):
            raise ConfigError(f"CostInGroup.costs={self.costs}: name at least one column, each with a positive weight")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The costs."""
        return tuple(name for name, _ in self.costs)

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    def local(self, credit: Credit) -> Partials:
        """Moments of the rewards, and the largest cost of each kind."""
        here, group = credit.counted, credit.group[credit.counted]
        most = {
            f"most.{i}": Largest.of(column(credit, n)[here], group, credit.groups, 1) for i, n in enumerate(self.rollout_columns)
        }
        return {"moments": peers(credit, credit.reward), **most}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Subtracts the costs."""
        share = np.zeros(len(credit.reward))
        for i, (name, weight) in enumerate(self.costs):
            most = np.maximum(stats[f"most.{i}"].values[credit.group, 0], 1.0)
            share += weight * column(credit, name) / most
        return credit.with_reward(credit.reward - each(credit, stats["moments"]).mean * share)
