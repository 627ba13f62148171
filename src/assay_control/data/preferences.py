"""Rewards that are learned from comparisons, in place of those of a data set."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from assay.core import ConfigError, generator
from assay_control.data.recipes import OfflineData, with_returns
from assay_control.records import Array, Episode, Transitions
from assay_control.worlds.base import World

__all__ = ["Labeller", "OracleLabels", "PreferredRewards", "fit_preferences"]


class Labeller(Protocol):
    """Says of pairs of steps which is better: a frozen dataclass."""

    def label(self, rows: Transitions, first: Array, second: Array, seed: int) -> Array:
        """``[m]`` 1 where ``second`` is better, 0 where ``first`` is, -1 where it cannot say."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleLabels:
    """The true reward compares; some answers are wrong, and close pairs are not answered.

    It stands for a vision-language model that is shown two pictures.

    Attributes:
        error: share of answers that are turned around; at one half they say nothing.
        unsure: share of pairs, those with the closest rewards, that are not answered.

    Raises:
        ConfigError: no share.
    """

    error: float = 0.1
    unsure: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.error <= 0.5 or not 0 <= self.unsure < 1:
            raise ConfigError(f"OracleLabels(error={self.error}, unsure={self.unsure}): use an error up to one half, and a share")

    def label(self, rows: Transitions, first: Array, second: Array, seed: int) -> Array:
        """As `Labeller.label`."""
        gap = rows.reward[second].astype(np.float64) - rows.reward[first]
        answer = (gap > 0).astype(np.int64)
        wrong = generator("control/labels", seed).random(len(gap)) < self.error
        answer = np.where(wrong, 1 - answer, answer)
        close = np.abs(gap) < np.quantile(np.abs(gap), self.unsure) if self.unsure else gap == 0
        return np.where(close | (gap == 0), -1, answer)


def fit_preferences(first: Array, second: Array, better: Array, ridge: float = 0.3, rounds: int = 12) -> Array:
    """``[F]`` weights of a reward that is linear in features, by Bradley and Terry's model: ``P(2 ≻ 1) = σ(w·φ_2 - w·φ_1)``.

    Args:
        first, second: ``[m, F]`` features of the two.
        better: ``[m]`` 1 where the second is better.
        ridge: weight of ``|w|²/2``, which makes the optimum unique.
        rounds: of Newton's method.

    >>> w = fit_preferences(np.zeros((2, 1)), np.array([[1.0], [2.0]]), np.array([1, 1]))
    >>> bool(w[0] > 0)
    True
    """
    x = second - first
    w = np.zeros(x.shape[1])
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        slope = x.T @ (p - better) + ridge * w
        curve = (x * (p * (1 - p))[:, None]).T @ x + ridge * np.eye(len(w))
        w = w - np.linalg.solve(curve, slope)
    return w


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredRewards:
    """A data set whose rewards are replaced by ones that are learned from comparisons of its steps.

    ``P(2 ≻ 1) = σ(r_2 - r_1)``; ``members`` fits on random features of scaled observations and actions, whose mean, shifted and
    scaled to the range [-1, 0], is the reward. Pairs are drawn evenly. After offline RL from feedback of vision-language models
    (2024), whose labels come of pictures and whose reward is a network; here a `Labeller` answers, by default from the true
    reward with errors.

    Attributes:
        base: the data set before; its rewards are seen by the labeller alone.
        labeller: who compares.
        labels: pairs that are asked about.
        members: of the ensemble.
        features: random ones of each member.
        seed: of pairs, answers and features.

    Raises:
        ConfigError: a number below 1.
    """

    base: OfflineData
    labeller: Labeller = OracleLabels()
    labels: int = 400
    members: int = 3
    features: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.labels, self.members, self.features) < 1:
            raise ConfigError(
                f"PreferredRewards(labels={self.labels}, members={self.members}, features={self.features}): "
                "use whole numbers from 1"
            )

    @property
    def world(self) -> World:
        """That of the data."""
        return self.base.world

    def rewards(self, rows: Transitions) -> Array:
        """``[n]`` learned rewards in [-1, 0]."""
        pairs = generator("control/pairs", self.seed).integers(0, len(rows), (2, self.labels))
        answer = self.labeller.label(rows, pairs[0], pairs[1], self.seed)
        told = answer >= 0
        total = np.zeros(len(rows))
        for member in range(self.members):
            phi = self._features(rows, member)
            total += phi @ fit_preferences(phi[pairs[0]][told], phi[pairs[1]][told], answer[told])
        spread = float(np.ptp(total))
        return (total - total.max()) / (spread if spread > 0 else 1.0)

    def _features(self, rows: Transitions, member: int) -> Array:
        """``[n, F]`` cosines of random directions of what was seen and done, and of what followed."""
        action = rows.action.reshape(len(rows), -1).astype(np.float64)
        x = np.column_stack([rows.observation, action, rows.next_observation]).astype(np.float64)
        x = (x - x.mean(0)) / (x.std(0) + 1e-3)
        rng = generator("control/features", self.seed, str(member))
        way = rng.standard_normal((x.shape[1], self.features)) / np.sqrt(x.shape[1])
        return np.cos(x @ way + rng.uniform(0, 2 * np.pi, self.features))

    def rows(self, discount: float) -> Transitions:
        """The data with learned rewards and the returns of these."""
        held = self.base.rows(discount)
        return with_returns(dataclasses.replace(held, reward=self.rewards(held).astype(np.float32)), discount)

    def cached(self, folder: Path | None = None) -> list[Episode]:
        """The episodes as they were, with the true rewards."""
        return self.base.cached(folder)
