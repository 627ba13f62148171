"""Losses that compare distributions of scores over the whole batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from assay.core.errors import ConfigError
from assay.objective.loss.sets.base import Scored, SetLoss
from assay.objective.loss.sets.pairwise import pairs_of
from assay.objective.reducers import F, Partials

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Pool", "SortedGaps"]


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Values of all ranks in ascending order: a partial statistic that merges by sorting."""

    values: F

    def merge(self, other: Pool) -> Pool:
        """The values of both."""
        return Pool(np.sort(np.concatenate([self.values, other.values])))


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedGaps(SetLoss):
    """AOT: ``-log sigmoid(beta (u_(r) - v_(r)))`` averaged over ranks r, with the u and the v each sorted over the whole batch.

    With ``paired`` u is the policy's gap ``logp+ - logp-`` of a pair and v the anchor's; without, u is the score of the better
    and v that of the worse rollout. Equal values share what stands at their ranks. One pair per group, best and worst; each
    rank knows all values, not only its own.

    Attributes:
        beta: factor of the gaps.
        paired: what is compared.
        smoothing: chance that a label is wrong, in [0, 1/2).
    """

    beta: float = 0.1
    paired: bool = True
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise ConfigError(f"SortedGaps.beta={self.beta}; use a positive number")
        if not 0 <= self.smoothing < 0.5:
            raise ConfigError(f"SortedGaps.smoothing={self.smoothing}; use a chance in [0, 0.5)")

    @property
    def min_group(self) -> int:
        """A pair."""
        return 2

    def local(self, scored: Scored) -> Partials:
        """Both lists."""
        upper, lower = self._lists(scored)
        return {"upper": Pool(np.sort(upper.numpy())), "lower": Pool(np.sort(lower.numpy()))}

    def total(self, scored: Scored) -> tuple[Tensor, float]:
        """Sum over this rank's values of u, with the gradient of its values of v, and the number of its pairs."""
        upper, lower = self._lists(scored)
        all_upper, all_lower = scored.stats["upper"].values, scored.stats["lower"].values
        loss = self._compare_ranks(upper, all_upper, all_lower, 1.0).sum()
        mirrored = self._compare_ranks(lower, all_lower, all_upper, -1.0).sum()
        return loss + mirrored - mirrored.detach(), float(len(upper))

    def _lists(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """``[p]`` values of u and of v."""
        found = pairs_of(scored, "extreme")
        score = scored.score
        if not self.paired:
            return score[found.better], score[found.worse]
        own, anchored = score + scored.anchored, scored.anchored
        return own[found.better] - own[found.worse], anchored[found.better] - anchored[found.worse]

    def _compare_ranks(self, values: Tensor, same: F, other: F, sign: float) -> Tensor:
        """``[p]`` the loss of each value against what stands at its ranks in the other list."""
        import torch
        from torch.nn.functional import softplus

        plain = values.detach().numpy()
        first, last = np.searchsorted(same, plain, "left"), np.searchsorted(same, plain, "right")
        out = [values[:0].sum()]
        for value, a, b in zip(values, first, last, strict=True):
            x = self.beta * sign * (value - torch.as_tensor(other[a:b]))
            out.append(((1 - self.smoothing) * softplus(-x) + self.smoothing * softplus(x)).mean())
        return torch.stack(out)
