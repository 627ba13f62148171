"""How far the current policy has moved from the one that a batch belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.objective.loss.base import View
from assay.objective.loss.units import columns_of, pool_detached, scope_of

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Ratio"]

_LEVELS = (
    "none",
    "token",
    "sequence_mean",
    "sequence_product",
    "turn_mean",
    "turn_product",
    "average",
    "geometric_average",
)


@dataclass(frozen=True, slots=True)
class Ratio:
    """How the current policy is compared with the one that the batch belongs to.

    ``token``: ``r_t = exp(logp_new - logp_ANCHOR)``. ``sequence_mean``: the exponential of the rollout's mean log-ratio ``s``
    (GSPO), the same for all its tokens. ``sequence_product``: of the summed log-ratio. ``turn_mean``, ``turn_product``: of a
    turn's, the tokens of one call. ``average``, ``geometric_average``: mean of ``r_t`` and ``s``, root of their product.
    ``none``: no ratio, ``g = 1``: strictly on-policy.

    Attributes:
        level: which.
        anchor: ``old`` (the trainer's own log-probabilities at the start), ``engine`` (the sampler's), ``ref``, or any other
            policy whose column ``logp_ANCHOR`` a pass fills or the rows bring.
    """

    level: str = "token"
    anchor: str = "old"

    def __post_init__(self) -> None:
        if self.level not in _LEVELS:
            raise UnknownNameError("ratio level", self.level, _LEVELS)
        if self.level == "none" and self.anchor != "old":
            raise ConfigError(
                f"Ratio('none', anchor={self.anchor!r}): without a ratio the anchor does nothing; drop it or choose a level"
            )

    @property
    def scope(self) -> Scope:
        """Pooled levels need all rows of a rollout together."""
        return scope_of(self.level)

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns beside log-probabilities: ``call`` for turns."""
        return columns_of(self.level)

    @property
    def anchors(self) -> tuple[str, ...]:
        """The anchor; none without a ratio."""
        return () if self.level == "none" else (self.anchor,)

    def of(self, view: View) -> Tensor:
        """``[n]`` ratios. A pooled one is a detached value that passes the gradient of each token's own log-probability."""
        if self.level == "token":
            return view.log_ratio(self.anchor).exp()
        logp = view.live("logp_new")
        return self._value(view) * (logp - logp.detach()).exp()

    def _value(self, view: View) -> Tensor:
        mixed = self.level.endswith("average")
        level = "sequence_mean" if mixed else self.level
        whole = pool_detached(view, lambda v: v.log_ratio(self.anchor), level).clamp(-20.0, 20.0)
        if not mixed:
            return whole.exp()
        token = view.log_ratio(self.anchor).detach()
        return ((token + whole) / 2).exp() if self.level == "geometric_average" else (token.exp() + whole.exp()) / 2

    def factor(self, view: View) -> Tensor | None:
        """``[n]`` detached factor of the loss that the ratio brings along; none for most."""
        return None

    def outside(self, view: View) -> Tensor | None:
        """``[n]`` tokens that the ratio itself gates, for the report; None where it gates none."""
        return None
