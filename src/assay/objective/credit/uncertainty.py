"""Advantages by how uncertain the policy was of a token (AEPO)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.stats import moments
from assay.objective.reducers import F, Moments, Partials

__all__ = ["ScaleByEntropy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleByEntropy(CreditTerm):
    """Larger advantages, of both signs, where the policy was uncertain: ``A_it = A_i max(0, 1 + coef z_it)`` (AEPO).

    ``z_it = (H_it - mean) / sd`` over all loss tokens of the rollout batch that count, ``H`` the entropy of the policy that
    sampled the token, in nats, as the engine tells it. Where all entropies are alike ``z`` is 0. The floor at 0 is assay's: a
    token far below the mean would otherwise be pushed against its own reward.

    Attributes:
        coef: of ``z``, positive. The published value is not known here.
        column: token column with the entropies ``[N]``.

    Raises:
        ConfigError: a coefficient that is not positive and finite.

    Source: AEPO (arXiv 2510.14545).
    """

    coef: float = 0.2
    column: str = "entropy"

    def __post_init__(self) -> None:
        if not 0 < self.coef < float("inf"):
            raise ConfigError(f"ScaleByEntropy.coef={self.coef}; use a positive number, or leave the term out")

    @property
    def needs(self) -> tuple[str, ...]:
        """The entropies."""
        return (self.column,)

    @property
    def scope(self) -> Scope:
        """The batch's tokens."""
        return Scope.BATCH

    def local(self, credit: Credit) -> Partials:
        """Moments of the entropies of tokens that count."""
        owner = credit.owner
        here = np.asarray(credit.batch.token("mask"), bool) & credit.counted[owner]
        weights = None if credit.copies is None else credit.copies[owner][here]
        return {"entropy": moments(self._entropy(credit)[here], np.zeros(int(here.sum()), np.int64), 1, weights)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Scales the advantages."""
        z = self._z(credit, stats["entropy"])
        mask: NDArray[np.bool_] = np.asarray(credit.batch.token("mask"), bool)
        found = credit.with_metrics(credit_entropy_floor=float(np.mean(1.0 + self.coef * z[mask] < 0)) if mask.any() else 0.0)
        return replace(found, tokens=credit.per_token() * np.maximum(1.0 + self.coef * z, 0.0))

    def _z(self, credit: Credit, m: Moments) -> F:
        sd, gap = float(m.std(0)[0]), self._entropy(credit) - m.mean[0]
        if not sd > 0:
            return np.zeros_like(gap)
        return np.where(np.abs(gap) > 1e-12 * sd, gap / sd, 0.0)  # the last bit of a mean decides nothing

    def _entropy(self, credit: Credit) -> F:
        return np.asarray(credit.batch.token(self.column), np.float64)
