"""The ids that tokens were drawn from, as a learner reads them: outside of these a token has no probability and no gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from assay.core.columns import Array
from assay.core.ragged import flat_of
from assay.runtime.kernels.typed import tensor_of

__all__ = ["OUTSIDE", "Support"]

OUTSIDE = -1e30
"""The logit of an id outside: its probability is exactly 0, and products with it are no NaN, as they would be with -inf."""


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """Lists of ids at ``N`` tokens, behind one another; an empty one stands for the whole vocabulary.

    Attributes:
        ends: ``[N + 1]`` int64, 0 and where each token's ids end.
        ids: ``[S]`` int64.
    """

    ends: Tensor
    ids: Tensor

    @classmethod
    def of(cls, values: Array, total: int) -> Support:
        """From a ragged column; tokens behind its end, up to ``total``, have no list."""
        lengths, ids = flat_of(values)
        ends = np.zeros(total + 1, np.int64)
        np.cumsum(np.maximum(lengths, 0), out=ends[1 : len(lengths) + 1])
        ends[len(lengths) + 1 :] = ends[len(lengths)]
        return cls(tensor_of(ends), tensor_of(ids.astype(np.int64)))

    def to(self, device: torch.device) -> Support:
        """The same there."""
        return Support(self.ends.to(device), self.ids.to(device))

    def at(self, where: Tensor) -> Support:
        """The lists of some tokens, ``[M]``."""
        starts, lengths = self.ends[where], self.ends[where + 1] - self.ends[where]
        ends = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        shift = torch.repeat_interleave(starts - ends[:-1], lengths)
        return Support(ends, self.ids[shift + torch.arange(len(shift), device=shift.device)])

    def mask(self, logits: Tensor, part: slice) -> Tensor:
        """Logits ``[c, V]`` of the tokens ``part`` with `OUTSIDE` outside of their lists, in their place."""
        ends = self.ends[part.start or 0 : (len(self.ends) - 1 if part.stop is None else part.stop) + 1]
        lengths = ends[1:] - ends[:-1]
        outside = (lengths > 0).unsqueeze(1).repeat(1, logits.shape[1])
        row = torch.repeat_interleave(torch.arange(len(lengths), device=logits.device), lengths)
        outside[row, self.ids[int(ends[0]) : int(ends[-1])]] = False
        return logits.masked_fill_(outside, OUTSIDE)
