"""Methods that learn from a data set alone."""

from __future__ import annotations

from dataclasses import dataclass

from assay.core.fields import later
from assay_control.methods.size import Weighted
from assay_control.networks import Scalar
from assay_control.parts.actors import AdvantageWeighted, Clone, ClonePenalty, GreedyAction, SoftGreedy
from assay_control.parts.base import Composition, Update
from assay_control.parts.conservative import Conservative
from assay_control.parts.fits import Expectile, FitQ, FitV, Temperature
from assay_control.parts.schedules import Offline
from assay_control.parts.targets import BootstrappedReturn, NextValue, PolicyNoise, ReturnToGo, SampledAction, SoftValue

__all__ = ["AWAC", "AWR", "BC", "CQL", "IQL", "TD3BC", "normalised_awac", "normalised_awr"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BC(Weighted):
    """Behaviour cloning: does what the data do; with ``weight="top"`` what its best tenth does (%BC).

    ``loss = |π(s) - a|²`` for vectors, ``-log π(a|s)`` for choices.
    """

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"pi": self.net(outputs="action")},
            updates=(Update(owner="pi", fit=Clone()),),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AWR(Weighted):
    """Advantage-weighted regression: clones actions by ``exp((G - V(s)) / beta)``, where V is fitted to the returns that
    followed.

    Source: Peng et al. 2019, arXiv 1910.00177, with Monte-Carlo returns for TD(λ). Where returns are in the hundreds and
    episodes are cut at a horizon it needs ``normalise``: without it half of the weights are at the clip and the others 0, and a
    step near the horizon is held to be good for its time alone (`normalised_awr`, which ``awr`` names on the command line).

    Attributes:
        beta: temperature of the weights.
        clip: greatest weight.
        normalise: whether advantages are scaled by their deviation in the batch, and a cut at the horizon bootstraps.
    """

    beta: float = 0.05
    clip: float = 20.0
    normalise: bool = later(False)

    def compose(self) -> Composition:
        """Its parts."""
        improve = AdvantageWeighted(temperature=self.beta, clip=self.clip, advantage="return - v")
        if self.normalise:
            improve = AdvantageWeighted(
                temperature=self.beta,
                clip=self.clip,
                advantage="bootstrapped return - v",
                normalise=True,
                discount=self.discount,
            )
        return Composition(
            nets={"v": self.net(), "pi": self.net(outputs="normal")},
            updates=(
                Update(owner="v", fit=FitV(), target=BootstrappedReturn() if self.normalise else ReturnToGo()),
                Update(owner="pi", fit=improve),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AWAC(Weighted):
    """Advantage-weighted actor-critic: clones actions by ``exp((Q(s, a) - Q(s, a')) / temperature)`` with ``a' ~ π``.

    Source: Nair et al. 2020, arXiv 2006.09359. With ``normalise`` the temperature does not depend on the size of rewards
    (`normalised_awac`, which ``awac`` names on the command line).

    Attributes:
        beta: temperature of the weights.
        clip: greatest weight.
        normalise: whether advantages are scaled by their deviation in the batch.
    """

    beta: float = 1.0
    clip: float = 100.0
    normalise: bool = later(False)

    def compose(self) -> Composition:
        """Its parts."""
        improve = AdvantageWeighted(temperature=self.beta, clip=self.clip, advantage="q - q(pi)", normalise=self.normalise)
        return Composition(
            nets={"q": self.critic(), "pi": self.net(outputs="normal")},
            updates=(
                Update(owner="q", fit=FitQ(), target=SampledAction()),
                Update(owner="pi", fit=improve),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TD3BC(Weighted):
    """TD3 with cloning: ``-(alpha / mean|Q|) Q(s, π(s)) + |π(s) - a|²``.

    Source: Fujimoto and Gu 2021, arXiv 2106.06860.

    Attributes:
        alpha: how much the value counts; at 0 it is behaviour cloning.
    """

    alpha: float = 2.5

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"q": self.critic(), "pi": self.net(outputs="action", averaged=True)},
            updates=(
                Update(owner="q", fit=FitQ(), target=PolicyNoise()),
                Update(owner="pi", fit=GreedyAction(self.alpha), regularisers=(ClonePenalty(1.0),), every=2),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IQL(Weighted):
    """Implicit Q-learning: V is an expectile of Q over the data's actions, which are cloned by ``exp(beta (Q - V))``.

    ``L_V = |tau - 1(u < 0)| u²``, ``u = min Q̄(s, a) - V(s)``; ``L_Q = (r + γ V(s') - Q(s, a))²``. No action outside the data is
    asked about. Source: Kostrikov et al. 2021, arXiv 2110.06169.

    Attributes:
        tau: expectile; 0.7 on locomotion, 0.9 in mazes.
        beta: sharpness of the cloning; 3 on locomotion, 10 in mazes.
    """

    tau: float = 0.7
    beta: float = 3.0

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"v": self.net(), "q": self.critic(), "pi": self.net(outputs="normal")},
            updates=(
                Update(owner="v", fit=Expectile(self.tau)),
                Update(owner="q", fit=FitQ(), target=NextValue()),
                Update(owner="pi", fit=AdvantageWeighted(temperature=1 / self.beta)),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CQL(Weighted):
    """Conservative Q-learning: SAC whose critic is pushed down on drawn actions and up on the data's.

    ``+ alpha (logsumexp_a Q(s, a) - Q(s, a_data))``. With ``calibrated``, values of the policy's actions are raised to the data's
    returns (Cal-QL). Source: Kumar et al. 2020, arXiv 2006.04779; Nakamoto et al. 2023, arXiv 2303.05479.

    Attributes:
        alpha: weight of the term.
        actions: drawn from each of three distributions.
        calibrated: whether the data's returns are a floor.
        entropy: of the policy that its temperature aims at, per coordinate.
    """

    alpha: float = 5.0
    actions: int = 4
    calibrated: bool = False
    entropy: float = -1.0

    def compose(self) -> Composition:
        """Its parts."""
        term = Conservative(weight=self.alpha, actions=self.actions, floor=self.calibrated)
        return Composition(
            nets={"q": self.critic(), "pi": self.net(outputs="gaussian"), "alpha": Scalar(lr=self.lr)},
            updates=(
                Update(owner="q", fit=FitQ(), target=SoftValue(entropy=False), regularisers=(term,)),
                Update(owner="pi", fit=SoftGreedy()),
                Update(owner="alpha", fit=Temperature(self.entropy)),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


def normalised_awr() -> AWR:
    """Advantage-weighted regression with normalised advantages: temperature 0.3 of their deviation, cuts bootstrapped.

    >>> normalised_awr().normalise
    True
    """
    return AWR(beta=0.3, clip=100.0, discount=0.95, normalise=True)


def normalised_awac() -> AWAC:
    """Advantage-weighted actor-critic with normalised advantages: temperature 0.3 of their deviation.

    >>> normalised_awac().beta
    0.3
    """
    return AWAC(beta=0.3, normalise=True)
