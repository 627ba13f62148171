"""A penalty on the whole rollout's log-ratio in place of a bound on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from assay.core.errors import UnknownNameError
from assay.core.plan import Scope
from assay.objective.loss.base import LossTerm, View
from assay.objective.loss.units import pool_detached

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Proximal"]

_LEVELS = ("sequence_sum", "sequence_mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proximal(LossTerm):
    """``s^2 / 2`` per rollout, ``s = sum_t (logp_new - logp_ANCHOR)``: holds a policy gradient without ratio near the anchor
    (Kimi k1.5, DRO). Per token it is ``Kl("k2", anchor=...)``.

    With ``SeqSum`` the term is the mean over rollouts. Under it the best ``s`` is ``A / coef``, for any data.

    Attributes:
        level: ``sequence_sum``, or ``sequence_mean`` for ``s`` per token.
        anchor: the policy not to leave.
    """

    level: str = "sequence_sum"
    anchor: str = "old"
    label: str = "proximal"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if self.level not in _LEVELS:
            raise UnknownNameError("level of Proximal", self.level, _LEVELS)

    @property
    def scope(self) -> Scope:
        """A rollout."""
        return Scope.SEQUENCE

    @property
    def anchors(self) -> tuple[str, ...]:
        """The anchor."""
        return (self.anchor,)

    def apply(self, view: View) -> Tensor:
        """``[n]`` an equal share of ``s^2 / 2``, with the gradient ``s ds/dlogp`` of the token."""
        s = pool_detached(view, lambda v: v.log_ratio(self.anchor), self.level)
        owner = np.repeat(np.asarray(view.batch.rows["rollout"], np.int64), view.batch.lengths)[view.index]
        length = view.tensor(np.asarray(view.batch.rollout("tokens"), np.float64)[owner])
        logp = view.live("logp_new")
        slope = s / length if self.level == "sequence_mean" else s
        return s.square() / (2 * length) + slope * (logp - logp.detach())
