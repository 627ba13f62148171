"""How likely the policy itself is to write an answer, as a weight (WPO)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core.plan import Forward
from assay.core.vocab import VocabStat

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["CONFIDENCE", "LogSquaredMass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSquaredMass(VocabStat):
    """``log sum_v p_v^2``: the mean log-probability of a draw, were it weighed by its own probability."""

    @property
    def kind(self) -> str:
        """``logp_squared``."""
        return "logp_squared"

    def of(self, logp: Tensor, ids: Tensor, others: Mapping[str, Tensor], columns: Mapping[str, Tensor]) -> Tensor:
        """``[c]`` logarithms."""
        return (2 * logp).logsumexp(1)


CONFIDENCE = Forward("logp_squared_now", "policy", "step", LogSquaredMass())
"""The pass that WPO's weights need: ``exp(mean_t (logp_now - logp_squared_now))``."""
