"""Token weights and selections from the current policy: covariance, entropy, entropy change, probability.

Published code computes means, quantiles and maxima over a micro-batch. Here they run over the loss tokens of the whole optimiser
batch, on all ranks, once per optimiser step, from detached log-probabilities of the current policy (``logp_now``): no split can
change them. Ties are broken by a number that belongs to the token (`token_noise`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.objective.loss.token_noise import token_noise
from assay.objective.loss.weights import TokenWeight
from assay.objective.reducers import F, Lowest, Moments, Partials, Sum

__all__ = [
    "ClipCovariance",
    "EntropyChange",
    "Focal",
    "LowLogp",
    "ProbabilityGate",
    "Ranked",
    "TopCovariance",
    "TopEntropy",
]

_SIDES = ("all", "negative", "positive")
_ROUNDING = 1e-9
"""Of a fraction times a count: a tenth of thirty tokens are three."""


def counted_tokens(batch: Batch) -> NDArray[np.bool_]:
    """``[N]`` loss tokens of rollouts that no filter dropped."""
    mask = np.asarray(batch.token("mask"), np.bool_)
    keep = batch.rollouts.get("keep")
    return mask if keep is None else mask & np.repeat(keep[batch.rows["rollout"]] > 0, batch.lengths)


def _count(stats: Partials) -> int:
    return round(float(stats["eligible"].values[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked(TokenWeight):
    """Base of the weights that pick a share of the tokens by rank: the lowest by `order` of those that are `eligible`.

    Attributes:
        fraction: share of the eligible tokens, in (0, 1]; a fraction, not a percentage.
    """

    fraction: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise ConfigError(
                f"{type(self).__name__}.fraction={self.fraction} is a share of the tokens, no percentage; use a number in "
                "(0, 1], or leave the part out for none"
            )

    @property
    def scope(self) -> Scope:
        """The optimiser batch."""
        return Scope.BATCH

    def eligible(self, batch: Batch) -> NDArray[np.bool_]:
        """``[N]`` tokens that may be picked."""
        return counted_tokens(batch)

    def size(self, count: int) -> int:
        """How many of ``count`` tokens are picked: the share rounded down, at least one unless there are none."""
        return min(count, max(1, math.floor(self.fraction * count + _ROUNDING)))

    @abstractmethod
    def order(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` what tokens are ranked by, lowest first."""

    def local(self, batch: Batch) -> Partials:
        """How many tokens may be picked."""
        return {"eligible": Sum(np.array([float(self.eligible(batch).sum())]))}

    def second_pass(self, batch: Batch, stats: Partials) -> Partials:
        """The lowest of them."""
        return {"lowest": Lowest.of(self._keys(batch, stats)[self.eligible(batch)], self.size(_count(stats)))}

    def selection_mask(self, batch: Batch, stats: Partials) -> NDArray[np.bool_]:
        """``[N]`` the tokens that are picked."""
        lowest: Lowest = stats["lowest"]
        return self.eligible(batch) & lowest.holds(self._keys(batch, stats))

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """1 where picked, else 0."""
        return self.selection_mask(batch, stats).astype(np.float64)

    def _keys(self, batch: Batch, stats: Partials) -> F:
        return np.stack([self.order(batch, stats), token_noise(batch, type(self).__name__)], 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LowLogp(Ranked):
    """Picks the least likely tokens: the lowest ``fraction`` by ``logp_now`` (Lp-Reg: 0.01 of those with A < 0).

    Attributes:
        side: which tokens compete, by the sign of their advantage: ``all``, ``negative`` or ``positive``.
    """

    fraction: float = 0.01
    side: str = "negative"

    def __post_init__(self) -> None:
        Ranked.__post_init__(self)
        if self.side not in _SIDES:
            raise UnknownNameError("side", self.side, _SIDES)

    @property
    def needs(self) -> tuple[str, ...]:
        """Current log-probabilities, and advantages when their sign matters."""
        return ("logp_now",) if self.side == "all" else ("logp_now", "advantage")

    def eligible(self, batch: Batch) -> NDArray[np.bool_]:
        """``[N]`` loss tokens of the side."""
        if self.side == "all":
            return counted_tokens(batch)
        advantage = batch.token("advantage")
        return counted_tokens(batch) & (advantage < 0 if self.side == "negative" else advantage > 0)

    def order(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` log-probabilities."""
        return np.asarray(batch.token("logp_now"), np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopEntropy(Ranked):
    """Picks the tokens at the most uncertain places: those from the quantile ``1 - fraction`` of the entropies upwards (the 80/20
    rule; TRL's entropy mask). All are picked with 1, the most uncertain one alone towards 0.

    Attributes:
        column: token column of entropies: of the current policy, or ``entropy_old``, or the sampler's own ``entropy``.
        normalise: divide by the share that is picked, so that with `Token` the mean runs over the picked tokens alone; else the
            others still count in denominators (TRL).
    """

    column: str = "entropy_now"
    normalise: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The entropies."""
        return (self.column,)

    def size(self, count: int) -> int:
        """Tokens from the (interpolated) quantile upwards."""
        return count - math.ceil((1 - self.fraction) * (count - 1) - _ROUNDING) if count else 0

    def order(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` minus the entropies."""
        return -np.asarray(batch.token(self.column), np.float64)

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """1, or one over the share that is picked; 0 elsewhere."""
        count = _count(stats)
        factor = count / self.size(count) if self.normalise and count else 1.0
        return np.where(self.selection_mask(batch, stats), factor, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopCovariance(Ranked):
    """Picks the tokens that move entropy most: the top ``fraction`` by ``cov_t = (A_t - mean A)(logp_t - mean logp)`` (KL-Cov).

    Attributes:
        fraction: 0.002 in the authors' 7B script, 0.0002 at 32B (their ``k_percent`` of 0.2 and 0.02 is a percentage).
    """

    fraction: float = 0.002

    @property
    def needs(self) -> tuple[str, ...]:
        """Advantages and current log-probabilities."""
        return ("advantage", "logp_now")

    def local(self, batch: Batch) -> Partials:
        """Moments of both, and how many tokens may be picked."""
        here = counted_tokens(batch)
        moments = {n: Moments.of(np.asarray(batch.token(n), np.float64)[here]) for n in self.needs[:2]}
        return {**moments, "eligible": Sum(np.array([float(here.sum())]))}

    def covariance(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` each token's share of the covariance times the number of tokens."""
        gaps = [np.asarray(batch.token(n), np.float64) - stats[n].mean[0] for n in ("advantage", "logp_now")]
        return gaps[0] * gaps[1]

    def order(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` minus the covariances."""
        return -self.covariance(batch, stats)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipCovariance(TopCovariance):
    """Silences a random subset of the tokens with ``least < cov < most`` that the ratio's own clip leaves alone (Clip-Cov).

    Their weight is 0. The subset has ``fraction`` of *all* loss tokens, or all candidates where there are fewer. It is a function
    of ``seed``, of the weights' version, and of the tokens themselves.

    Attributes:
        fraction: 0.0002 in the authors' scripts.
        least, most: bounds on the covariance of a candidate.
        low, high: distances from 1 at which the ratio is clipped: those of the policy term's `MinClip`.
        seed: of the random choice.
    """

    fraction: float = 0.0002
    least: float = 1.0
    most: float = 5.0
    low: float = 1.0
    high: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        TopCovariance.__post_init__(self)
        if not self.least < self.most:
            raise ConfigError(f"ClipCovariance(least={self.least}, most={self.most}): no token lies between; use least < most")
        if not 0 <= self.low <= 1 or not self.high >= 0:
            raise ConfigError(f"ClipCovariance(low={self.low}, high={self.high}): use those of MinClip, 0 <= low <= 1, high >= 0")

    @property
    def needs(self) -> tuple[str, ...]:
        """Advantages, current and old log-probabilities."""
        return ("advantage", "logp_now", "logp_old")

    def second_pass(self, batch: Batch, stats: Partials) -> Partials:
        """The candidates with the lowest draws."""
        return {"lowest": Lowest.of(self._draws(batch)[self._candidates(batch, stats)], self.size(_count(stats)))}

    def selection_mask(self, batch: Batch, stats: Partials) -> NDArray[np.bool_]:
        """``[N]`` the tokens that are silenced."""
        lowest: Lowest = stats["lowest"]
        return self._candidates(batch, stats) & lowest.holds(self._draws(batch))

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """0 where picked, else 1."""
        return np.where(self.selection_mask(batch, stats), 0.0, 1.0)

    def _candidates(self, batch: Batch, stats: Partials) -> NDArray[np.bool_]:
        gap = np.asarray(batch.token("logp_now"), np.float64) - batch.token("logp_old")
        ratio, advantage = np.exp(np.clip(gap, -20.0, 20.0)), batch.token("advantage")
        clipped = ((advantage > 0) & (ratio > 1 + self.high)) | ((advantage < 0) & (ratio < 1 - self.low))
        value = self.covariance(batch, stats)
        return counted_tokens(batch) & ~clipped & (value > self.least) & (value < self.most)

    def _draws(self, batch: Batch) -> F:
        return token_noise(batch, "ClipCovariance", self.seed, batch.tokens["logp_now"].version)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropyChange(TokenWeight):
    """STEER's weight: the more a token's update would change the entropy, the less it counts.

    ``Omega = (A / p_old) p (1 - p) (log p + H)``; weight ``exp(-k |Omega|)``, ``k = -log(floor) / max(max_t |Omega|, least)``, in
    ``[floor, 1]``. With a ``ceiling`` the map is linear instead: ``ceiling`` at the smallest ``|Omega|``, ``floor`` at the
    largest, their middle when all are equal.

    Attributes:
        floor: weight of the largest change.
        least: a largest change below it does not reach the floor.
        ceiling: largest weight of the linear map (1.2 in the released code); None for the exponential one.
    """

    floor: float = 0.8
    least: float = 0.02
    ceiling: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.floor < 1 or not self.least > 0:
            raise ConfigError(f"EntropyChange(floor={self.floor}, least={self.least}): use floor in (0, 1) and least > 0")
        if self.ceiling is not None and not self.ceiling >= 1:
            raise ConfigError(f"EntropyChange.ceiling={self.ceiling}; the linear map ends at 1 or above, e.g. 1.2")

    @property
    def scope(self) -> Scope:
        """The optimiser batch."""
        return Scope.BATCH

    @property
    def needs(self) -> tuple[str, ...]:
        """Advantages, current and old log-probabilities, current entropies."""
        return ("advantage", "logp_now", "logp_old", "entropy_now")

    def local(self, batch: Batch) -> Partials:
        """The largest and the smallest change."""
        change = self.change(batch)[counted_tokens(batch)]
        return {"largest": Lowest.of(-change, 1), "smallest": Lowest.of(change, 1)}

    def change(self, batch: Batch) -> F:
        """``[N]`` ``|Omega|``."""
        advantage, now, old, entropy = (np.asarray(batch.token(n), np.float64) for n in self.needs)
        p, before = np.clip(np.exp(now), 1e-8, 1 - 1e-8), np.clip(np.exp(old), 1e-8, 1.0)
        return np.abs(advantage / before * p * (1 - p) * (np.log(p) + entropy))

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` weights, 0 outside the loss mask."""
        here = np.asarray(batch.token("mask"), np.bool_)
        change, most, fewest = np.where(here, self.change(batch), 0.0), -stats["largest"].bound, stats["smallest"].bound
        if self.ceiling is None:
            return here * np.clip(np.exp(math.log(self.floor) * change / max(most, self.least)), self.floor, 1.0)
        slope = (self.ceiling - self.floor) / (most - fewest) if np.inf > most > fewest else 0.0
        top = self.ceiling if slope else (self.floor + self.ceiling) / 2
        return here * np.clip(top - (change - max(fewest, 0.0)) * slope, self.floor, self.ceiling)


@dataclass(frozen=True, slots=True, kw_only=True)
class Focal(TokenWeight):
    """``(1 - p)^gamma`` with the current probability, detached: unlikely tokens count more (RL-PLUS, on expert rows).

    Attributes:
        gamma: 0.5 in the released code.
    """

    gamma: float = field(default=0.5, kw_only=False)

    def __post_init__(self) -> None:
        if not self.gamma > 0:
            raise ConfigError(f"Focal.gamma={self.gamma}; use a positive exponent, or leave the weight out")

    @property
    def needs(self) -> tuple[str, ...]:
        """Current log-probabilities."""
        return ("logp_now",)

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` weights, 0 outside the loss mask."""
        logp = np.where(batch.token("mask"), np.asarray(batch.token("logp_now"), np.float64), 0.0)
        return np.maximum(-np.expm1(logp), 0.0) ** self.gamma


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilityGate(TokenWeight):
    """1 where the current probability lies in ``[low, high]``, else 0.

    Attributes:
        low, high: probabilities; a gate for unlikely tokens has ``low=0``.
    """

    low: float = 0.0
    high: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1 or (self.low, self.high) == (0, 1):
            raise ConfigError(
                f"ProbabilityGate(low={self.low}, high={self.high}): use 0 <= low < high <= 1, and not all of [0, 1]"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """Current log-probabilities."""
        return ("logp_now",)

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` 0 or 1."""
        p = np.exp(np.asarray(batch.token("logp_now"), np.float64))
        return ((p >= self.low) & (p <= self.high)).astype(np.float64)
