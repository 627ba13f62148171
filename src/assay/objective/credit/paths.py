"""The order of a rollout's loss tokens over all its rows, and sums that run backwards along it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.objective.credit.base import Credit
from assay.objective.reducers import F, tally

__all__ = ["Index", "Path", "check_gamma", "path_of"]

Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Path:
    """The ``n`` links of all rollouts' chains, rollout after rollout, each in order: loss tokens, or segments of them.

    What stands between loss tokens (prompts, tool output) is no link: the next link is the next *action*. Rows of a rollout
    follow one another as they stand in the batch.

    Attributes:
        at: ``[n]`` position in the batch of each link's first token.
        owner: ``[n]`` rollout of each link.
        start, length: ``[R]`` first link and number of links of each rollout.
    """

    at: Index
    owner: Index
    start: Index
    length: Index

    @staticmethod
    def of(credit: Credit) -> Path:
        """The chains of a record's loss tokens."""
        return path_of(credit.batch)

    @property
    def last(self) -> NDArray[np.bool_]:
        """``[n]`` whether a rollout ends with this link."""
        return np.append(self.owner[1:] != self.owner[:-1], True)[: len(self.at)]

    @property
    def place(self) -> Index:
        """``[n]`` number of the link in its rollout."""
        return np.arange(len(self.at)) - self.start[self.owner]

    def link_payments(self, credit: Credit) -> F:
        """``[n]`` what each link of *tokens* is paid: the steps, and at the last one what is left of the reward."""
        steps = np.zeros(len(self.at)) if credit.steps is None else credit.steps[self.at]
        left = credit.reward - tally(self.owner, steps, len(credit.reward))
        return steps + np.where(self.last, left[self.owner], 0.0)

    def to_go(self, values: F, decay: F | float) -> F:
        """``[n]`` ``out_k = values_k + decay * out_(k+1)``, 0 behind the last link; ``decay`` is one number, or ``[R]``."""
        out = np.array(values, np.float64)
        factor = np.broadcast_to(np.asarray(decay, np.float64), self.length.shape)
        for here in reversed(self._steps()):
            out[here] += factor[self.owner[here]] * out[here + 1]
        return out

    def so_far(self, values: F) -> F:
        """``[n]`` the sum of a rollout's values up to and with each link."""
        out = np.array(values, np.float64)
        for here in self._steps():
            out[here + 1] += out[here]
        return out

    def _steps(self) -> list[Index]:
        """The links with another one behind them, those at the same place of their rollouts together, from the first place on."""
        order = np.argsort(-self.length, kind="stable")
        start, length = self.start[order], self.length[order]
        counts = np.searchsorted(-length, -np.arange(1, int(length[0])), "left")  # rollouts that are longer than the place
        return [start[:count] + place for place, count in enumerate(counts.tolist())]

    def next(self, values: F) -> F:
        """``[n]`` the value of the next link, 0 behind the last."""
        return np.where(self.last, 0.0, np.append(values[1:], 0.0)[: len(values)])

    def segments(self, column: NDArray[Any]) -> tuple[Path, Index]:
        """The chains of segments: runs of equal values of a token column ``[N]``; and ``[n]`` the segment of each link."""
        values = column[self.at]
        new = np.ones(len(self.at), np.bool_)
        new[1:] = (values[1:] != values[:-1]) | (self.owner[1:] != self.owner[:-1])
        return _path(self.at[new], self.owner[new], len(self.length)), np.cumsum(new) - 1

    def spread(self, values: F, total: int) -> F:
        """``[total]`` the links' values at their first tokens, 0 elsewhere."""
        out = np.zeros(total)
        out[self.at] = values
        return out


def path_of(batch: Batch) -> Path:
    """The chains of a batch's loss tokens, over all rows of a rollout."""
    at = np.flatnonzero(batch.token("mask"))
    owner = np.repeat(np.asarray(batch.rows["rollout"], np.int64), batch.lengths)[at]
    order = np.argsort(owner, kind="stable")
    return _path(at[order], owner[order], len(batch.rollout("group")))


def _path(at: Index, owner: Index, rollouts: int) -> Path:
    length = np.bincount(owner, minlength=rollouts).astype(np.int64)
    return Path(at=at, owner=owner, start=np.cumsum(length) - length, length=length)


def check_gamma(part: str, gamma: float) -> str | None:
    """Why a discount is none, or None."""
    return None if 0 < gamma <= 1 else f"{part}.gamma={gamma} is the worth of the next step; use a number in (0, 1]"
