"""The weight of rollouts that were sampled with a hint and are learned without it (Guide-GRPO)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.objective.loss.token_weights import counted_tokens
from assay.objective.loss.weights import TokenWeight
from assay.objective.reducers import F, Lowest, Partials, Sum

__all__ = ["GuidedShape", "shape_ratio"]

_LEAST = 1e-4
"""Of gamma."""


def shape_ratio(ratio: F, gamma: float) -> F:
    """``[n]`` Guide-GRPO's ``rho / (rho + gamma)``.

    >>> [round(float(x), 3) for x in shape_ratio(np.array([0.5, 1.0, 2.0]), 1.0)]
    [0.333, 0.5, 0.667]
    """
    return ratio / (ratio + gamma)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedShape(TokenWeight):
    """The gradient weight of ``-A f``, with ``f = rho / (rho + gamma)`` on hinted rows and PPO's clipped ratio on all others.

    Hinted rows are those that are learned under other messages than they were sampled with. There
    ``rho = pi(y_t | x) / pi_old(y_t | x, hint)``, and ``d f / d logp = gamma rho / (rho + gamma)^2``; ``gamma`` is the quantile
    of these ratios over the optimiser batch, at least 1e-4. Elsewhere the weight is ``rho`` within ``1 - clip`` and ``1 + clip``,
    and 0 where the clip holds. It is the whole comparison: use ``PolicyGradient(ratio=Ratio("none"), trust=None)``.

    Attributes:
        quantile: of the hinted ratios.
        clip: distance of the bounds from 1, of rows without a hint.

    Raises:
        ConfigError: a quantile outside [0, 1], or a clip outside [0, 1].

    Source: Guide-GRPO (arXiv 2506.13923); the quantile is over the batch, not a micro-batch, and leaves padding out.
    """

    quantile: float = 0.9
    clip: float = 0.2

    def __post_init__(self) -> None:
        if not 0.0 <= self.quantile <= 1.0 or not 0.0 <= self.clip <= 1.0:
            raise ConfigError(f"GuidedShape(quantile={self.quantile}, clip={self.clip}): both must be in [0, 1]")

    @property
    def needs(self) -> tuple[str, ...]:
        """Advantages, and log-probabilities now and at the sampler."""
        return ("advantage", "logp_now", "logp_engine")

    @property
    def scope(self) -> Scope:
        """The optimiser batch."""
        return Scope.BATCH

    def local(self, batch: Batch) -> Partials:
        """How many hinted tokens there are."""
        return {"hinted": Sum(np.array([float(_hinted_tokens(batch).sum())]))}

    def second_pass(self, batch: Batch, stats: Partials) -> Partials:
        """The largest hinted ratios, down to the quantile."""
        return {"largest": Lowest.of(-_ratio(batch)[_hinted_tokens(batch)], self._size(stats))}

    def gamma(self, stats: Partials) -> float:
        """The quantile, interpolated between neighbours."""
        largest = -stats["largest"].rows[:, 0][::-1]  # ascending, the quantile's lower neighbour first
        if not len(largest):
            return _LEAST
        place = self.quantile * (float(stats["hinted"].values[0]) - 1.0)
        upper = largest[min(1, len(largest) - 1)]
        return max(_LEAST, float(largest[0] + (place - math.floor(place)) * (upper - largest[0])))

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` weights."""
        ratio, advantage, gamma = _ratio(batch), batch.token("advantage"), self.gamma(stats)
        held = ((advantage > 0) & (ratio > 1.0 + self.clip)) | ((advantage < 0) & (ratio < 1.0 - self.clip))
        return np.where(_hinted_tokens(batch), gamma * ratio / (ratio + gamma) ** 2, np.where(held, 0.0, ratio))

    def clip_mask(self, batch: Batch) -> NDArray[np.bool_]:
        """``[N]`` tokens without a hint whose ratio is beyond the bounds."""
        ratio = _ratio(batch)
        return ~_hinted_tokens(batch) & ((ratio > 1.0 + self.clip) | (ratio < 1.0 - self.clip))

    def _size(self, stats: Partials) -> int:
        count = round(float(stats["hinted"].values[0]))
        return count - math.floor(self.quantile * (count - 1)) if count else 0


def _hinted_tokens(batch: Batch) -> NDArray[np.bool_]:
    """``[N]`` loss tokens of rows that are learned under another prompt."""
    reposed = batch.rows.get("reposed")
    here = counted_tokens(batch)
    return here & np.repeat(reposed, batch.lengths) if reposed is not None else np.zeros_like(here)


def _ratio(batch: Batch) -> F:
    gap = np.asarray(batch.token("logp_now"), np.float64) - batch.token("logp_engine")
    return np.exp(np.clip(np.where(batch.token("mask"), gap, 0.0), -20.0, 20.0))
