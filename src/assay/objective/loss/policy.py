"""The policy gradient: ratio, trust region, detached weights. Its whole effect is one number per token, the gradient weight
``g``.

    loss_t = - A_t f(r_t),      grad = - A_t g_t grad logp_t
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.plan import Scope
from assay.objective.loss.aggregate import of_streams
from assay.objective.loss.base import LossTerm, View
from assay.objective.loss.weights import TokenWeight
from assay.objective.reduce import F, Reducer

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Gate", "MinClip", "PolicyGradient", "Ratio", "TrustRegion", "WeightClip"]

_LEVELS = ("none", "token", "sequence_mean", "sequence_product")
_INF = float("inf")

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Ratio:
    """How the current policy is compared with the one that the batch belongs to.

    ``token``: ``r_t = exp(logp_new - logp_ANCHOR)``. ``sequence_mean``: the exponential of the attempt's mean log-ratio
    (GSPO), the same
    for all its tokens. ``sequence_product``: of the summed log-ratio. ``none``: no ratio, ``g = 1``: strictly on-policy.

    Attributes:
        level: which.
        anchor: ``old`` (the trainer's own log-probabilities at the start) or ``engine`` (the sampler's).
    """

    level: str = "token"
    anchor: str = "old"

    def __post_init__(self) -> None:
        if self.level not in _LEVELS:
            raise UnknownNameError("ratio level", self.level, _LEVELS)
        if self.level == "none" and self.anchor != "old":
            raise ConfigError(
                f"Ratio('none', anchor={self.anchor!r}): without a ratio the anchor does nothing; drop it or choose a level"
            )

    @property
    def scope(self) -> Scope:
        """Sequence levels need all rows of an attempt together."""
        return Scope.SEQUENCE if self.level.startswith("sequence") else Scope.TOKEN

    def of(self, view: View) -> Tensor:
        """``[n]`` ratios. A sequence's is a detached value that passes the gradient of each token's own log-probability."""
        if self.level == "token":
            return view.log_ratio(self.anchor).exp()
        logp = view.live("logp_new")
        return self._sequence(view) * (logp - logp.detach()).exp()

    def _sequence(self, view: View) -> Tensor:
        batch = view.batch
        whole = view.at(np.flatnonzero(batch.token("mask")))
        owner = np.repeat(np.asarray(batch.rows["rollout"], np.int64), batch.lengths)
        length = np.asarray(batch.rollout("tokens"), np.int64)
        here = np.bincount(owner[whole.index], minlength=len(length))
        if np.any((here > 0) & (here != length)):
            raise DataError(
                "a micro-batch holds only some rows of an attempt, but a sequence-level ratio needs all: split by plan.split"
            )
        log_ratio = whole.log_ratio(self.anchor).detach()
        sums = log_ratio.new_zeros(len(length)).index_add(0, view.indices(owner[whole.index]), log_ratio)
        if self.level == "sequence_mean":
            sums = sums / view.tensor(np.maximum(length, 1))
        return sums.clamp(-20.0, 20.0).exp()[view.indices(owner[view.index])]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRegion(ABC):
    """Base of all trust regions: bounds on the ratio by the sign of the advantage, and what they do to the loss."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[Bounds, Bounds]:
        """Bounds where ``A > 0`` and where ``A < 0``."""

    def bounded(self, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` the ratio, clamped by its token's bounds."""
        import torch

        up = advantage > 0
        (low_up, high_up), (low_down, high_down) = self.bounds
        low = torch.where(up, ratio.new_tensor(low_up), ratio.new_tensor(low_down))
        high = torch.where(up, ratio.new_tensor(high_up), ratio.new_tensor(high_down))
        return torch.minimum(torch.maximum(ratio, low), high)

    def loss(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` surrogate loss: ``g = r`` inside the bounds, no gradient outside."""
        return -advantage * ratio.where(self.bounded(ratio, advantage) == ratio, self.bounded(ratio, advantage).detach())


@dataclass(frozen=True, slots=True, kw_only=True)
class MinClip(TrustRegion):
    """PPO's pessimistic clip ``-min(r A, clip(r, 1 - low, 1 + high) A)``: gates the side on which the policy has already moved
    enough.

    ``g = r`` while ``r <= 1 + high`` (A > 0) or ``1 - low <= r <= dual`` (A < 0), else 0. ``high > low`` is DAPO's clip-higher.

    Attributes:
        low, high: distances from 1.
        dual: cap on the ratio where ``A < 0`` (dual clip); none when infinite.

    >>> from assay.objective import MinClip
    >>> MinClip(high=0.28, dual=10.0).bounds
    ((0.0, 1.28), (0.8, 10.0))
    """

    low: float = 0.2
    high: float = 0.2
    dual: float = _INF

    def __post_init__(self) -> None:
        if not 0 <= self.low <= 1 or not self.high >= 0 or not self.dual >= 1:
            raise ConfigError(
                f"MinClip(low={self.low}, high={self.high}, dual={self.dual}): use 0 <= low <= 1, high >= 0, dual >= 1"
            )

    @property
    def bounds(self) -> tuple[Bounds, Bounds]:
        """One-sided where ``A > 0``; from below, and by the dual clip, where ``A < 0``."""
        return (0.0, 1.0 + self.high), (1.0 - self.low, self.dual)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(TrustRegion):
    """Any bounds by sign: ``g = r`` inside, 0 outside.

    Attributes:
        positive, negative: absolute lower and upper bound where ``A > 0`` and where ``A < 0``.
    """

    positive: tuple[float, float] = (0.0, 1.2)
    negative: tuple[float, float] = (0.8, _INF)

    def __post_init__(self) -> None:
        _check_bounds(self)

    @property
    def bounds(self) -> tuple[Bounds, Bounds]:
        """As given."""
        return self.positive, self.negative


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightClip(TrustRegion):
    """REINFORCE with a clipped, detached ratio as weight: ``-sg(clip(r)) A logp`` (CISPO; by sign: DISPO). No token loses its
    gradient.

    Attributes:
        positive, negative: absolute lower and upper bound (not offsets from 1) where ``A > 0`` and where ``A < 0``.
    """

    positive: tuple[float, float] = (0.0, 5.0)
    negative: tuple[float, float] = (0.0, 5.0)

    def __post_init__(self) -> None:
        _check_bounds(self)

    @property
    def bounds(self) -> tuple[Bounds, Bounds]:
        """As given."""
        return self.positive, self.negative

    def loss(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` surrogate loss; ``g`` is the clipped ratio."""
        return -self.bounded(ratio, advantage).detach() * advantage * view.live("logp_new")


def _check_bounds(region: Gate | WeightClip) -> None:
    for name, (low, high) in (("positive", region.positive), ("negative", region.negative)):
        if not 0 <= low <= 1 <= high:
            raise ConfigError(
                f"{type(region).__name__}.{name}=({low}, {high}): the region must hold r = 1, with 0 <= low <= 1 <= high"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGradient(LossTerm):
    """The terminal that is linear in the advantage.

    Attributes:
        ratio: comparison with the batch's policy.
        trust: bounds on it; None for none.
        weights: detached factors per token: mismatch corrections and token weights, multiplied.
    """

    ratio: Ratio = field(default_factory=Ratio)
    trust: TrustRegion | None = field(default_factory=MinClip)
    weights: tuple[TokenWeight, ...] = ()
    label: str = "policy"

    @property
    def scope(self) -> Scope:
        """The ratio's."""
        return self.ratio.scope

    @property
    def terminal(self) -> bool:
        """It is one."""
        return True

    @property
    def sparse(self) -> bool:
        """Tokens without advantage have neither loss nor gradient."""
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        """What the weights read."""
        return tuple(n for w in self.weights for n in w.needs)

    @property
    def anchors(self) -> tuple[str, ...]:
        """The ratio's anchor."""
        return () if self.ratio.level == "none" else (self.ratio.anchor,)

    @property
    def reward(self) -> bool:
        """It reads ``advantage``."""
        return True

    @property
    def reduces(self) -> bool:
        """When a weight does."""
        return any(w.reduces for w in self.weights)

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """Weights: the aggregation's, times the detached factors, 0 where the advantage is 0."""
        weight = np.where(batch.token("advantage") != 0, share, 0.0)
        for part in self.weights:
            weight = weight * part.weigh(batch, reducer.reduce(part.local(of_streams(batch, self.streams))))
        return {"weight": weight}

    def apply(self, view: View) -> Tensor:
        """``[n]`` surrogate loss."""
        advantage = view.column("advantage")
        if self.ratio.level == "none":
            return -advantage * view.live("logp_new")
        ratio = self.ratio.of(view)
        return -advantage * ratio if self.trust is None else self.trust.loss(view, ratio, advantage)

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``clip_fraction``: share of the tokens whose ratio left its bounds; ``kl_ANCHOR``: KL(anchor||pi) by k3."""
        if self.ratio.level == "none":
            return {}
        log_ratio = view.log_ratio(self.ratio.anchor)
        numbers = {f"kl_{self.ratio.anchor}": log_ratio.exp() - 1 - log_ratio}
        if self.trust is not None:
            ratio = self.ratio.of(view)
            numbers["clip_fraction"] = (self.trust.bounded(ratio, view.column("advantage")) != ratio).to(ratio.dtype)
        return numbers
