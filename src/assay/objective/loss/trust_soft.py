"""Trust regions whose gradient weight fades as the policy moves away, or stays at its bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError
from assay.objective.loss.base import View
from assay.objective.loss.trust import Bounded, Bounds, TrustRegion, straight

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ClipWithGradient", "GammaWeight", "SoftGate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftGate(TrustRegion):
    """SAPO's gate: ``-A f(r)`` with ``f = 4 / tau * sigmoid(tau (r - 1))``, so ``g = 4 r p (1 - p)`` with that sigmoid ``p``:
    1 at ``r = 1``, fading to both sides, the faster the larger ``tau``.

    Attributes:
        positive, negative: the temperature ``tau`` where ``A > 0`` and elsewhere.
    """

    positive: float = 1.0
    negative: float = 1.05

    def __post_init__(self) -> None:
        if not 0 < self.positive < float("inf") or not 0 < self.negative < float("inf"):
            raise ConfigError(f"SoftGate(positive={self.positive}, negative={self.negative}): use positive temperatures")

    def weight(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` ``4 r p (1 - p)``."""
        p = (self._tau(advantage) * (ratio - 1)).sigmoid()
        return 4 * ratio * p * (1 - p)

    def loss(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` ``-A f(r)``."""
        tau = self._tau(advantage)
        return -advantage * 4 / tau * (tau * (ratio - 1)).sigmoid()

    def _tau(self, advantage: Tensor) -> Tensor:
        return advantage.new_tensor(self.positive).where(advantage > 0, advantage.new_tensor(self.negative))


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaWeight(TrustRegion):
    """VESPO's weight: ``-sg(phi(w)) A logp`` with ``phi = w^k exp(lam (1 - w))``: 1 at ``w = 1``, largest at ``k / lam``, 0 far
    from it on both sides. Published for ``Ratio("sequence_product")``.

    Attributes:
        positive, negative: ``(k, lam)`` where ``A > 0`` and elsewhere.
    """

    positive: tuple[float, float] = (2.0, 3.0)
    negative: tuple[float, float] = (3.0, 2.0)

    def __post_init__(self) -> None:
        for name, (k, lam) in (("positive", self.positive), ("negative", self.negative)):
            if not 0 < k < float("inf") or not 0 < lam < float("inf"):
                raise ConfigError(f"GammaWeight.{name}=({k}, {lam}): exponent and rate must both be positive")

    def weight(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` ``phi``."""
        up, w = advantage > 0, ratio.detach()
        k, lam = (w.new_tensor(a).where(up, w.new_tensor(b)) for a, b in zip(self.positive, self.negative, strict=True))
        return (lam * (1 - w) + k * w.log()).exp()

    def loss(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` surrogate loss; its value is the published one, ``-sg(g) A logp``."""
        return -self.weight(view, ratio, advantage) * advantage * view.live("logp_new")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipWithGradient(Bounded):
    """PPO's clip whose upper side keeps its gradient (AEPO): ``-A (1 + high) r / sg(r)`` where ``A > 0`` and ``r > 1 + high``.

    The value is that of `MinClip` everywhere. ``g = min(r, 1 + high)`` where ``A > 0``; elsewhere ``r``, and 0 below ``1 - low``.
    So a token that was rare when it was sampled, as those behind tools' answers are, is still learned from after it has risen.

    Attributes:
        low, high: distances from 1.

    Raises:
        ConfigError: a distance out of range.

    Source: AEPO (arXiv 2510.14545).
    """

    low: float = 0.2
    high: float = 0.28

    def __post_init__(self) -> None:
        if not 0 <= self.low <= 1 or not 0 <= self.high < float("inf"):
            raise ConfigError(f"ClipWithGradient(low={self.low}, high={self.high}): use 0 <= low <= 1 and a finite high >= 0")

    @property
    def bounds(self) -> tuple[Bounds, Bounds]:
        """From above where ``A > 0``, from below where ``A < 0``."""
        return (0.0, 1.0 + self.high), (1.0 - self.low, float("inf"))

    def weight(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` the clipped ratio where ``A > 0``; elsewhere the ratio, 0 beyond the bound."""
        return self.clamp(ratio, advantage).where((advantage > 0) | ~self.outside(view, ratio, advantage), ratio.new_zeros(()))

    def loss(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` ``-A`` times the clamped ratio; above the upper bound with the gradient of a ratio of that size."""
        bounded = self.clamp(ratio, advantage).detach()
        beyond = straight(view, bounded).where(advantage > 0, bounded)
        return -advantage * ratio.where(bounded == ratio, beyond)
