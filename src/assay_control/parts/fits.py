"""Losses of critics and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core import ConfigError
from assay_control.lazy_torch import torch
from assay_control.parts.base import Log, Noise, TransitionBatch

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["DualValue", "Expectile", "FitQ", "FitV", "Temperature", "expectile_loss"]


@dataclass(frozen=True, slots=True)
class FitQ:
    """``mean_i mean_B (Q_i(s, a) - y)²``, summed over the ensemble; Huber's loss where ``delta`` is given.

    Attributes:
        delta: error beyond which the loss is linear; 0 for squares alone.
    """

    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.delta < 0:
            raise ConfigError(f"FitQ.delta={self.delta}; use 0 for squares, or a positive number for Huber's loss")

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del noise
        assert target is not None
        q = nets.q(rows.observation, rows.action)
        if log is not None:
            log["q/mean"], log["q/target"] = q.detach().mean(), target.mean()
        return _distance(q - target, self.delta).mean(-1).sum()


@dataclass(frozen=True, slots=True)
class FitV:
    """``mean_B (V(s) - y)²``."""

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del noise, log
        assert target is not None
        return (nets.v(rows.observation) - target).square().mean()


@dataclass(frozen=True, slots=True)
class Expectile:
    """IQL's V: ``mean |τ - 1(u < 0)| u²`` with ``u = min_i Q̄_i(s, a) - V(s)``: above the mean of the data's actions for τ > 1/2.

    Source: Kostrikov et al. 2021, arXiv 2110.06169.

    Attributes:
        tau: 0.5 is the mean, towards 1 the maximum over the data's actions.
        quantile: of the ensemble that stands for its least; 0 is the least.
    """

    tau: float = 0.7
    quantile: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.quantile <= 1:
            raise ConfigError(f"Expectile.quantile={self.quantile}; use a number between 0 and 1")
        if not 0 < self.tau < 1:
            raise ConfigError(f"Expectile.tau={self.tau}; use a number between 0 and 1, for example 0.7")

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise
        with torch.no_grad():
            q = nets.least_q(rows.observation, rows.action, averaged=True, quantile=self.quantile)
        v = nets.v(rows.observation)
        if log is not None:
            log["v/mean"], log["v/advantage"] = v.detach().mean(), (q - v).detach().mean()
        return expectile_loss(q - v, self.tau).mean()


@dataclass(frozen=True, slots=True, kw_only=True)
class DualValue:
    """f-DVL's V: ``mean(weight f(x) - (1 - weight) x)`` with ``x = min_i Q̄_i(s, a) - V(s)`` and a bounded surrogate ``f``.

    ``f(x) = max(x + x²/4, 0)`` for ``chi2``, ``max(x, 0)`` for ``tv``: towards weight 1 the value nears the greatest Q over the
    data's actions, and a far outlier costs a square and not an exponential. Source: Sikchi et al. 2023, arXiv 2302.08560, with
    the surrogates of its released code.

    Attributes:
        weight: λ, between 1/2 and 1 for ``tv``: the quantile ``1 - (1 - λ) / λ`` of Q.
        kind: ``chi2`` or ``tv``.

    Raises:
        ConfigError: another kind, or a weight with which the value has no minimum or is pushed up alone.
    """

    weight: float = 0.8
    kind: str = "chi2"

    def __post_init__(self) -> None:
        if self.kind not in ("chi2", "tv"):
            raise ConfigError(f"DualValue.kind={self.kind!r}; use 'chi2' or 'tv'")
        if not (0.5 if self.kind == "tv" else 0.0) < self.weight < 1:
            least = "1/2" if self.kind == "tv" else "0"
            raise ConfigError(f"DualValue(kind={self.kind!r}, weight={self.weight}): use a weight between {least} and 1")

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise
        with torch.no_grad():
            q = nets.least_q(rows.observation, rows.action, averaged=True)
        v = nets.v(rows.observation)
        if log is not None:
            log["v/mean"], log["v/advantage"] = v.detach().mean(), (q - v).detach().mean()
        return self.loss(q - v).mean()

    def loss(self, x: Tensor) -> Tensor:
        """Of each difference.

        >>> [round(float(v), 2) for v in DualValue().loss(torch.tensor([-1.0, 1.0, 2.0, 100.0]))]
        [0.2, 0.8, 2.0, 2060.0]
        """
        bound = x + x.square() / 4 if self.kind == "chi2" else x
        # the square turns up again below -2, where the surrogate stays at 0
        bound = torch.where(x > 0, bound, 0.0) if self.kind == "chi2" else bound.clamp(min=0)
        return self.weight * bound - (1 - self.weight) * x


@dataclass(frozen=True, slots=True)
class Temperature:
    """SAC's temperature: ``-log α · mean(log π(a|s) + H)`` keeps the policy's entropy at ``H``.

    Source: Haarnoja et al. 2018, arXiv 1812.05905.

    Attributes:
        target: entropy per coordinate of an action, in nats; the paper's is -1.
    """

    target: float = -1.0

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target
        with torch.no_grad():
            _, logp = nets.sample(rows.observation, noise)
        if log is not None:
            log["entropy"], log["alpha"] = -logp.mean(), nets.alpha().detach().mean()
        return -(nets["alpha"].numbers() * (logp + self.target * nets.size)).mean()


def expectile_loss(error: Tensor, tau: float) -> Tensor:
    """``|τ - 1(u < 0)| u²`` of each error.

    >>> [round(float(x), 3) for x in expectile_loss(torch.tensor([1.0, -1.0]), 0.9)]
    [0.9, 0.1]
    """
    return (tau - (error < 0).to(error.dtype)).abs() * error.square()


def _distance(error: Tensor, delta: float) -> Tensor:
    if not delta:
        return error.square()
    size = error.abs()
    return torch.where(size <= delta, 0.5 * error.square(), delta * (size - 0.5 * delta))
