"""Imitation of an expert without rewards, meta-learning over two buffers, and critics with learned tails."""

from __future__ import annotations

from dataclasses import dataclass

from assay_control.methods.size import Sized
from assay_control.networks import Scalar
from assay_control.parts.actors import AdvantageWeighted, SoftGreedy
from assay_control.parts.base import Composition, Reptile, Update
from assay_control.parts.fits import DualValue, FitQ, Temperature
from assay_control.parts.imitation import ContrastiveQ, ExpertHalf, GeneralisedGaussian, ShapeFit
from assay_control.parts.schedules import DrawAction, Offline, Online
from assay_control.parts.sources import AlternateBlocks, Collected
from assay_control.parts.targets import SoftValue

__all__ = ["GGDSAC", "MOORL", "ReCOIL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReCOIL(Sized):
    """Imitates an expert out of a few of its episodes and many others, without rewards and without a discriminator.

    ``(1 - w) (E_D Q(s, π(s)) - E_E Q(s, a)) + w E (γ V(s') - Q)²``, a value by the bounded dual of f-DVL, and cloning of both
    sets by ``exp(beta (Q - V))``. Source: Sikchi et al. 2023, arXiv 2302.08560; coefficients are a third party's.

    Attributes:
        expert: episodes at the end of the data set that are the expert's.
        balance: w.
        dual: λ of the value.
        beta: sharpness of the cloning; advantages are scaled by their deviation.
        top: value that the expert's pairs are drawn to.
    """

    expert: int = 10
    balance: float = 0.8
    dual: float = 0.8
    beta: float = 3.0
    top: float = 20.0

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"v": self.net(), "q": self.critic(), "pi": self.net(outputs="normal")},
            updates=(
                Update(owner="v", fit=DualValue(weight=self.dual)),
                Update(owner="q", fit=ContrastiveQ(balance=self.balance, discount=self.discount, top=self.top)),
                Update(owner="pi", fit=AdvantageWeighted(temperature=1 / self.beta, normalise=True)),
            ),
            source=ExpertHalf(batch=self.batch, expert=self.expert),
            schedule=Offline(),
            discount=self.discount,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MOORL(Sized):
    """Meta offline-online RL: blocks of SAC on the data set or on what was collected, and a step of Reptile after each.

    ``θ_meta <- θ_meta + rate (θ_adapted - θ_meta)`` for actor and critics; no ensemble, and one update a step. After MOORL 2025,
    arXiv 2506.09574, whose numbers of inner steps and rates are not known.

    Attributes:
        start: steps of random actions before the first update.
        inner: updates of a block.
        rate: η; with 1 it is SAC on alternating buffers.
        share: probability that a block is of the data set.
        entropy: that the temperature aims at, per coordinate of an action.
    """

    start: int = 200
    inner: int = 10
    rate: float = 0.5
    share: float = 0.5
    entropy: float = -1.0

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"q": self.critic(), "pi": self.net(outputs="gaussian"), "alpha": Scalar(lr=self.lr)},
            updates=(
                Update(owner="q", fit=FitQ(), target=SoftValue()),
                Update(owner="pi", fit=SoftGreedy()),
                Update(owner="alpha", fit=Temperature(self.entropy)),
            ),
            source=AlternateBlocks(batch=self.batch, updates=self.inner, share=self.share),
            schedule=Online(start=self.start),
            explorer=DrawAction(),
            discount=self.discount,
            scale=False,
            reptile=Reptile(nets=("q", "pi"), updates=self.inner, rate=self.rate),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GGDSAC(Sized):
    """SAC whose critics learn under generalised normal errors: tails are learned, and unsure rows count less.

    ``|δ|^β - log(β / 2) + log Γ(1 / β)`` with β of a network, rows weighted by the inverse of the ensemble's variance. After
    generalised-Gaussian TD errors (2024).

    Attributes:
        start: steps of random actions before the first update.
        ensemble: critics.
        form: of the loss: ``power`` as in the paper, ``linear`` as in its code.
        mse: weight of the squares beside it.
        entropy: that the temperature aims at, per coordinate of an action.
        reward: factor of rewards, so that errors are near the scale of 1 that the density has.
    """

    start: int = 500
    ensemble: int = 5
    form: str = "power"
    mse: float = 0.1
    entropy: float = -1.0
    reward: float = 0.1

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={
                "q": self.critic(self.ensemble),
                "shape": self.net("observation action"),
                "pi": self.net(outputs="gaussian"),
                "alpha": Scalar(lr=self.lr),
            },
            updates=(
                Update(owner="q", fit=GeneralisedGaussian(form=self.form, mse=self.mse), target=SoftValue(subset=2)),
                Update(owner="shape", fit=ShapeFit(form=self.form), target=SoftValue(subset=2)),
                Update(owner="pi", fit=SoftGreedy(mean_q=True)),
                Update(owner="alpha", fit=Temperature(self.entropy)),
            ),
            source=Collected(batch=self.batch),
            schedule=Online(start=self.start),
            explorer=DrawAction(),
            discount=self.discount,
            scale=False,
            reward=(self.reward, 0.0),
        )
