"""Methods that learn a model of the world and let their policy practise in it."""

from __future__ import annotations

from dataclasses import dataclass

from assay.core import ConfigError
from assay_control.methods.size import Sized, Weighted
from assay_control.networks import Net, Scalar
from assay_control.parts.actors import SoftGreedy
from assay_control.parts.base import Composition, Update
from assay_control.parts.fits import FitQ, Temperature
from assay_control.parts.models import ImaginedRows, ModelLikelihood, ValueGradientModel
from assay_control.parts.schedules import DrawAction, Offline, Online
from assay_control.parts.sources import Collected
from assay_control.parts.targets import SoftValue

__all__ = ["MBPO", "MOPO", "VaGraM"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MOPO(Weighted):
    """Model-based offline policy optimisation: SAC in an ensemble of models, whose rewards are less where the models are unsure.

    ``r̃ = r̂ - penalty · max_i |σ_i(s, a)|`` on branches of up to ``steps`` steps from the data's states; the rest of each
    batch is of the data. The model learns first, alone. Source: Yu et al. 2020, arXiv 2005.13239 (7 members, 5 of them kept; 5
    to 50 % real rows), with all members kept and branches imagined afresh for each batch.

    Attributes:
        members: of the ensemble.
        model: updates of it before the policy's first.
        share: of the rows of a batch that are imagined.
        steps: depth of a branch.
        penalty: λ.
        entropy: that the temperature aims at, per coordinate of an action.
    """

    members: int = 5
    model: int = 1000
    share: float = 0.5
    steps: int = 5
    penalty: float = 1.0
    entropy: float = -1.0

    def compose(self) -> Composition:
        """Its parts."""
        imagined = ImaginedRows(share=self.share, steps=self.steps, penalty=self.penalty, since=self.model)
        return Composition(
            nets={
                "model": self.net("observation action", "model", self.members, activation="silu"),
                "q": self.critic(),
                "pi": self.net(outputs="gaussian"),
                "alpha": Scalar(lr=self.lr),
            },
            updates=(
                Update(owner="model", fit=ModelLikelihood(), until=self.model),
                Update(owner="q", fit=FitQ(), target=SoftValue(), since=self.model, transformed=True),
                Update(owner="pi", fit=SoftGreedy(), since=self.model, transformed=True),
                Update(owner="alpha", fit=Temperature(self.entropy), since=self.model, transformed=True),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
            transform=imagined,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MBPO(Sized):
    """Model-based policy optimisation: SAC on rows that it collected and on short branches that its model imagines from them.

    ``batch = share`` imagined rows of at most ``steps`` steps, the rest as collected; the model learns from collected rows alone,
    ``-log N((Δs, r); μ_i, σ_i²)``. Source: Janner et al. 2019, arXiv 1906.08253.

    Attributes:
        start: steps of random actions before the first update.
        updates: after each step of the world.
        members: of the ensemble.
        share: of the rows of a batch that are imagined.
        steps: depth of a branch.
        entropy: that the temperature aims at, per coordinate of an action.
        model_width: of the model's layers; ``width`` where 0.
        reward: factor of rewards as they are learned from.
    """

    start: int = 300
    updates: int = 1
    members: int = 3
    share: float = 0.5
    steps: int = 1
    entropy: float = -1.0
    model_width: int = 0
    reward: float = 0.1

    def model_fit(self) -> ModelLikelihood | ValueGradientModel:
        """The loss of the model."""
        return ModelLikelihood()

    def compose(self) -> Composition:
        """Its parts.

        Raises:
            ConfigError: a negative width.
        """
        if self.model_width < 0:
            raise ConfigError(f"{type(self).__name__}.model_width={self.model_width}; use 0 or a width")
        return Composition(
            nets={
                "model": self._model(),
                "q": self.critic(),
                "pi": self.net(outputs="gaussian"),
                "alpha": Scalar(lr=self.lr),
            },
            updates=(
                Update(owner="model", fit=self.model_fit()),
                Update(owner="q", fit=FitQ(), target=SoftValue(), transformed=True),
                Update(owner="pi", fit=SoftGreedy(), transformed=True),
                Update(owner="alpha", fit=Temperature(self.entropy), transformed=True),
            ),
            source=Collected(batch=self.batch),
            schedule=Online(start=self.start, updates=self.updates),
            explorer=DrawAction(),
            discount=self.discount,
            scale=False,
            reward=(self.reward, 0.0),
            transform=ImaginedRows(share=self.share, steps=self.steps),
        )

    def _model(self) -> Net:
        width = self.model_width or self.width
        return self.net("observation action", "model", self.members, activation="silu", width=width)


@dataclass(frozen=True, slots=True, kw_only=True)
class VaGraM(MBPO):
    """MBPO whose model is fitted where it matters for values: ``Σ_j (∂_j V(s') (ŝ'_j - s'_j))² + (r̂ - r)²``.

    Source: Voelcker et al. 2022, arXiv 2204.01464.

    Attributes:
        bound: quantile of the norms of values' gradients at which they are cut.
    """

    bound: float = 0.95

    def model_fit(self) -> ModelLikelihood | ValueGradientModel:
        """The loss of the model."""
        return ValueGradientModel(bound=self.bound)
