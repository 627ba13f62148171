"""What values are fitted to. No gradient flows through a target, and nothing is bootstrapped behind a terminal step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core import ConfigError
from assay_control.lazy_torch import torch
from assay_control.parts.base import Noise, TransitionBatch

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["BestChoice", "BootstrappedReturn", "NextValue", "PolicyNoise", "ReturnToGo", "SampledAction", "SoftValue"]


@dataclass(frozen=True, slots=True)
class PolicyNoise:
    """TD3's target: ``y = r + γ min_i Q̄_i(s', clip(π̄(s') + clip(N(0, noise²), ±limit), ±1))``.

    Source: Fujimoto et al. 2018, arXiv 1802.09477.

    Attributes:
        noise: deviation of what smooths the target.
        limit: of that noise.
    """

    noise: float = 0.2
    limit: float = 0.5

    def __post_init__(self) -> None:
        if self.noise < 0 or self.limit < 0:
            raise ConfigError(f"PolicyNoise(noise={self.noise}, limit={self.limit}): use numbers of 0 or more")

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, discount: float) -> Tensor:
        """``[B]``."""
        with torch.no_grad():
            action = nets.mean(rows.next_observation, averaged=True)
            drawn = (self.noise * noise.normal(*action.shape)).clamp(-self.limit, self.limit)
            value = nets.least_q(rows.next_observation, (action + drawn).clamp(-1, 1), averaged=True)
            return rows.later(value, discount)


@dataclass(frozen=True, slots=True)
class SoftValue:
    """SAC's target: ``y = r + γ (min_i Q̄_i(s', a') - α log π(a'|s'))`` with ``a' ~ π``.

    Source: Haarnoja et al. 2018, arXiv 1801.01290; a random subset of the ensemble after Chen et al. 2021, arXiv 2101.05982.

    Attributes:
        subset: members that the least is taken of, drawn afresh each time; 0 for all.
        entropy: whether the entropy is part of the value.
        best_of: actions that are drawn, of which that with the greatest least value counts.
    """

    subset: int = 0
    entropy: bool = True
    best_of: int = 1

    def __post_init__(self) -> None:
        if self.subset < 0 or self.best_of < 1:
            raise ConfigError(f"SoftValue(subset={self.subset}, best_of={self.best_of}): use subset >= 0 and best_of >= 1")

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, discount: float) -> Tensor:
        """``[B]``."""
        with torch.no_grad():
            action, logp = nets.sample(rows.next_observation, noise, self.best_of)
            value = self._value(rows.next_observation, action, nets, noise)
            if self.entropy:
                value = value - nets.alpha() * logp
            return rows.later(value if self.best_of == 1 else value.amax(0), discount)

    def _value(self, observation: Tensor, action: Tensor, nets: Nets, noise: Noise) -> Tensor:
        if self.best_of > 1:
            observation = observation.expand(self.best_of, *observation.shape)
        flat = action.reshape(-1, action.shape[-1])
        q = nets.q(observation.reshape(-1, observation.shape[-1]), flat, averaged=True)
        if self.subset:
            q = q[noise.subset(len(q), self.subset)]
        return q.amin(0).view(action.shape[:-1])


@dataclass(frozen=True, slots=True)
class NextValue:
    """IQL's target of Q: ``y = r + γ V(s')``; no action outside the data is asked about.

    Source: Kostrikov et al. 2021, arXiv 2110.06169.

    Attributes:
        low, high: ends between which it is kept.
    """

    low: float = float("-inf")
    high: float = float("inf")

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ConfigError(f"NextValue(low={self.low}, high={self.high}): give ends in their order")

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, discount: float) -> Tensor:
        """``[B]``."""
        del noise
        with torch.no_grad():
            value = rows.later(nets.v(rows.next_observation), discount)
            return value.clamp(self.low, self.high) if self != NextValue() else value


@dataclass(frozen=True, slots=True)
class ReturnToGo:
    """The discounted return that followed: ``y = Σ_k γ^k r_{t+k}`` to the episode's end.

    Source: Peng et al. 2019, arXiv 1910.00177, which mixes it over lengths (TD(λ)); this is λ = 1.
    """

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, discount: float) -> Tensor:
        """``[B]``."""
        del nets, noise, discount
        return rows.to_go


def bootstrapped_return(rows: TransitionBatch, nets: Nets, discount: float) -> Tensor:
    """``[B]`` the return that followed, and at a cut at the horizon what would have come: ``G_t + γ^n V(s_end)``."""
    with torch.no_grad():
        later = discount ** rows.columns["ahead"] * nets.v(rows.columns["end_observation"])
        return rows.to_go + later * rows.columns["cut"]


@dataclass(frozen=True, slots=True)
class BootstrappedReturn:
    """``y = Σ_k γ^k r_{t+k} + γ^n V(s_end)``: the return that followed, where a cut at the horizon is no end.

    Without the second part a step near the horizon looks good or bad for its time alone, which no policy can see.
    """

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, discount: float) -> Tensor:
        """``[B]``."""
        del noise
        return rows.reward.where(rows.terminal, bootstrapped_return(rows, nets, discount))


@dataclass(frozen=True, slots=True)
class SampledAction:
    """AWAC's target: ``y = r + γ min_i Q̄_i(s', a')`` with ``a' ~ π``.

    Source: Nair et al. 2020, arXiv 2006.09359.
    """

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, discount: float) -> Tensor:
        """``[B]``."""
        with torch.no_grad():
            action, _ = nets.sample(rows.next_observation, noise)
            return rows.later(nets.least_q(rows.next_observation, action.clamp(-1, 1), averaged=True), discount)


@dataclass(frozen=True, slots=True)
class BestChoice:
    """DQN's target: ``y = r + γ max_a Q̄(s', a)``, or with ``double`` ``r + γ Q̄(s', argmax_a Q(s', a))``.

    Source: Mnih et al. 2015; van Hasselt et al. 2015, arXiv 1509.06461.

    Attributes:
        double: whether the network itself, and not its averaged copy, says which choice is best.
    """

    double: bool = False

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, discount: float) -> Tensor:
        """``[B]``."""
        del noise
        with torch.no_grad():
            values = nets.all_q(rows.next_observation, averaged=True)
            best = nets.all_q(rows.next_observation) if self.double else values
            return rows.later(values.gather(1, best.argmax(1, keepdim=True)).squeeze(1), discount)
