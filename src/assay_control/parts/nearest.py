"""A penalty that keeps a policy's actions near those that the data set took in such states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core import ConfigError
from assay_control.lazy_torch import torch
from assay_control.parts.base import Log, Noise, TransitionBatch

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["NearestAction", "nearest_rows"]

BLOCK = 32_768
"""Rows of the data set that are compared at a time: 256 queries keep 32 MB of distances."""


def nearest_rows(keys: Tensor, queries: Tensor) -> Tensor:
    """``[B]`` index of the nearest of ``[n, D]`` keys to each of ``[B, D]`` queries; of equally near ones the first.

    Exact, in blocks: ``|k - q|² = |k|² - 2 k·q + |q|²``. At the sizes of control this is faster than a tree from some ten
    dimensions on.

    >>> nearest_rows(torch.tensor([[0.0], [1.0], [1.0]]), torch.tensor([[0.9], [0.1]])).tolist()
    [1, 0]
    """
    best, index = torch.full((len(queries),), float("inf")), torch.zeros(len(queries), dtype=torch.int64)
    for start in range(0, len(keys), BLOCK):
        block = keys[start : start + BLOCK]
        distance = torch.addmm(block.square().sum(1), queries, block.T, alpha=-2.0)
        least, at = distance.min(1)
        nearer = least < best
        best, index = torch.where(nearer, least, best), torch.where(nearer, at + start, index)
    return index


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestAction:
    """PRDC's penalty: ``weight · mean |π(s) - a*|²``, where ``(s*, a*)`` is the row nearest to ``(beta s, π(s))``.

    The search is over pairs of a state times ``beta`` and an action, so with a small ``beta`` the policy may take an action that
    the data took elsewhere. Source: Ran et al. 2023, arXiv 2306.06569.

    Attributes:
        weight: of the term.
        beta: how much states count in the search, beside actions.

    Raises:
        ConfigError: a negative number.
    """

    weight: float = 1.0
    beta: float = 2.0

    def __post_init__(self) -> None:
        if self.weight < 0 or self.beta < 0:
            raise ConfigError(f"NearestAction(weight={self.weight}, beta={self.beta}): use numbers of 0 or more")

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, log: Log | None) -> Tensor:
        """A scalar.

        Raises:
            ConfigError: the source has no data set to search in.
        """
        del noise
        if rows.pool is None:
            raise ConfigError(
                "NearestAction searches in the data set, and the batch comes from none; use a source of offline rows"
            )
        action = nets.mean(rows.observation)
        with torch.no_grad():
            held, taken = rows.pool
            index = nearest_rows(torch.cat([self.beta * held, taken], 1), torch.cat([self.beta * rows.observation, action], 1))
        loss = (action - taken[index]).square().mean()
        if log is not None:
            log["pi/nearest"] = loss.detach()
        return self.weight * loss
