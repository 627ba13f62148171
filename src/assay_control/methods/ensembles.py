"""Offline methods that lean on an ensemble of critics, or on penalties of both networks."""

from __future__ import annotations

from dataclasses import dataclass

from assay_control.methods.size import Weighted
from assay_control.networks import Scalar
from assay_control.parts.actors import ClonePenalty, GreedyAction, SoftGreedy
from assay_control.parts.base import Composition, Regulariser, Update
from assay_control.parts.ensembles import (
    GradientDiversity,
    PerturbedPessimism,
    PerturbedPolicy,
    PerturbedValue,
    PolicyNoisePenalised,
)
from assay_control.parts.fits import FitQ, Temperature
from assay_control.parts.schedules import DrawAction, Offline, OfflineToOnline
from assay_control.parts.sources import DataThenHalf
from assay_control.parts.targets import SoftValue

__all__ = ["EDAC", "RO2O", "ReBRAC"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EDAC(Weighted):
    """Ensemble-diversified actor-critic: SAC with the least of many critics, whose gradients in the action are kept apart.

    ``y = r + γ (min_{i<=N} Q̄_i(s', a') - α log π)``, and ``+ diversity · mean_{i≠j} cos(∇_a Q_i, ∇_a Q_j)``; with
    ``diversity`` 0 it is SAC-N. Source: An et al. 2021, arXiv 2110.01548.

    Attributes:
        ensemble: critics.
        diversity: weight of the term; η of the paper.
        entropy: that the temperature aims at, per coordinate of an action.
    """

    ensemble: int = 10
    diversity: float = 1.0
    entropy: float = -1.0

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"q": self.critic(self.ensemble), "pi": self.net(outputs="gaussian"), "alpha": Scalar(lr=self.lr)},
            updates=(
                Update(owner="q", fit=FitQ(), target=SoftValue(), regularisers=(GradientDiversity(self.diversity),)),
                Update(owner="pi", fit=SoftGreedy()),
                Update(owner="alpha", fit=Temperature(self.entropy)),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReBRAC(Weighted):
    """TD3+BC with a weight of cloning of its own in the actor and in the critic's target, and layer norm in the critics.

    ``-Q / mean|Q| + w_a |π(s) - a|²``; ``y = r + γ (min Q̄(s', ã) - w_c |ã - a'|²)``. Source: Tarasov et al. 2023, arXiv
    2305.09836.

    Attributes:
        actor_weight: of cloning in the policy's loss.
        critic_weight: of the distance in the target.
    """

    actor_weight: float = 0.1
    critic_weight: float = 0.01

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"q": self.critic(2, layer_norm=True), "pi": self.net(outputs="action", averaged=True)},
            updates=(
                Update(owner="q", fit=FitQ(), target=PolicyNoisePenalised(self.critic_weight)),
                Update(owner="pi", fit=GreedyAction(1.0), regularisers=(ClonePenalty(self.actor_weight),), every=2),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RO2O(Weighted):
    """Robust offline-to-online: SAC with the least of many critics, smooth in disturbed states, the same loss before and after.

    ``+ value max_k (.8 δ⁺² + .2 δ⁻²) + pessimism |Q(s̃, ã) - sg(Q - κ std)|²`` for critics, ``+ policy max_k KL`` both ways for
    the policy, over states within ``radius``. At the switch only the source of batches changes: from then on half of each is
    collected. Source: Wen et al. 2023, arXiv 2309.16973.

    Attributes:
        offline: updates on the data set.
        ensemble: critics.
        radius: of the disturbance, in deviations of the data.
        samples: disturbances of each state; 20 in the paper.
        value, policy, pessimism: weights of the three terms.
        entropy: that the temperature aims at, per coordinate of an action.
    """

    offline: int = 1500
    ensemble: int = 10
    radius: float = 0.01
    samples: int = 4
    value: float = 1e-4
    policy: float = 1.0
    pessimism: float = 0.1
    entropy: float = -1.0

    def compose(self) -> Composition:
        """Its parts."""
        critic: tuple[Regulariser, ...] = (
            PerturbedValue(self.value, self.radius, self.samples),
            PerturbedPessimism(self.pessimism, self.radius),
        )
        return Composition(
            nets={"q": self.critic(self.ensemble), "pi": self.net(outputs="gaussian"), "alpha": Scalar(lr=self.lr)},
            updates=(
                Update(owner="q", fit=FitQ(), target=SoftValue(), regularisers=critic),
                Update(owner="pi", fit=SoftGreedy(), regularisers=(PerturbedPolicy(self.policy, self.radius, self.samples),)),
                Update(owner="alpha", fit=Temperature(self.entropy)),
            ),
            source=DataThenHalf(batch=self.batch, offline=self.offline),
            schedule=OfflineToOnline(offline=self.offline),
            explorer=DrawAction(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )
