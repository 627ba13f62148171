"""A data set in numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay_control.data.measures import (
    positive_semivariance,
    return_advantages,
    scale_values,
    trajectory_quality,
    trajectory_weights,
)
from assay_control.data.recipes import OfflineData
from assay_control.evaluation import references

__all__ = ["data_card"]


def data_card(data: OfflineData) -> dict[str, Any]:
    """What there is to know of a data set before learning from it.

    Args:
        data: a recipe or a file.

    Returns:
        Numbers of episodes and rows, returns, quality (TQ), what weighting could gain (PSV of scaled returns), the share of the
        weight that the best tenth would get under AW, digests.
    """
    episodes = data.cached()
    rows = data.rows(1.0)
    returns = rows.returns()
    known = references(data.world)
    weights = trajectory_weights(return_advantages(rows), 0.1)
    best = np.argsort(-returns)[: max(1, len(returns) // 10)]
    return {
        "world": type(data.world).__name__,
        "episodes": len(episodes),
        "rows": len(rows),
        "return": float(returns.mean()),
        "return least": float(returns.min()),
        "return greatest": float(returns.max()),
        "terminated": float(np.mean([e.terminated[-1] for e in episodes])),
        "cost": float(rows.cost.mean()),
        "quality": trajectory_quality(returns, known.random.value, known.expert.value) if known is not None else None,
        "positive semivariance": positive_semivariance(scale_values(returns)),
        "weight of the best tenth": float(weights[best].sum()),
        "sources": sorted({e.source for e in episodes}),
        "digest": rows.digest(),
    }
