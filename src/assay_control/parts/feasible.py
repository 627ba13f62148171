"""Feasibility-guided losses: which states can still be kept safe, and a policy that knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core import ConfigError
from assay_control.lazy_torch import torch
from assay_control.parts.actors import clone_loss
from assay_control.parts.base import Log, Noise, TransitionBatch
from assay_control.parts.fits import expectile_loss

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["FeasibleClone", "FeasibleValue", "FitFeasible"]


def danger(rows: TransitionBatch, nets: Nets, averaged: bool = False) -> Tensor:
    """``[B]`` ``Q_h(s, a)``, the greatest of two: above 0 where the pair leads into the hazard."""
    return nets["qh"](torch.cat([rows.observation, rows.action], -1), averaged)[..., 0].amax(0)


def state_danger(observation: Tensor, nets: Nets) -> Tensor:
    """``[B]`` ``V_h(s)``: above 0 where every way leads into the hazard."""
    return nets["vh"](observation)[0, :, 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeasibleValue:
    """``V_h``: a lower expectile of ``Q_h``, ``mean |1 - τ - 1(u < 0)| u²`` with ``u = Q̄_h(s, a) - V_h(s)``.

    The safest of the data's actions counts.

    Source: Zheng et al. 2024 (FISOR), arXiv 2401.10700.

    Attributes:
        tau: share of errors where the pair is safer than the state's value.
    """

    tau: float = 0.9

    def __post_init__(self) -> None:
        if not 0 < self.tau < 1:
            raise ConfigError(f"FeasibleValue.tau={self.tau}; use a number between 0 and 1")

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise
        with torch.no_grad():
            q = danger(rows, nets, averaged=True)
        v = state_danger(rows.observation, nets)
        if log is not None:
            log["vh/feasible"] = (v.detach() <= 0).float().mean()
        return expectile_loss(q - v, 1 - self.tau).mean()


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFeasible:
    """``Q_h``: ``mean (Q_h(s, a) - ((1 - γ) h + γ max(h, V_h(s'))))²``, and ``h`` at a terminal step.

    ``h`` is ``unsafe`` where the step had a cost, else -1, so a value above 0 says that the hazard is ahead. Source: Zheng et al.
    2024 (FISOR), arXiv 2401.10700.

    Attributes:
        unsafe: ``h`` of a step with a cost.
        discount: γ.
    """

    unsafe: float = 25.0
    discount: float = 0.99

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise, log
        with torch.no_grad():
            here = torch.where(rows.columns["cost"] > 0, self.unsafe, -1.0)
            ahead = state_danger(rows.next_observation, nets).masked_fill(rows.terminal, 0.0)
            aim = self.target(here, ahead, rows.terminal)
        q = nets["qh"](torch.cat([rows.observation, rows.action], -1))[..., 0]
        return (q - aim).square().mean(-1).sum()

    def target(self, here: Tensor, ahead: Tensor, terminal: Tensor) -> Tensor:
        """Of each row.

        >>> one = torch.tensor([False])
        >>> round(float(FitFeasible().target(torch.tensor([-1.0]), torch.tensor([0.5]), one)), 3)
        0.485
        """
        follows = (1 - self.discount) * here + self.discount * torch.maximum(here, ahead)
        return torch.where(terminal, here, follows)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeasibleClone:
    """Clones actions by their advantage where the state can be kept safe, and by their safety where it cannot.

    ``w = min(exp(beta (Q - V)), 100)`` where ``V_h <= 0`` and ``Q_h <= 0``; ``min(exp(flee (V_h - Q_h)), 150)`` where ``V_h >
    0``; else 0. Source: Zheng et al. 2024 (FISOR), arXiv 2401.10700, whose policy is a denoising one where this is a normal
    distribution.

    Attributes:
        beta: sharpness where safe.
        flee: sharpness where not.
    """

    beta: float = 3.0
    flee: float = 5.0

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise
        with torch.no_grad():
            q = nets.least_q(rows.observation, rows.action, averaged=True)
            gain = q - nets.v(rows.observation)
            weight = self.weights(gain, state_danger(rows.observation, nets), danger(rows, nets, averaged=True))
        if log is not None:
            log["pi/weight"], log["pi/unused"] = weight.mean(), (weight == 0).float().mean()
        return (weight * clone_loss(rows, nets)).mean()

    def weights(self, gain: Tensor, state: Tensor, pair: Tensor) -> Tensor:
        """Of each row: its advantage, ``V_h`` and ``Q_h``.

        >>> t = torch.tensor
        >>> made = FeasibleClone().weights(t([0.5, 0.5, 0.5]), t([-1.0, 0.3, -1.0]), t([-1.0, 0.1, 0.2]))
        >>> [round(float(w), 4) for w in made]
        [4.4817, 2.7183, 0.0]
        """
        safe = torch.where(pair <= 0, (self.beta * gain).exp().clamp(max=100.0), 0.0)
        return torch.where(state <= 0, safe, (self.flee * (state - pair)).exp().clamp(max=150.0))
