"""Trust regions that leave tokens out: by a divergence of two policies at a token, or by any other region's border."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.objective.loss.base import View
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.trust import HardRegion, TrustRegion

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DivergenceMask", "Within"]

_MEASURES = ("tv", "kl")
_INF = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceMask(HardRegion):
    """DPPO's binary masks: a token is left out where the step would lead further away and the policies already differ by more
    than a bound, in what they give the sampled token: ``p`` now, ``q`` under the anchor.

    ``tv``: ``|p - q|``. ``kl``: ``q log(q/p) + (1-q) log((1-q)/(1-p))`` in nats. Further away is ``p > q`` where ``A > 0`` and
    ``p < q`` where ``A < 0``. ``g = min(r, cap)`` where kept, else 0. A ratio bounds rare tokens tightly and frequent ones
    loosely; a divergence does not.

    Attributes:
        measure: ``tv`` or ``kl``.
        low, high: the bound where the probability has fallen, and where it has risen.
        both: leave tokens out on both sides, whatever the sign of A (prime-rl's ``ipo``).
        cap: largest weight.
        anchor: the policy compared with; the ratio may have another.
    """

    measure: str = "tv"
    low: float = 0.2
    high: float = 0.2
    both: bool = False
    cap: float = _INF
    anchor: str = "engine"

    def __post_init__(self) -> None:
        if self.measure not in _MEASURES:
            raise UnknownNameError("divergence measure", self.measure, _MEASURES)
        if not self.low >= 0 or not self.high >= 0 or not self.cap >= 1:
            raise ConfigError(f"DivergenceMask(low={self.low}, high={self.high}, cap={self.cap}): use bounds >= 0 and a cap >= 1")

    @property
    def anchors(self) -> tuple[str, ...]:
        """The anchor."""
        return (self.anchor,)

    def outside(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` tokens that are left out."""
        logp, logq = view.live("logp_new").detach(), view.logp(self.anchor)
        gap = logp.exp() - logq.exp()
        size = gap.abs() if self.measure == "tv" else _binary_kl(logq, logp)
        risen, fallen = (gap > 0) & (size > self.high), (gap < 0) & (size > self.low)
        return risen | fallen if self.both else risen & (advantage > 0) | fallen & (advantage < 0)

    def weight(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` ``min(r, cap)`` where kept, else 0."""
        return ratio.clamp(max=self.cap) * ~self.outside(view, ratio, advantage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Within(HardRegion):
    """One region's weight on the tokens that another one keeps: ``g = g_inner`` inside the gate, else 0.

    ``Within(WeightClip(), gate=MinClip())`` is CISPO's general form, with PPO's token mask. With a ratio of its own the gate may
    judge whole rollouts: ``Gate(positive=(0, inf), negative=(exp(-delta), inf))`` by ``Ratio("sequence_mean", anchor="engine")``
    drops the rollouts with ``A < 0`` that have drifted by more than ``delta`` nats per token (off-policy sequence mask).

    Attributes:
        inner: whose weight it is.
        gate: whose border it is.
        ratio: what the gate judges; the policy term's own ratio when None.
    """

    inner: TrustRegion
    gate: HardRegion
    ratio: Ratio | None = None

    def __post_init__(self) -> None:
        if self.ratio is not None and (self.ratio.level == "none" or isinstance(self.gate, DivergenceMask)):
            raise ConfigError(
                f"Within(gate={type(self.gate).__name__}, ratio={self.ratio}): the gate has no use for that ratio; leave it out"
            )

    @property
    def scope(self) -> Scope:
        """A rollout where any part needs it."""
        parts = [self.inner.scope, self.gate.scope, *([self.ratio.scope] if self.ratio else [])]
        return Scope.SEQUENCE if Scope.SEQUENCE in parts else Scope.TOKEN

    @property
    def needs(self) -> tuple[str, ...]:
        """What the parts read."""
        return (*self.inner.needs, *self.gate.needs, *(self.ratio.needs if self.ratio else ()))

    @property
    def anchors(self) -> tuple[str, ...]:
        """Those of the parts."""
        return (*self.inner.anchors, *self.gate.anchors, *(self.ratio.anchors if self.ratio else ()))

    def outside(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` tokens outside the gate, or outside the inner region where that has a border."""
        out = self._gate(view, ratio, advantage)
        return out | self.inner.outside(view, ratio, advantage) if isinstance(self.inner, HardRegion) else out

    def weight(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` the inner weight inside the gate, else 0."""
        return self.inner.weight(view, ratio, advantage) * ~self._gate(view, ratio, advantage)

    def loss(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        """``[n]`` the inner loss inside the gate, else 0."""
        return self.inner.loss(view, ratio, advantage) * ~self._gate(view, ratio, advantage)

    def _gate(self, view: View, ratio: Tensor, advantage: Tensor) -> Tensor:
        judged = ratio if self.ratio is None else self.ratio.of(view)
        return self.gate.outside(view, judged.detach(), advantage)


def _binary_kl(logq: Tensor, logp: Tensor) -> Tensor:
    """``[n]`` divergence of "this token or another" under ``p`` from that under ``q``."""
    rest_q, rest_p = (-logq.expm1()).clamp(min=1e-8), (-logp.expm1()).clamp(min=1e-8)
    return logq.exp() * (logq - logp) + rest_q * (rest_q.log() - rest_p.log())
