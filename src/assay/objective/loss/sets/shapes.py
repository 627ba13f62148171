"""Losses of one pair, from the score of the better and that of the worse rollout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "ApoDown",
    "ApoZero",
    "BcoPair",
    "DiscoGap",
    "ExoGap",
    "HingeGap",
    "LogisticGap",
    "NcaPair",
    "PairShape",
    "SppoPair",
    "SquareGap",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairShape(ABC):
    """Base of the losses of one pair."""

    @abstractmethod
    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """``[p]`` losses from the scores of the better and of the worse rollouts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scaled(PairShape):
    """Those with a beta.

    Attributes:
        beta: factor of the scores.
    """

    beta: float = 0.1

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise ConfigError(f"{type(self).__name__}.beta={self.beta}; use a positive number")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticGap(_Scaled):
    """``-log sigmoid(beta (s+ - bias s-) - margin)``: DPO; with a bias CPL, with a margin SimPO.

    Attributes:
        beta: factor of the scores; CPL calls it alpha.
        bias: CPL's lambda in (0, 1]: under 1 the loss does not rest on pushing the worse rollout down.
        margin: gap that is wanted (SimPO's gamma).
    """

    bias: float = 1.0
    margin: float = 0.0

    def __post_init__(self) -> None:
        _Scaled.__post_init__(self)
        if not 0 < self.bias <= 1:
            raise ConfigError(f"LogisticGap.bias={self.bias}; use a number in (0, 1]")
        if not self.margin >= 0:
            raise ConfigError(f"LogisticGap.margin={self.margin}; use a number that is not negative")

    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """Logistic loss of the gap."""
        from torch.nn.functional import softplus

        return softplus(self.margin - self.beta * (better - self.bias * worse))


@dataclass(frozen=True, slots=True, kw_only=True)
class HingeGap(_Scaled):
    """``max(0, 1 - beta (s+ - s-))``: RSO and SLiC."""

    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """Hinge loss of the gap."""
        return (1 - self.beta * (better - worse)).clamp(min=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareGap(PairShape):
    """``(s+ - s- - target)^2``: IPO with target ``1 / (2 tau)``, INPO with ``1 / (2 eta)``.

    Attributes:
        target: gap at which the loss is 0.
    """

    target: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < self.target < float("inf"):
            raise ConfigError(f"SquareGap.target={self.target}; use a positive finite gap")

    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """Squared distance of the gap from its target."""
        return (better - worse - self.target).square()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoGap(_Scaled):
    """DiscoPOP: ``-log sigmoid(x) (1 - m) + exp(-x) m`` with ``x = beta (s+ - s-)`` and ``m = sigmoid(x / tau)``.

    Attributes:
        beta: factor of the scores.
        tau: temperature of the blend.
    """

    tau: float = 0.05

    def __post_init__(self) -> None:
        _Scaled.__post_init__(self)
        if not self.tau > 0:
            raise ConfigError(f"DiscoGap.tau={self.tau}; use a positive temperature")

    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """A blend of the logistic and the exponential loss."""
        from torch.nn.functional import softplus

        x = self.beta * (better - worse)
        blend = (x / self.tau).sigmoid()
        return softplus(-x) * (1 - blend) + (-x).clamp(max=80.0).exp() * blend


@dataclass(frozen=True, slots=True, kw_only=True)
class ExoGap(_Scaled):
    """EXO for pairs: KL of ``sigmoid(beta (s+ - s-))`` from a label of ``1 - eps``.

    Attributes:
        beta: factor of the scores.
        eps: how far the label is from certain, in (0, 1/2).
    """

    eps: float = 1e-3

    def __post_init__(self) -> None:
        _Scaled.__post_init__(self)
        if not 0 < self.eps < 0.5:
            raise ConfigError(f"ExoGap.eps={self.eps}; use a number in (0, 0.5)")

    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """The divergence."""
        import math

        from torch.nn.functional import logsigmoid

        x = self.beta * (better - worse)
        won = x.sigmoid() * (logsigmoid(x) - math.log1p(-self.eps))
        return won + (-x).sigmoid() * (logsigmoid(-x) - math.log(self.eps))


@dataclass(frozen=True, slots=True, kw_only=True)
class NcaPair(_Scaled):
    """NCA: ``-log sigmoid(x+) - log sigmoid(-x+)/2 - log sigmoid(-x-)/2`` with ``x = beta s``: absolute scores, not gaps."""

    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """Noise contrast of both scores."""
        from torch.nn.functional import softplus

        up, down = self.beta * better, self.beta * worse
        return softplus(-up) + softplus(up) / 2 + softplus(down) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BcoPair(_Scaled):
    """BCO on pairs, without its shift: ``-log sigmoid(beta s+) - log sigmoid(-beta s-)``."""

    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """Cross-entropy of both scores."""
        from torch.nn.functional import softplus

        return softplus(-self.beta * better) + softplus(self.beta * worse)


@dataclass(frozen=True, slots=True, kw_only=True)
class SppoPair(_Scaled):
    """SPPO with certain labels: ``(s+ - 1/(2 beta))^2 + (s- + 1/(2 beta))^2``."""

    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """Squared distances of both scores from their targets."""
        return (better - 0.5 / self.beta).square() + (worse + 0.5 / self.beta).square()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApoZero(_Scaled):
    """APO-zero: ``1 - sigmoid(beta s+) + sigmoid(beta s-)``: for better rollouts that are above the policy's own."""

    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """Lifts the better and lowers the worse."""
        return (-self.beta * better).sigmoid() + (self.beta * worse).sigmoid()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApoDown(_Scaled):
    """APO-down: ``sigmoid(beta s+) + 1 - sigmoid(beta (s+ - s-))``: for better rollouts that are under the policy's own."""

    def loss(self, better: Tensor, worse: Tensor) -> Tensor:
        """Lowers both, the worse more."""
        return (self.beta * better).sigmoid() + (self.beta * (worse - better)).sigmoid()
