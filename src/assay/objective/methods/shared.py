"""Compositions that several methods share."""

from __future__ import annotations

from assay.objective.credit.base import CreditTerm
from assay.objective.credit.baseline import Center
from assay.objective.credit.normalise import Scale
from assay.objective.loss.kl import Kl
from assay.objective.loss.trust import WeightClip

__all__ = ["GROUP_NORM", "cap_weight", "kl_term"]

GROUP_NORM: tuple[CreditTerm, ...] = (Center("group"), Scale("group"))
"""GRPO's advantage: ``(R_i - mu_q) / (sd_q + eps)``."""


def kl_term(estimator: str, coef: float) -> tuple[Kl, ...]:
    """A divergence term, or none when its coefficient is 0."""
    return (Kl(estimator, coef=coef),) if coef else ()


def cap_weight(cap: float) -> WeightClip:
    """A weight that is only bounded from above."""
    return WeightClip(positive=(0.0, cap), negative=(0.0, cap))
