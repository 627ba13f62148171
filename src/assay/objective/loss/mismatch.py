"""Corrections for a sampler whose numerics or weights are not quite the trainer's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.objective.loss.units import columns_of, pool, scope_of, unit_of
from assay.objective.loss.weights import TokenWeight
from assay.objective.reducers import F, Moments, Partials

__all__ = ["IcePop", "Mismatch", "Truncate", "log_mismatch"]

_LEVELS = ("token", "sequence_mean", "sequence_product", "turn_mean", "turn_product")


def log_mismatch(batch: Batch) -> F:
    """``[N]`` ``logp_old - logp_engine`` at loss tokens, 0 elsewhere."""
    return np.where(batch.token("mask"), batch.token("logp_old").astype(np.float64) - batch.token("logp_engine"), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch(TokenWeight):
    """Base of the corrections with ``w = exp(logp_old - logp_engine)``: trainer over sampler, per token, rollout or turn.

    Attributes:
        level: ``token``; ``sequence_mean``: exponential of the rollout's mean log-ratio; ``sequence_product``: of their sum;
            ``turn_mean``, ``turn_product``: the same over the tokens of one call.
    """

    level: str = "token"

    def __post_init__(self) -> None:
        if self.level not in _LEVELS:
            raise UnknownNameError("mismatch level", self.level, _LEVELS)

    @property
    def needs(self) -> tuple[str, ...]:
        """Log-probabilities of trainer and sampler; ``call`` for turns."""
        return ("logp_old", "logp_engine", *columns_of(self.level))

    @property
    def scope(self) -> Scope:
        """A token or a rollout."""
        return scope_of(self.level)

    @property
    def corrects(self) -> bool:
        """It does."""
        return True

    def mismatch(self, batch: Batch) -> F:
        """``[N]`` ``w``, 1 outside the loss mask."""
        gap = log_mismatch(batch)
        return np.exp(np.clip(gap if self.level == "token" else pool(batch, gap, self.level), -20.0, 20.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(Mismatch):
    """Truncated importance sampling (TIS): ``min(w, cap)``, never more than ``w`` unless a lower bound is set; plain importance
    sampling with an infinite cap.

    Attributes:
        cap: largest weight.
        low: smallest weight.
        normalise: divide by the mean weight over the optimiser batch's loss tokens of the policy term's streams; at a pooled
            level over its rollouts or turns, each once, however long.
    """

    cap: float = 2.0
    low: float = 0.0
    normalise: bool = False

    def __post_init__(self) -> None:
        Mismatch.__post_init__(self)
        if not self.cap > 0:
            raise ConfigError(f"Truncate.cap={self.cap}; use a positive number, e.g. 2.0")
        if not 0 <= self.low <= min(self.cap, 1.0):
            raise ConfigError(f"Truncate.low={self.low}: a lower bound is at most 1 and at most cap={self.cap}; 0 for none")

    @property
    def reduces(self) -> bool:
        """When it normalises."""
        return self.normalise

    def local(self, batch: Batch) -> Partials:
        """Moments of the truncated weights, when they are normalised."""
        if not self.normalise:
            return {}
        mask = np.asarray(batch.token("mask"), np.bool_)
        weights = self._cut(batch)[mask]
        if self.level != "token":
            weights = weights[np.unique(unit_of(batch, self.level)[mask], return_index=True)[1]]
        return {"weight": Moments.of(weights)}

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """Truncated weights."""
        mean = float(stats["weight"].mean[0]) if self.normalise else 1.0
        return self._cut(batch) / (mean or 1.0)  # 0 where no rank has a row of the streams

    def clip_mask(self, batch: Batch) -> NDArray[np.bool_]:
        """Weights beyond a bound."""
        w = self.mismatch(batch)
        return (w < self.low) | (w > self.cap)

    def _cut(self, batch: Batch) -> F:
        return np.clip(self.mismatch(batch), self.low, self.cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class IcePop(Mismatch):
    """Two-sided hard mask: the weight is ``w`` where ``low <= w <= high``, else 0. Denominators still count masked tokens.

    At ``sequence_product`` it is masked importance sampling, at ``sequence_mean`` with ``unit`` the geometric mask.

    Attributes:
        low, high: the band.
        unit: 1 instead of ``w`` inside the band: a mask that corrects nothing (HisPO uses two of them).
    """

    low: float = 0.5
    high: float = 5.0
    unit: bool = False

    def __post_init__(self) -> None:
        Mismatch.__post_init__(self)
        if not 0 <= self.low <= 1 <= self.high:
            raise ConfigError(f"IcePop: band [{self.low}, {self.high}] must hold w = 1")

    @property
    def corrects(self) -> bool:
        """Not when it only masks."""
        return not self.unit

    def clip_mask(self, batch: Batch) -> NDArray[np.bool_]:
        """Weights outside the band."""
        w = self.mismatch(batch)
        return (w < self.low) | (w > self.high)

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """Masked weights."""
        return np.where(self.clip_mask(batch), 0.0, 1.0 if self.unit else self.mismatch(batch))
