"""The entropy bonus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.objective.loss.base import LossTerm, View

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Entropy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entropy(LossTerm):
    """Entropy bonus: minus the entropy of the current next-token distribution, over the whole vocabulary.

    ``coef`` is the weight of the bonus: positive coefficients raise the entropy.
    """

    @property
    def live(self) -> tuple[str, ...]:
        """The entropy with gradient."""
        return ("logp_new", "entropy")

    def apply(self, view: View) -> Tensor:
        """``[n]`` ``-H_t``."""
        return -view.live("entropy")

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``entropy_live``: mean entropy in nats."""
        return {"entropy_live": view.live("entropy")}
