"""Filters: weights per attempt. They change the estimator; the aggregation names the denominator (``kept`` or ``drawn``)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.reduce import Moments, Partials

__all__ = ["DropTruncated", "DropZeroVariance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropZeroVariance(CreditTerm):
    """Drops groups whose attempts all have the same *task metric* (DAPO's dynamic sampling without the refill).

    It looks at the metric, not at the shaped reward: a length penalty cannot bring a solved group back. Dropped attempts also
    leave the
    statistics of the terms that follow.

    Attributes:
        tolerance: largest standard deviation that still counts as none.
    """

    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if not self.tolerance >= 0:
            raise ConfigError(f"DropZeroVariance.tolerance={self.tolerance}; use 0 or a small positive number")

    @property
    def kind(self) -> str:
        """A filter."""
        return "filter"

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    @property
    def min_group(self) -> int:
        """One attempt has no variance."""
        return 2

    def local(self, credit: Credit) -> Partials:
        """Moments of the metric per group."""
        here = credit.counted
        return {"moments": Moments.of(credit.metric[here], credit.group[here], credit.groups)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets the weight of the dropped attempts to 0."""
        m: Moments = stats["moments"]
        varied = m.std(0) > self.tolerance
        told = credit.told(credit_dropped_groups=float(np.sum((m.count > 0) & ~varied)))
        kept = varied[credit.group]
        return replace(told, keep=np.where(kept, credit.keep, 0.0), counted=credit.counted & kept)


@dataclass(frozen=True, slots=True)
class DropTruncated(CreditTerm):
    """Takes attempts that were cut off at the length limit out of every loss (DAPO's overlong filtering).

    Their rewards stay in the statistics: only their tokens are not learned from.
    """

    @property
    def kind(self) -> str:
        """A filter."""
        return "filter"

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets their weight to 0."""
        cut = np.asarray(credit.batch.rollout("truncated"), np.bool_)
        return replace(credit.told(credit_dropped_truncated=float(cut.sum())), keep=np.where(cut, 0.0, credit.keep))
