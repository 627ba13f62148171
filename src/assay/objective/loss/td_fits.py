"""How far a prediction is from its target: squares, absolute values, and cross-entropies over the bins of a value."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Bce", "Binned", "Fit", "HlGauss", "Huber", "Square", "TwoHot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(ABC):
    """Base of all fits: from a head's outputs and a target to a loss per token."""

    @property
    def form(self) -> tuple[str, int, float, float]:
        """What a head must be for this: its form, outputs per token, and support, as `assay.runtime.ValueHead` names them."""
        return ("scalar", 1, 0.0, 0.0)

    @property
    def support(self) -> tuple[float, float] | None:
        """Between what values targets are clipped; None where they are not."""
        return None

    def value(self, output: Tensor) -> Tensor:
        """``[n]`` values that outputs stand for."""
        return output

    @abstractmethod
    def of(self, output: Tensor, target: Tensor) -> Tensor:
        """``[n]`` losses of outputs ``[n]`` or ``[n, k]`` at targets ``[n]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Square(Fit):
    """``(v - y)^2``; PPO's half stands in the term's coefficient."""

    def of(self, output: Tensor, target: Tensor) -> Tensor:
        """``[n]`` squared errors."""
        return (output - target).square()


@dataclass(frozen=True, slots=True, kw_only=True)
class Huber(Fit):
    """``e^2 / 2`` where ``|e| <= delta``, else ``delta (|e| - delta / 2)``: linear in large errors.

    Attributes:
        delta: where the slope stops to grow (AReaL: 10).

    >>> import torch
    >>> Huber().of(torch.tensor([12.0, 2.0]), torch.zeros(2)).tolist()
    [70.0, 2.0]
    """

    delta: float = 10.0

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise ConfigError(f"Huber.delta={self.delta}; use a positive error")

    def of(self, output: Tensor, target: Tensor) -> Tensor:
        """``[n]`` losses."""
        from torch.nn.functional import huber_loss

        return huber_loss(output, target, reduction="none", delta=self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bce(Fit):
    """Binary cross-entropy of ``sigmoid(output)`` with a target in [0, 1], such as a success or a share of successes."""

    @property
    def form(self) -> tuple[str, int, float, float]:
        """One logit."""
        return ("bernoulli", 1, 0.0, 1.0)

    @property
    def support(self) -> tuple[float, float] | None:
        """A probability's."""
        return 0.0, 1.0

    def value(self, output: Tensor) -> Tensor:
        """``[n]`` probabilities."""
        return output.sigmoid()

    def of(self, output: Tensor, target: Tensor) -> Tensor:
        """``[n]`` cross-entropies."""
        from torch.nn.functional import binary_cross_entropy_with_logits as bce

        return bce(output, target.clamp(0.0, 1.0), reduction="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binned(Fit):
    """Base of the cross-entropies over ``bins`` of a value: ``-sum_b q_b(y) log softmax(z)_b``, value ``sum_b softmax(z)_b c_b``.

    Targets outside the support are clipped to it, so give it a margin. There is no clipping around old values.

    Attributes:
        low, high: the support.
        bins: outputs of the head.
    """

    low: float = -0.1
    high: float = 1.1
    bins: int = 51

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf or self.bins < 2:
            raise ConfigError(
                f"{type(self).__name__}(low={self.low}, high={self.high}, bins={self.bins}): use finite low < high, and two bins "
                "or more"
            )

    @property
    def support(self) -> tuple[float, float] | None:
        """As given."""
        return self.low, self.high

    def value(self, output: Tensor) -> Tensor:
        """``[n]`` expected values."""
        return output.softmax(-1) @ self.centres(output)

    def of(self, output: Tensor, target: Tensor) -> Tensor:
        """``[n]`` cross-entropies."""
        return -(self.histogram(target) * output.log_softmax(-1)).sum(-1)

    @abstractmethod
    def centres(self, like: Tensor) -> Tensor:
        """``[bins]`` the value that each bin stands for, in the type and on the device of ``like``."""

    @abstractmethod
    def histogram(self, target: Tensor) -> Tensor:
        """``[n, bins]`` shares of targets ``[n]`` in the bins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoHot(Binned):
    """A target is split linearly between the two nearest centres, ``low`` to ``high``, so that its mean is the target itself.

    >>> import torch
    >>> [round(x, 2) for x in TwoHot(low=0.0, high=0.5, bins=3).histogram(torch.tensor([0.34]))[0].tolist()]
    [0.0, 0.64, 0.36]
    """

    @property
    def form(self) -> tuple[str, int, float, float]:
        """Centres from the first to the last value of the support."""
        return ("two_hot", self.bins, self.low, self.high)

    def centres(self, like: Tensor) -> Tensor:
        """Evenly from ``low`` to ``high``."""
        import torch

        return torch.linspace(self.low, self.high, self.bins, dtype=like.dtype, device=like.device)

    def histogram(self, target: Tensor) -> Tensor:
        """Triangles around the centres."""
        width = (self.high - self.low) / (self.bins - 1)
        gap = (target.clamp(self.low, self.high).unsqueeze(-1) - self.centres(target)).abs()
        return (1.0 - gap / width).clamp(min=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HlGauss(Binned):
    """A target becomes a normal distribution around it, cut into the bins (HL-Gauss, "Stop Regressing" 2024).

    ``q_b = [Phi((e_b+1 - y) / sigma) - Phi((e_b - y) / sigma)] / Z`` with edges ``e`` evenly from ``low`` to ``high``, centres
    amid them, ``sigma = ratio * width``, and ``Z`` the mass inside the support.

    Attributes:
        ratio: standard deviation in widths of a bin.
    """

    ratio: float = 0.75

    def __post_init__(self) -> None:
        Binned.__post_init__(self)
        if not self.ratio > 0:
            raise ConfigError(f"HlGauss.ratio={self.ratio}; use a positive number, .75 as published")

    @property
    def form(self) -> tuple[str, int, float, float]:
        """Centres amid the bins."""
        return ("hl_gauss", self.bins, self.low, self.high)

    def edges(self, like: Tensor) -> Tensor:
        """``[bins + 1]`` evenly from ``low`` to ``high``."""
        import torch

        return torch.linspace(self.low, self.high, self.bins + 1, dtype=like.dtype, device=like.device)

    def centres(self, like: Tensor) -> Tensor:
        """Amid the edges."""
        edges = self.edges(like)
        return (edges[1:] + edges[:-1]) / 2

    def histogram(self, target: Tensor) -> Tensor:
        """Normal masses between the edges."""
        sigma = self.ratio * (self.high - self.low) / self.bins
        place = (self.edges(target) - target.clamp(self.low, self.high).unsqueeze(-1)) / sigma
        mass = (place / math.sqrt(2.0)).erf().diff(dim=-1)
        return mass / mass.sum(-1, keepdim=True)
