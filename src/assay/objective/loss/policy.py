"""The policy gradient: ratio, trust region, detached weights. Its whole effect is one number per token, the gradient weight
``g``.

    loss_t = - A_t f(r_t),      grad = - A_t g_t grad logp_t
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import PlanError
from assay.core.plan import Scope
from assay.core.sample import STREAMS
from assay.objective.loss.base import LossTerm, View
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.ratio_kinds import GeoMean
from assay.objective.loss.trust import HardRegion, MinClip, TrustRegion
from assay.objective.loss.weights import TokenWeight
from assay.objective.reducers import F, Reducer

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["UNSAMPLED", "PolicyGradient"]

UNSAMPLED = ("expert", "preference")
"""Streams whose rows no sampler of ours wrote, so that they have no ``logp_engine``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGradient(LossTerm):
    """The terminal that is linear in the advantage.

    The old policy of a replayed rollout is the one that sampled it, for the ratio and for corrections beside it alike: where
    ``old`` anchors the ratio, a correction is 1 on replayed rows.

    Attributes:
        ratio: comparison with the batch's policy.
        trust: bounds on it; None for none.
        weights: detached factors per token: mismatch corrections and token weights, multiplied.
    """

    ratio: Ratio = field(default_factory=Ratio)
    trust: TrustRegion | None = field(default_factory=MinClip)
    weights: tuple[TokenWeight, ...] = ()
    label: str = "policy"

    @property
    def scope(self) -> Scope:
        """A rollout where ratio or trust region needs it."""
        return self.trust.scope if self.trust and self.ratio.scope is Scope.TOKEN else self.ratio.scope

    @property
    def terminal(self) -> bool:
        """It is one."""
        return True

    @property
    def sparse(self) -> bool:
        """Tokens without advantage have neither loss nor gradient."""
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        """What ratio, trust region and weights read, beside the log-probabilities of `anchors`."""
        parts = (self.ratio, *((self.trust,) if self.trust else ()), *self.weights)
        return tuple(n for p in parts for n in p.needs)

    @property
    def anchors(self) -> tuple[str, ...]:
        """Those of ratio and trust region."""
        return tuple(dict.fromkeys((*self.ratio.anchors, *(self.trust.anchors if self.trust else ()))))

    @property
    def reward(self) -> bool:
        """It reads ``advantage``."""
        return True

    @property
    def reduces(self) -> bool:
        """When a weight does."""
        return any(w.reduces for w in self.weights)

    def check(self) -> None:
        """What its parts make of each other.

        Raises:
            PlanError: the sampler's mismatch would be corrected twice or cannot be known, or two parts gate the same ratio.
        """
        twice = [type(w).__name__ for w in self.weights if w.corrects]
        if len(twice) > 1:
            raise PlanError(f"{' and '.join(twice)} both multiply by pi_old/pi_engine: keep one, or let the other only mask")
        if twice and self.ratio.anchor == "engine":
            raise PlanError(
                f"{twice[0]} multiplies by pi_old/pi_engine, which {type(self.ratio).__name__}(anchor='engine') holds already: "
                "anchor the ratio at 'old' or drop the correction"
            )
        read = {*self.needs, *(f"logp_{a}" for a in self.anchors)}
        blind = [s for s in self.streams or STREAMS if s in UNSAMPLED]
        if "logp_engine" in read and blind:
            raise PlanError(
                f"{self.name!r} compares with the sampler, but no sampler wrote the rows of {blind}: give these streams a term "
                "of their own, without correction and anchored at 'old'"
            )
        if isinstance(self.ratio, GeoMean) and self.trust is not None:
            raise PlanError(
                f"GeoMean clips inside its mean, and {type(self.trust).__name__} would bound the ratio again: set trust=None"
            )

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """Weights: the aggregation's, times the detached factors, 0 where the advantage is 0; and ``clipped``, 1 where one of
        these cuts off or leaves out what it compares of trainer and sampler.
        """
        weight = np.where(batch.token("advantage") != 0, share, 0.0)
        clipped: list[NDArray[np.bool_]] = []
        seen = _with_replayed_policy(batch) if self.ratio.anchor == "old" and self.ratio.level != "none" else batch
        for part in self.weights:
            weight = weight * part.factors(seen, self.streams, reducer)
            if (cut := part.clip_mask(seen)) is not None:
                clipped.append(cut)
        return {"weight": weight} | ({"clipped": np.any(clipped, 0).astype(np.float64)} if clipped else {})

    def apply(self, view: View) -> Tensor:
        """``[n]`` surrogate loss."""
        advantage = view.column("advantage")
        if self.ratio.level == "none":
            return -advantage * view.live("logp_new")
        ratio, factor = self.ratio.of(view), self.ratio.factor(view)
        loss = -advantage * ratio if self.trust is None else self.trust.loss(view, ratio, advantage)
        return loss if factor is None else loss * factor

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``kl_ANCHOR``: KL(anchor||pi) by k3; ``clip_fraction``: share of the tokens beyond the trust region's border; where it
        has none ``gradient_weight``: mean of ``g``. With rows that the policy did not sample also ``others``, the share of their
        tokens, and ``clip_others`` and ``weight_others``: as the two before, with 0 at the policy's own tokens.
        """
        if self.ratio.level == "none":
            return {}
        log_ratio = view.log_ratio(self.ratio.anchor)
        numbers = {f"kl_{self.ratio.anchor}": log_ratio.exp() - 1 - log_ratio}
        ratio, advantage, out = self.ratio.of(view), view.column("advantage"), self.ratio.outside(view)
        if isinstance(self.trust, HardRegion):
            out = self.trust.outside(view, ratio, advantage)
        elif self.trust is not None:
            numbers["gradient_weight"] = self.trust.weight(view, ratio, advantage)
        if out is not None:
            numbers["clip_fraction"] = out.to(ratio.dtype)
        return numbers | _of_others(view, numbers)


def _of_others(view: View, numbers: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What the trust region does to the tokens of rows that the policy did not sample; 0 at its own."""
    stream = np.repeat(view.batch.rows["stream"], view.batch.lengths)[view.index]
    others = view.tensor(stream != STREAMS.index("on_policy"))
    if not bool(others.any()):
        return {}
    found = {"clip_others": "clip_fraction", "weight_others": "gradient_weight"}
    return {"others": others} | {new: numbers[of] * others for new, of in found.items() if of in numbers}


def _with_replayed_policy(batch: Batch) -> Batch:
    """The batch as the ratio sees it: the old policy of a replayed rollout is the one that sampled it."""
    replayed = np.repeat(batch.rows["stream"] == STREAMS.index("replay"), batch.lengths)
    if not replayed.any() or not {"logp_old", "logp_engine"} <= set(batch.tokens):
        return batch
    old = np.where(replayed, batch.token("logp_engine"), batch.token("logp_old"))
    return batch.with_tokens(TokenColumn("logp_old", old, "objective"))
