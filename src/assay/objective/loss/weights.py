"""Detached factors per token, computed in numpy before the gradient pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.plan import Scope
from assay.core.util.renamed import refuse_renamed
from assay.objective.loss.aggregate import of_streams
from assay.objective.reducers import F, Partials, Reducer

__all__ = ["TokenWeight"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWeight(ABC):
    """Base of all token weights: ``local -> reduce -> weigh``, with a second reduction where the first one must be known."""

    def __init_subclass__(cls) -> None:
        super(TokenWeight, cls).__init_subclass__()
        refuse_renamed(cls, {"clipped": "clip_mask", "further": "second_pass"})

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns that it reads."""
        return ()

    @property
    def scope(self) -> Scope:
        """How much must be visible to compute it."""
        return Scope.TOKEN

    @property
    def corrects(self) -> bool:
        """Whether it multiplies by ``pi_old / pi_engine``, which a ratio anchored at the engine holds already."""
        return False

    @property
    def reduces(self) -> bool:
        """Whether it has statistics that cross ranks."""
        return type(self).local is not TokenWeight.local

    def local(self, batch: Batch) -> Partials:
        """Partial statistics of the rows on this rank that are of the policy term's streams (maybe none)."""
        return {}

    def second_pass(self, batch: Batch, stats: Partials) -> Partials:
        """Partial statistics of the same rows that need the merged ones of `local`; the same names on every rank."""
        return {}

    @abstractmethod
    def weigh(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` factors, from the merged statistics of `local` and `second_pass`."""

    def clip_mask(self, batch: Batch) -> NDArray[np.bool_] | None:
        """``[N]`` tokens whose comparison of trainer and sampler it does not take as it is, but cuts off or leaves out, for the
        report; None where it compares no such two.
        """
        return None

    def factors(self, batch: Batch, streams: tuple[str, ...], reducer: Reducer) -> F:
        """``[N]`` factors for the whole optimiser batch, with the statistics of the rows of ``streams``."""
        rows = of_streams(batch, streams)
        stats = reducer.reduce(self.local(rows))
        return self.weigh(batch, {**stats, **reducer.reduce(self.second_pass(rows, stats))})
