"""Methods that clone sequences conditioned on the return that is to come."""

from __future__ import annotations

from dataclasses import dataclass

from assay.core import ConfigError
from assay_control.parts.base import Composition, Update
from assay_control.parts.schedules import Offline
from assay_control.parts.segments import Segments
from assay_control.parts.sequence import ActForReturn, SequenceClone
from assay_control.parts.transformer import SequenceNet

__all__ = ["DecisionTransformer", "MultiObjectiveDT"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTransformer:
    """Clones actions given what was seen and the return that is still to come; asked for a high return, it acts for one.

    Tokens ``(R_t, s_t, a_t)``, ``loss = |π(R_{<=t}, s_{<=t}, a_{<t}) - a_t|²``; while acting ``R_{t+1} = R_t - r_t``. Source:
    Chen et al. 2021, arXiv 2106.01345 (width 128, 3 layers, 100,000 updates), without dropout and weight decay. With ``stitch``
    segments go over into another episode where both pass one cell (Ghugare et al. 2024, arXiv 2401.11237).

    Attributes:
        width, layers, heads, context: of the transformer.
        lr: Adam's learning rate.
        warmup: updates over which it rises.
        batch: segments of a batch.
        wanted: return to ask for while acting; the best of the data where None.
        reward: factor of rewards, so that returns are near 1.
        by: how segments are drawn: ``even`` or by the ``return`` of their episode.
        stitch: probability that a segment is spliced from two episodes.
        cells: of k-means, within which episodes are spliced.
    """

    width: int = 64
    layers: int = 2
    heads: int = 1
    context: int = 10
    lr: float = 1e-3
    warmup: int = 100
    batch: int = 64
    wanted: float | None = None
    reward: float = 0.01
    by: str = "even"
    stitch: float = 0.0
    cells: int = 40

    def compose(self) -> Composition:
        """Its parts."""
        return self.composition_of(SequenceClone(), False)

    def composition_of(self, fit: SequenceClone, forecasts: bool) -> Composition:
        """Its parts with a loss.

        Raises:
            ConfigError: a factor of rewards that is not positive.
        """
        if self.reward <= 0:
            raise ConfigError(f"{type(self).__name__}.reward={self.reward}; use a positive factor")
        net = SequenceNet(
            width=self.width,
            layers=self.layers,
            heads=self.heads,
            context=self.context,
            lr=self.lr,
            warmup=self.warmup,
            forecasts=forecasts,
        )
        return Composition(
            nets={"pi": net},
            updates=(Update(owner="pi", fit=fit),),
            source=Segments(batch=self.batch, context=self.context, by=self.by, stitch=self.stitch, cells=self.cells),
            schedule=Offline(),
            discount=1.0,  # returns to go are sums
            reward=(self.reward, 0.0),
            actor=ActForReturn(wanted=self.wanted, reward=self.reward),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiObjectiveDT(DecisionTransformer):
    """A decision transformer that also learns what follows: ``L = L_a + states |ŝ' - s'|² + returns (R̂' - R')²``.

    After multi-objective decision transformers for offline RL (2023), whose weights are not known and whose tokens of action
    regions are left out. Multi-objective are its losses; rewards are one number.

    Attributes:
        states: weight of the next observation; at 0 with ``returns`` 0 the losses are those of the decision transformer.
        returns: weight of the next return to go.
    """

    states: float = 0.5
    returns: float = 0.5

    def compose(self) -> Composition:
        """Its parts."""
        told = SequenceClone(states=self.states, returns=self.returns)
        return self.composition_of(told, bool(self.states or self.returns))
