"""What a pair's scores are turned into before they are compared: other divergences than KL, other rewards than the log-ratio."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["JsLink", "Link", "OddsLink", "PowerLink"]

_FINITE = 80.0
"""Bound of exponents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(ABC):
    """Base of all links: an increasing function of the score."""

    @abstractmethod
    def of(self, score: Tensor) -> Tensor:
        """``[k]`` linked scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLink(Link):
    """``(exp(power s) - 1) / power``, which is ``s`` in the limit of power 0.

    Of a log-ratio it is the f-DPO reward: power -1 of the forward KL ``1 - ref/pi``, ``alpha - 1`` of the alpha divergence. Of a
    log-probability with power ``-alpha`` it is AlphaPO's ``(1 - p^-alpha) / alpha``.

    Attributes:
        power: not 0.
    """

    power: float = field(default=-1.0, kw_only=False)

    def __post_init__(self) -> None:
        if not self.power or not abs(self.power) < float("inf"):
            raise ConfigError(f"PowerLink.power={self.power}; use a finite number other than 0, or no link")

    def of(self, score: Tensor) -> Tensor:
        """Finite, by a bound of 80 on the exponent."""
        return (self.power * score).clamp(max=_FINITE).expm1() / self.power


@dataclass(frozen=True, slots=True, kw_only=True)
class JsLink(Link):
    """``log 2 + log sigmoid(s)``: the f-DPO reward of the Jensen-Shannon divergence."""

    def of(self, score: Tensor) -> Tensor:
        """At most ``log 2``."""
        import math

        from torch.nn.functional import logsigmoid

        return math.log(2) + logsigmoid(score)


@dataclass(frozen=True, slots=True, kw_only=True)
class OddsLink(Link):
    """``s - log(1 - exp(s))``: the log-odds of a mean log-probability (ORPO)."""

    def of(self, score: Tensor) -> Tensor:
        """Finite, by a bound of -1e-7 on the score."""
        import math

        import torch

        s = score.clamp(max=-1e-7)
        rest = torch.where(s < -math.log(2), torch.log1p(-s.exp()), torch.log(-torch.expm1(s)))
        return s - rest
