"""Losses of policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core import ConfigError
from assay.core.fields import later
from assay_control.lazy_torch import torch
from assay_control.parts.base import Log, Noise, TransitionBatch
from assay_control.parts.targets import bootstrapped_return

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["AdvantageWeighted", "Clone", "ClonePenalty", "GreedyAction", "SoftGreedy"]

ADVANTAGES = ("q - v", "q - q(pi)", "return - v", "bootstrapped return - v")


def clone_loss(rows: TransitionBatch, nets: Nets) -> Tensor:
    """``[B]`` ``-log π(a|s)``, or the squared distance of a policy that gives one action."""
    if nets["pi"].net.outputs == "action":
        return (nets.mean(rows.observation) - rows.action).square().sum(-1)
    return -nets.log_prob(rows.observation, rows.action)


@dataclass(frozen=True, slots=True)
class Clone:
    """Behaviour cloning: ``-log π(a|s)``, or ``|π(s) - a|²`` for a policy that gives one action."""

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise
        loss = clone_loss(rows, nets).mean()
        if log is not None:
            log["pi/clone"] = loss.detach()
        return loss


@dataclass(frozen=True, slots=True)
class AdvantageWeighted:
    """``mean min(exp(A / temperature), clip) · (-log π(a|s))``: the data's actions, the better ones more.

    Source: AWR, Peng et al. 2019, arXiv 1910.00177 (``return - v``); AWAC, Nair et al. 2020, arXiv 2006.09359 (``q - q(pi)``);
    IQL, Kostrikov et al. 2021, arXiv 2110.06169 (``q - v``, whose β is ``1 / temperature``).

    Attributes:
        temperature: of the exponent.
        clip: greatest weight.
        advantage: how the advantage is measured: ``q - v``, ``q - q(pi)``, ``return - v`` or ``bootstrapped return - v``.
        quantile: of the ensemble that stands for its least in ``q - v``; 0 is the least.
        normalise: whether advantages are shifted and scaled by the mean and deviation of the batch before the exponent, so that
            the temperature does not depend on the size of rewards.
        discount: of what is bootstrapped at a cut.

    Raises:
        ConfigError: a number that is not positive, or an unknown advantage.
    """

    temperature: float = 1.0
    clip: float = 100.0
    advantage: str = "q - v"
    quantile: float = 0.0
    normalise: bool = later(False)
    discount: float = later(0.99)

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.clip <= 0:
            raise ConfigError(f"AdvantageWeighted(temperature={self.temperature}, clip={self.clip}): use positive numbers")
        if not 0 <= self.quantile <= 1 or (self.quantile and self.advantage != "q - v"):
            raise ConfigError(
                f"AdvantageWeighted.quantile={self.quantile}: use a number in [0, 1], and with advantage 'q - v' alone"
            )
        if self.advantage not in ADVANTAGES:
            raise ConfigError(f"AdvantageWeighted.advantage={self.advantage!r}; use one of {', '.join(ADVANTAGES)}")

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target
        with torch.no_grad():
            advantage = self._advantage(rows, nets, noise)
            if self.normalise:
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-5)
            weight = (advantage / self.temperature).exp().clamp(max=self.clip)
        if log is not None:
            log["pi/weight"], log["pi/advantage"] = weight.mean(), advantage.mean()
        return (weight * clone_loss(rows, nets)).mean()

    def _advantage(self, rows: TransitionBatch, nets: Nets, noise: Noise) -> Tensor:
        if self.advantage == "return - v":
            return rows.to_go - nets.v(rows.observation)
        if self.advantage == "bootstrapped return - v":
            return bootstrapped_return(rows, nets, self.discount) - nets.v(rows.observation)
        if self.advantage == "q - v":
            q = nets.least_q(rows.observation, rows.action, averaged=True, quantile=self.quantile)
            return q - nets.v(rows.observation)
        q = nets.least_q(rows.observation, rows.action)
        action, _ = nets.sample(rows.observation, noise)
        return q - nets.least_q(rows.observation, action.clamp(-1, 1))


@dataclass(frozen=True, slots=True)
class GreedyAction:
    """TD3's actor: ``-mean Q_1(s, π(s))``; with ``alpha``, ``-(alpha / mean|Q|) mean Q_1(s, π(s))`` as in TD3+BC.

    Source: Fujimoto et al. 2018, arXiv 1802.09477; Fujimoto and Gu 2021, arXiv 2106.06860.

    Attributes:
        alpha: how much the value counts once its size is divided out; None leaves values as they are.

    Raises:
        ConfigError: a negative ``alpha``.
    """

    alpha: float | None = None

    def __post_init__(self) -> None:
        if self.alpha is not None and self.alpha < 0:
            raise ConfigError(f"GreedyAction.alpha={self.alpha}; use a number of 0 or more, or None")

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise
        q = nets.q(rows.observation, nets.mean(rows.observation), fixed=True)[0]
        if log is not None:
            log["pi/q"] = q.detach().mean()
        if self.alpha is None:
            return -q.mean()
        return -(self.alpha / q.detach().abs().mean().clamp(min=1e-8)) * q.mean()


@dataclass(frozen=True, slots=True)
class SoftGreedy:
    """SAC's actor: ``mean(α log π(a|s) - Q(s, a))`` with ``a ~ π``.

    Source: Haarnoja et al. 2018, arXiv 1801.01290.

    Attributes:
        mean_q: whether the mean of the ensemble, and not its least, is Q (as in RLPD).
    """

    mean_q: bool = False

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target
        action, logp = nets.sample(rows.observation, noise)
        values = nets.q(rows.observation, action, fixed=True)
        q = values.mean(0) if self.mean_q else values.amin(0)
        if log is not None:
            log["pi/q"] = q.detach().mean()
        return (nets.alpha(fixed=True) * logp - q).mean()


@dataclass(frozen=True, slots=True)
class ClonePenalty:
    """``weight · |π(s) - a|²``, or ``-weight · log π(a|s)``, beside another actor loss.

    Source: TD3+BC, Fujimoto and Gu 2021, arXiv 2106.06860, with weight 1 and a mean over coordinates.

    Attributes:
        weight: of the term.
    """

    weight: float = 1.0

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del noise
        loss = clone_loss(rows, nets).mean() / (nets.size if nets["pi"].net.outputs == "action" else 1)
        if log is not None:
            log["pi/clone"] = loss.detach()
        return self.weight * loss
