"""Memory of processes that sample beside learning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.asynchronous.shared_weights import PUBLICATIONS
from assay.runtime.engine.settings import EngineFootprint

if TYPE_CHECKING:
    from assay.train.stage import Stage

__all__ = ["sampler_memory"]

_FLOAT = 4
_LIBRARIES = 250 << 20
"""What Python and torch take of a process that samples, measured on a small model."""


def sampler_memory(stage: Stage, engine: EngineFootprint, weights: int, trained: int, per_token: int) -> int:
    """Bytes of all sampler processes of this machine: weights, keys and values, libraries; and publications that they share.

    Args:
        stage: whose processes.
        engine: of each.
        weights, trained: numbers of a model, and those of them that are trained.
        per_token: numbers that keys and values of a token take.
    """
    settings = stage.asynchronous
    if settings is None or settings.runtime != "process":
        return 0
    groups, size = stage.sampled
    rows = min(engine.max_batch, size * (settings.batch or -(-groups // settings.samplers)))
    own = (engine.weight + engine.packed) * weights + engine.weight * rows * engine.context * per_token
    return settings.samplers * (own + _LIBRARIES) + PUBLICATIONS * _FLOAT * trained
