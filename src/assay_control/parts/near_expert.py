"""Rows near an expert's more often: where a model has to be right is where the policy is to go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core import ConfigError
from assay_control.parts.base import Drawer
from assay_control.parts.buffer import Buffer
from assay_control.parts.sources import OfflineRows, need_data
from assay_control.records import Array, Transitions

__all__ = ["NearExpert", "expert_distances"]


def expert_distances(points: Array, expert: Array) -> Array:
    """``[n]`` distance of each of ``[n, d]`` points to the nearest of ``[m, d]`` of the expert.

    >>> expert_distances(np.array([[0.0], [3.0]]), np.array([[1.0], [9.0]])).tolist()
    [1.0, 2.0]
    """
    parts = np.array_split(points.astype(np.float64), 1 + len(points) * len(expert) // 2_000_000)
    return np.concatenate([np.sqrt(((p[:, None] - expert[None]) ** 2).sum(2).min(1)) for p in parts])


@dataclass(frozen=True, slots=True, kw_only=True)
class NearExpert:
    """Rows of the data set with ``p ∝ exp(-d / bandwidth)``, ``d`` the distance to the expert's nearest pair.

    A model that is fitted on such batches is right along the expert's way and not on average. Source: Lambert et al. 2020
    (objective mismatch), arXiv 2002.04523, whose bandwidth is not known; drawing by weights stands for weights of the likelihood.

    Attributes:
        batch: rows of a batch.
        expert: episodes at the end of the data set that are the expert's.
        bandwidth: h; the greater, the more alike are all rows.

    Raises:
        ConfigError: a number that is not positive.
    """

    batch: int = 256
    expert: int = 10
    bandwidth: float = 1.0

    def __post_init__(self) -> None:
        if min(self.batch, self.expert) < 1 or self.bandwidth <= 0:
            raise ConfigError(
                f"NearExpert(batch={self.batch}, expert={self.expert}, bandwidth={self.bandwidth}): use whole "
                "numbers from 1 up, and a positive bandwidth"
            )

    def weights(self, data: Transitions) -> Array:
        """``[n]`` of each row, with a mean of 1."""
        points = np.column_stack([data.observation, data.action.reshape(len(data), -1)]).astype(np.float64)
        own = points[data.episode >= len(data.first) - self.expert]
        distance = expert_distances(points, own[:: max(1, len(own) // 500)])
        weight = np.exp(-distance / self.bandwidth)
        return weight / weight.mean()

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        rows = need_data(data, self)
        return OfflineRows(rows, self.batch, seed, self.weights(rows))
