"""Points in cells, by k-means."""

from __future__ import annotations

import numpy as np

from assay.core import generator
from assay_control.records import Array

__all__ = ["cluster_points"]


def cluster_points(points: Array, count: int, seed: int, rounds: int = 10) -> Array:
    """``[n]`` which of ``count`` cells each of ``[n, d]`` points is in, by k-means (Lloyd) from drawn points.

    >>> cluster_points(np.array([[0.0], [0.1], [5.0], [5.1]]), 2, 0).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """
    rng = generator("control/cells", seed)
    middle = points[rng.permutation(len(points))[:count]].astype(np.float64)
    cell = np.zeros(len(points), np.int64)
    for _ in range(rounds):
        cell = np.concatenate(
            [((p[:, None] - middle[None]) ** 2).sum(2).argmin(1) for p in np.array_split(points, 1 + len(points) // 4096)]
        )
        sums = np.zeros_like(middle)
        np.add.at(sums, cell, points)
        size = np.bincount(cell, minlength=len(middle))[:, None]
        middle = np.where(size > 0, sums / np.maximum(size, 1), middle)
    return cell
