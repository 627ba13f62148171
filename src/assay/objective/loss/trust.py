"""Trust regions: what keeps a step near the policy that the batch belongs to. Each is known by its gradient weight ``g``.

grad loss_t = - A_t g_t grad logp_t
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.objective.loss.base import View

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Bounded", "Bounds", "Gate", "HardRegion", "MinClip", "TrustRegion", "WeightClip", "straight"]

_INF = float("inf")

Bounds = tuple[float, float]
"""Lower and upper bound of a ratio, absolute."""


def straight(view: View, values: Tensor) -> Tensor:
    """``[n]`` ``values`` without their own gradient, each with that of its token's ``logp_new`` times the value."""
    logp = view.live("logp_new")
    return values.detach() * (logp - logp.detach()).exp()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRegion(ABC):
    """Base of all trust regions.

    A subclass says its gradient weight in closed form (`weight`). Where a method publishes a loss of its own, `loss` is that
    one; its gradient must be the weight's.
    """

    @property
    def scope(self) -> Scope:
        """How much must be visible beside the token."""
        return Scope.TOKEN

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns that it reads."""
        return ()

    @property
    def anchors(self) -> tuple[str, ...]:
        """Policies whose log-probabilities it reads, beside the ratio's."""
        return ()

    @abstractmethod
    def weight(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` gradient weights ``g``.

        Args:
            view: the tokens.
            ratio: ``[n]`` their ratios, with gradient.
            advantage: ``[n]`` their advantages.
        """

    def loss(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` surrogate loss; ``-A g`` with the gradient ``-A g grad logp`` unless the method publishes another value."""
        return -advantage * straight(view, self.weight(view, ratio, advantage))


@dataclass(frozen=True, slots=True, kw_only=True)
class HardRegion(TrustRegion):
    """Base of those with a border."""

    @abstractmethod
    def outside(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` whether a token is beyond it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded(HardRegion):
    """Base of those that bound the ratio by the sign of the advantage: ``g = r`` inside, 0 outside."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[Bounds, Bounds]:
        """Bounds where ``A > 0`` and where ``A < 0``."""

    def clamp(self, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` the ratio, clamped by its token's bounds."""
        import torch

        up = advantage > 0
        (low_up, high_up), (low_down, high_down) = self.bounds
        low = torch.where(up, ratio.new_tensor(low_up), ratio.new_tensor(low_down))
        high = torch.where(up, ratio.new_tensor(high_up), ratio.new_tensor(high_down))
        return torch.minimum(torch.maximum(ratio, low), high)

    def outside(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` whether the ratio is out of bounds."""
        return self.clamp(ratio, advantage) != ratio

    def weight(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` the ratio inside, 0 outside."""
        return ratio * ~self.outside(view, ratio, advantage)

    def loss(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` ``-A`` times the clamped ratio: no gradient outside the bounds."""
        bounded = self.clamp(ratio, advantage)
        return -advantage * ratio.where(bounded == ratio, bounded.detach())


@dataclass(frozen=True, slots=True, kw_only=True)
class MinClip(Bounded):
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
class Gate(Bounded):
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
class WeightClip(Bounded):
    """REINFORCE with a clipped, detached ratio as weight: ``-sg(clip(r)) A logp`` (CISPO; by sign: DISPO). No token loses its
    gradient.

    ``positive=(1, 1), negative=(0, 1)`` is TOPR's: no weight on what is to become likelier, a truncated one on the rest.

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

    def weight(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` the clipped ratio."""
        return self.clamp(ratio, advantage)

    def loss(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` surrogate loss; its value is the published one, ``-sg(g) A logp``."""
        return -self.clamp(ratio, advantage).detach() * advantage * view.live("logp_new")


def _check_bounds(region: Gate | WeightClip) -> None:
    for name, (low, high) in (("positive", region.positive), ("negative", region.negative)):
        if not 0 <= low <= 1 <= high:
            raise ConfigError(
                f"{type(region).__name__}.{name}=({low}, {high}): the region must hold r = 1, with 0 <= low <= 1 <= high"
            )
