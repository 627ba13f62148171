"""Published methods that are a part or two away from the base ones."""

from __future__ import annotations

from dataclasses import dataclass

from assay.core import ConfigError
from assay_control.methods.size import Sized, Weighted
from assay_control.networks import Scalar
from assay_control.parts.actors import AdvantageWeighted, GreedyAction, SoftGreedy
from assay_control.parts.base import Composition, Update
from assay_control.parts.conservative import Conservative
from assay_control.parts.fits import DualValue, Expectile, FitQ, Temperature
from assay_control.parts.nearest import NearestAction
from assay_control.parts.schedules import DrawAction, Offline, OfflineToOnline
from assay_control.parts.sources import DataThenCollected
from assay_control.parts.targets import NextValue, PolicyNoise, SoftValue

__all__ = ["DVL", "PRDC", "RIQL", "WSRL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PRDC(Weighted):
    """Policy regularisation with dataset constraint: TD3 whose actions stay near the nearest state-action pair of the data set.

    ``-(alpha / mean|Q|) Q(s, π(s)) + |π(s) - a*|²``, where ``(s*, a*)`` is nearest to ``(beta s, π(s))``: an action may come from
    elsewhere, not from this state alone as in TD3+BC. Source: Ran et al. 2023, arXiv 2306.06569.

    Attributes:
        alpha: how much the value counts.
        beta: how much states count in the search.
    """

    alpha: float = 2.5
    beta: float = 2.0

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"q": self.critic(), "pi": self.net(outputs="action", averaged=True)},
            updates=(
                Update(owner="q", fit=FitQ(), target=PolicyNoise()),
                Update(owner="pi", fit=GreedyAction(self.alpha), regularisers=(NearestAction(beta=self.beta),), every=2),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DVL(Weighted):
    """f-DVL: implicit Q-learning whose value is fitted by the dual of a bounded divergence in place of the expectile.

    ``mean(λ f(Q̄ - V) - (1 - λ)(Q̄ - V))`` with ``f = max(x + x²/4, 0)`` or ``max(x, 0)``; ``Q`` by Huber's loss with δ 20.
    Source: Sikchi et al. 2023, arXiv 2302.08560.

    Attributes:
        dual: λ.
        kind: ``chi2`` or ``tv``.
        beta: sharpness of the cloning.
    """

    dual: float = 0.8
    kind: str = "chi2"
    beta: float = 3.0

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"v": self.net(), "q": self.critic(), "pi": self.net(outputs="normal")},
            updates=(
                Update(owner="v", fit=DualValue(weight=self.dual, kind=self.kind)),
                Update(owner="q", fit=FitQ(delta=20.0), target=NextValue()),
                Update(owner="pi", fit=AdvantageWeighted(temperature=1 / self.beta)),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RIQL(Weighted):
    """Robust IQL for corrupted data: Huber's loss for Q, a quantile of an ensemble in place of its least, targets kept in bounds.

    ``δ = 1 / sigma²`` is where Huber's loss turns linear, so an outlier moves Q by a bounded step; states are always scaled by
    the data. The policy gives one action, as in the released code. Source: Yang et al. 2023, arXiv 2310.12955.

    Attributes:
        tau: expectile.
        beta: sharpness of the cloning.
        ensemble: critics.
        quantile: of their values; 0 is the least.
        sigma: of Huber's loss; towards 0 it is the squared one.
        low, high: ends of targets, after ``reward``.
    """

    tau: float = 0.7
    beta: float = 3.0
    ensemble: int = 5
    quantile: float = 0.25
    sigma: float = 1.0
    low: float = -100.0
    high: float = 1000.0

    def compose(self) -> Composition:
        """Its parts.

        Raises:
            ConfigError: ``sigma`` is not positive.
        """
        if self.sigma <= 0:
            raise ConfigError(f"RIQL.sigma={self.sigma}; use a positive number")
        return Composition(
            nets={"v": self.net(), "q": self.critic(self.ensemble), "pi": self.net(outputs="action")},
            updates=(
                Update(owner="v", fit=Expectile(self.tau, quantile=self.quantile)),
                Update(owner="q", fit=FitQ(delta=1 / self.sigma**2), target=NextValue(low=self.low, high=self.high)),
                Update(owner="pi", fit=AdvantageWeighted(temperature=1 / self.beta, quantile=self.quantile)),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WSRL(Sized):
    """Warm-start RL: pre-trains on a data set, forgets it, acts with the frozen policy for a while, then goes on as SAC.

    The rows of the warm-up ``r_1 ... r_warmup`` are what keeps values from collapsing at the switch: they are the first that the
    critic sees of its own policy. Pre-training is Cal-QL; online the critics are an ensemble with layer norm, the target the
    least of a random two, without entropy: ``y = r + γ min_2 Q̄(s', a')``. Optimisers go on at the switch. Source: Zhou et al.
    2024, arXiv 2412.07762.

    Attributes:
        offline: updates on the data set.
        warmup: steps of the frozen policy; 5,000 in the paper.
        updates: after each further step; 4 in the paper.
        ensemble: critics; 10 in the paper.
        alpha: weight of the conservative term while offline.
        actions: drawn for it from each of three distributions.
        calibrated: whether the data's returns are its floor.
        entropy: that the temperature aims at, per coordinate of an action.
    """

    offline: int = 1500
    warmup: int = 400
    updates: int = 1
    ensemble: int = 2
    alpha: float = 5.0
    actions: int = 4
    calibrated: bool = True
    entropy: float = 0.0

    def compose(self) -> Composition:
        """Its parts."""
        term = Conservative(weight=self.alpha, actions=self.actions, floor=self.calibrated)
        subset = 2 if self.ensemble > 2 else 0
        return Composition(
            nets={
                "q": self.critic(self.ensemble, layer_norm=True),
                "pi": self.net(outputs="gaussian", layer_norm=True),
                "alpha": Scalar(lr=self.lr),
            },
            updates=(
                Update(owner="q", fit=FitQ(), target=SoftValue(entropy=False), regularisers=(term,), until=self.offline),
                Update(owner="q", fit=FitQ(), target=SoftValue(subset=subset, entropy=False), since=self.offline),
                Update(owner="pi", fit=SoftGreedy()),
                Update(owner="alpha", fit=Temperature(self.entropy)),
            ),
            source=DataThenCollected(batch=self.batch, offline=self.offline),
            schedule=OfflineToOnline(offline=self.offline, warmup=self.warmup, updates=self.updates),
            explorer=DrawAction(),
            discount=self.discount,
        )
