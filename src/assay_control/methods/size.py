"""Settings that most methods share."""

from __future__ import annotations

from dataclasses import dataclass

from assay.core import ConfigError
from assay.core.fields import later
from assay_control.networks import Net
from assay_control.parts.base import Source
from assay_control.parts.sources import Evenly, TopEpisodes, WeightedEpisodes

__all__ = ["Sized"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """Sizes and rates. The defaults suit runs of minutes; the papers' are width 256, batch 256, lr 3e-4, target 0.005.

    A value travels one step back in about ``1 / target`` updates, so a run needs at least ``horizon / target`` of them.

    Attributes:
        width: of a hidden layer.
        depth: hidden layers.
        lr: Adam's learning rate.
        batch: rows of a batch.
        discount: of later rewards.
        target: rate of the averaged copies.
        project: layer norm in hidden layers, and their weights kept at their norm of the start (Normalise-and-Project).
    """

    width: int = 64
    depth: int = 2
    lr: float = 1e-3
    batch: int = 128
    discount: float = 0.99
    target: float = 0.02
    project: bool = later(False)

    def net(
        self, inputs: str = "observation", outputs: str = "value", ensemble: int = 1, averaged: bool = False, **more: object
    ) -> Net:
        """A network of these sizes."""
        given: dict[str, object] = {"width": self.width, "depth": self.depth, "lr": self.lr, **more}
        if self.project:
            given |= {"layer_norm": True, "project": True}
        return Net(inputs=inputs, outputs=outputs, ensemble=ensemble, target=self.target if averaged else 0.0, **given)  # type: ignore[arg-type]

    def critic(self, ensemble: int = 2, **more: object) -> Net:
        """A critic of observations and actions, with an averaged copy."""
        return self.net("observation action", "value", ensemble, True, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted(Sized):
    """Settings of methods that learn from a data set.

    Attributes:
        weight: how its episodes are drawn: ``even``, ``return`` (RW), ``advantage`` (AW) or ``top`` (the best tenth).
        temperature: of RW and AW.
        reward: factor of rewards as they are learned from. Weights of actions are exponentials of values, so where values are in
            the hundreds a factor that brings advantages near 1 is needed.
    """

    weight: str = "even"
    temperature: float = 0.1
    reward: float = 1.0

    def source(self) -> Source:
        """The source of batches.

        Raises:
            ConfigError: an unknown word.
        """
        if self.weight == "even":
            return Evenly(batch=self.batch)
        if self.weight in ("return", "advantage"):
            return WeightedEpisodes(batch=self.batch, by=self.weight, temperature=self.temperature)
        if self.weight == "top":
            return TopEpisodes(batch=self.batch)
        raise ConfigError(f"{type(self).__name__}.weight={self.weight!r}; use even, return, advantage or top")
