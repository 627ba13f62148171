"""Likelihood of given tokens: supervised learning, on whole streams or on what is worth imitating."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch
from assay.objective.loss.base import LossTerm, View
from assay.objective.loss.weights import TokenWeight
from assay.objective.reducers import F, Reducer

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Nll"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nll(LossTerm):
    """Negative log-likelihood ``-w logp_new``: supervised learning, on all streams unless some are named.

    With ``by`` it is weighted behaviour cloning. What weighs 0 stays in the denominators; `assay.objective.loss.wrap.Where`
    counts anew.

    Attributes:
        by: what weighs the tokens: ``reward``, ``advantage``, or another column of the rollouts; all weigh 1 when empty. Negative
            numbers count as 0: nothing is made less likely here.
        weights: further detached factors per token, multiplied.
    """

    streams: tuple[str, ...] = ()
    by: str = ""
    weights: tuple[TokenWeight, ...] = ()

    @property
    def sparse(self) -> bool:
        """Rows may weigh nothing."""
        return bool(self.by)

    @property
    def needs(self) -> tuple[str, ...]:
        """What the weights read, and the advantage per token where that weighs."""
        own = ("advantage",) if self.by == "advantage" else ()
        return (*own, *(n for w in self.weights for n in w.needs))

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The column of the rollouts that weighs them."""
        return () if self.by in ("", "reward", "advantage") else (self.by,)

    @property
    def reward(self) -> bool:
        """When it is weighted by what the credit chain makes."""
        return self.by in ("reward", "advantage")

    @property
    def reduces(self) -> bool:
        """When a weight does."""
        return any(w.reduces for w in self.weights)

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """The aggregation's weights, times what weighs the tokens."""
        weight = share
        if self.by:
            given = batch.token(self.by) if self.by == "advantage" else np.repeat(batch.per_row(self.by), batch.lengths)
            weight = np.where(share != 0, share * np.maximum(np.asarray(given, np.float64), 0.0), 0.0)
        for part in self.weights:
            weight = weight * part.factors(batch, self.streams, reducer)
        return {"weight": weight}

    def apply(self, view: View) -> Tensor:
        """``[n]`` ``-logp_new``."""
        return -view.live("logp_new")
