"""Terms over an ensemble of critics: different gradients, smooth values and policies, pessimism where the data are thin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core import ConfigError
from assay_control.lazy_torch import torch
from assay_control.parts.base import Log, Noise, TransitionBatch

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["GradientDiversity", "PerturbedPessimism", "PerturbedPolicy", "PerturbedValue", "PolicyNoisePenalised"]


@dataclass(frozen=True, slots=True)
class GradientDiversity:
    """EDAC's term: ``weight · mean_B 1/(N - 1) Σ_{i≠j} cos(∇_a Q_i, ∇_a Q_j)``, so that critics disagree outside the data.

    Source: An et al. 2021, arXiv 2110.01548.

    Attributes:
        weight: η of the paper.
    """

    weight: float = 1.0

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, log: Log | None) -> Tensor:
        """A scalar; 0 with a single critic."""
        del noise
        count = nets["q"].net.ensemble
        if count < 2:
            return torch.zeros(())
        action = rows.action.expand(count, *rows.action.shape).clone().requires_grad_()
        q = nets.q(rows.observation.expand(count, *rows.observation.shape), action)
        (gradient,) = torch.autograd.grad(q.sum(), action, create_graph=True)
        # inside of the root: its slope at 0, where a critic does not see the action, is infinite
        unit = gradient / (gradient.square().sum(-1, keepdim=True) + 1e-20).sqrt()
        # the sum over pairs is the square of the sum less the squares
        pairs = unit.sum(0).square().sum(-1) - unit.square().sum((0, -1))
        alike = (pairs / (count - 1)).mean()
        if log is not None:
            log["q/alike"] = alike.detach() / count
        return self.weight * alike


@dataclass(frozen=True, slots=True)
class PolicyNoisePenalised:
    """ReBRAC's target: TD3's less ``weight · |π̄(s') + noise - a'|²``, with ``a'`` the data's next action.

    ``y = r + γ (min_i Q̄_i(s', ã) - weight |ã - a'|²)``; where the data have no next action nothing is taken off. Source: Tarasov
    et al. 2023, arXiv 2305.09836.

    Attributes:
        weight: of the distance.
        noise: deviation of what smooths the target.
        limit: of that noise.
    """

    weight: float = 0.01
    noise: float = 0.2
    limit: float = 0.5

    def __post_init__(self) -> None:
        if min(self.weight, self.noise, self.limit) < 0:
            raise ConfigError(
                f"PolicyNoisePenalised(weight={self.weight}, noise={self.noise}, limit={self.limit}): use numbers of 0 or more"
            )

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, discount: float) -> Tensor:
        """``[B]``."""
        with torch.no_grad():
            action = nets.mean(rows.next_observation, averaged=True)
            drawn = (self.noise * noise.normal(*action.shape)).clamp(-self.limit, self.limit)
            action = (action + drawn).clamp(-1, 1)
            far = (action - rows.columns["next_action"]).square().sum(-1) * rows.columns["follows"]
            value = nets.least_q(rows.next_observation, action, averaged=True)
            return rows.later(value - self.weight * far, discount)


def _perturb(observation: Tensor, noise: Noise, count: int, radius: float) -> Tensor:
    """``[count, B, O]`` observations, each coordinate moved by up to ``radius``."""
    return observation + radius * (2 * noise.uniform(count, *observation.shape) - 1)


@dataclass(frozen=True, slots=True)
class PerturbedValue:
    """RO2O's smooth critic: ``weight · mean_B max_k (upper δ⁺² + (1 - upper) δ⁻²)`` with ``δ = Q(s + e_k, a) - Q(s, a)``.

    Values that rise when the state is disturbed cost more than those that fall. Source: Wen et al. 2023, arXiv 2309.16973.

    Attributes:
        weight: of the term.
        radius: of the disturbance, per coordinate of scaled states.
        samples: disturbances, of which the worst counts.
        upper: share of the squares of rising values.
    """

    weight: float = 1e-4
    radius: float = 0.01
    samples: int = 20
    upper: float = 0.8

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del log
        near = _perturb(rows.observation, noise, self.samples, self.radius)
        action = rows.action.expand(self.samples, *rows.action.shape)
        flat = nets.q(near.flatten(0, 1), action.flatten(0, 1))
        error = flat.view(-1, self.samples, len(rows)) - nets.q(rows.observation, rows.action).unsqueeze(1)
        return self.weight * self.cost(error).amax(1).mean(-1).sum()

    def cost(self, error: Tensor) -> Tensor:
        """Of each difference.

        >>> [round(float(c), 1) for c in PerturbedValue().cost(torch.tensor([1.0, -1.0]))]
        [0.8, 0.2]
        """
        return torch.where(error > 0, self.upper, 1 - self.upper) * error.square()


@dataclass(frozen=True, slots=True)
class PerturbedPolicy:
    """RO2O's smooth policy: ``weight · mean_B max_k (KL(π(s) ‖ π(s + e_k)) + KL(π(s + e_k) ‖ π(s)))``.

    Source: Wen et al. 2023, arXiv 2309.16973; the divergence is that of the normal distributions before squashing.

    Attributes:
        weight: of the term.
        radius: of the disturbance.
        samples: disturbances, of which the worst counts.
    """

    weight: float = 1.0
    radius: float = 0.01
    samples: int = 20

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        near = _perturb(rows.observation, noise, self.samples, self.radius)
        mean, std = nets.normal(rows.observation)
        other, spread = nets.normal(near.flatten(0, 1))
        shape = (self.samples, len(rows), nets.size)
        other, spread = other.view(shape), spread.view(shape)
        # both divergences together, in which the logarithms cancel
        apart = 0.5 * ((std**2 + (mean - other) ** 2) / spread**2 + (spread**2 + (mean - other) ** 2) / std**2) - 1
        worst = apart.sum(-1).amax(0).mean()
        if log is not None:
            log["pi/rough"] = worst.detach()
        return self.weight * worst


@dataclass(frozen=True, slots=True)
class PerturbedPessimism:
    """RO2O's pessimism: values of the policy's actions in disturbed states are drawn to ``Q - κ std_i Q_i``.

    ``weight · mean (Q_i(s̃, ã) - sg(Q_i(s̃, ã) - κ std))²`` with ``ã ~ π(s̃)``; κ falls from ``begin`` by ``step`` an update to
    ``end``. Source: Wen et al. 2023, arXiv 2309.16973.

    Attributes:
        weight: of the term.
        radius: of the disturbance.
        begin, end, step: of κ.
    """

    weight: float = 0.1
    radius: float = 0.01
    begin: float = 1.0
    end: float = 0.1
    step: float = 5e-7

    def kappa(self, updates: int) -> float:
        """κ after so many updates.

        >>> PerturbedPessimism().kappa(0), round(PerturbedPessimism().kappa(1_800_000), 6)
        (1.0, 0.1)
        """
        return max(self.end, self.begin - self.step * updates)

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del log
        near = _perturb(rows.observation, noise, 1, self.radius)[0]
        with torch.no_grad():
            action, _ = nets.sample(near, noise)
        q = nets.q(near, action)
        with torch.no_grad():
            aim = q - self.kappa(nets["q"].updates) * q.std(0)
        return self.weight * (q - aim).square().mean(-1).sum()
