"""Detached factors per token, computed in numpy before the gradient pass: corrections for the sampler's other numerics, and
any other weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.objective.reduce import F, Moments, Partials, tally

__all__ = ["IcePop", "Mismatch", "TokenWeight", "Truncate"]

_LEVELS = ("token", "sequence_mean", "sequence_product")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWeight(ABC):
    """Base of all token weights: ``local -> reduce -> weigh``."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns that it reads."""
        return ()

    @property
    def scope(self) -> Scope:
        """How much must be visible to compute it."""
        return Scope.TOKEN

    @property
    def corrects(self) -> bool:
        """Whether it multiplies by ``pi_old / pi_engine``, which a ratio anchored at the engine holds already."""
        return False

    @property
    def reduces(self) -> bool:
        """Whether it has statistics that cross ranks."""
        return type(self).local is not TokenWeight.local

    def local(self, batch: Batch) -> Partials:
        """Partial statistics of the rows on this rank that are of the policy term's streams (maybe none)."""
        return {}

    @abstractmethod
    def weigh(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` factors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch(TokenWeight):
    """Base of the corrections with ``w = exp(logp_old - logp_engine)``: trainer over sampler, per token or per attempt.

    Attributes:
        level: ``token``; ``sequence_mean``: exponential of the attempt's mean log-ratio; ``sequence_product``: of their sum.
    """

    level: str = "token"

    def __post_init__(self) -> None:
        if self.level not in _LEVELS:
            raise UnknownNameError("mismatch level", self.level, _LEVELS)

    @property
    def needs(self) -> tuple[str, ...]:
        """Log-probabilities of trainer and sampler."""
        return ("logp_old", "logp_engine")

    @property
    def scope(self) -> Scope:
        """A token or an attempt."""
        return Scope.TOKEN if self.level == "token" else Scope.SEQUENCE

    @property
    def corrects(self) -> bool:
        """It does."""
        return True

    def mismatch(self, batch: Batch) -> F:
        """``[N]`` ``w``, 1 outside the loss mask."""
        mask = batch.token("mask")
        gap = np.where(mask, batch.token("logp_old").astype(np.float64) - batch.token("logp_engine"), 0.0)
        if self.level != "token":
            owner = np.repeat(np.asarray(batch.rows["rollout"], np.int64), batch.lengths)
            length = np.asarray(batch.rollout("tokens"), np.float64)
            sums = tally(owner, gap, len(length))
            gap = (sums / np.maximum(length, 1) if self.level == "sequence_mean" else sums)[owner] * mask
        return np.exp(np.clip(gap, -20.0, 20.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(Mismatch):
    """Truncated importance sampling (TIS): ``min(w, cap)``; never raises a weight.

    Attributes:
        cap: largest weight.
        normalise: divide by the mean weight over the optimiser batch's loss tokens of the policy term's streams.
    """

    cap: float = 2.0
    normalise: bool = False

    def __post_init__(self) -> None:
        Mismatch.__post_init__(self)
        if not self.cap > 0:
            raise ConfigError(f"Truncate.cap={self.cap}; use a positive number, e.g. 2.0")

    @property
    def reduces(self) -> bool:
        """When it normalises."""
        return self.normalise

    def local(self, batch: Batch) -> Partials:
        """Moments of the truncated weights, when they are normalised."""
        return {"weight": Moments.of(self._cut(batch)[batch.token("mask")])} if self.normalise else {}

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """Truncated weights."""
        mean = float(stats["weight"].mean[0]) if self.normalise else 1.0
        return self._cut(batch) / (mean or 1.0)  # 0 where no rank has a row of the streams

    def _cut(self, batch: Batch) -> F:
        return np.minimum(self.mismatch(batch), self.cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class IcePop(Mismatch):
    """Two-sided hard mask: the weight is ``w`` where ``low <= w <= high``, else 0. Denominators still count masked tokens.

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

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """Masked weights."""
        w = self.mismatch(batch)
        return np.where((w >= self.low) & (w <= self.high), 1.0 if self.unit else w, 0.0)
