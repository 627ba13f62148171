"""One step of a stage that learns from given rows: demonstrations or preferences, with the same learner as RL."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

import numpy as np

from assay.core.batch import Batch
from assay.core.seeds import generator
from assay.core.util.profiler import timed
from assay.train.clock import Clock
from assay.train.loop import annotated
from assay.train.room import asking
from assay.train.session import Session

__all__ = ["Given", "given_step", "in_order"]


class Given(Protocol):
    """The rows of a stage."""

    def batch(self, step: int) -> Batch:
        """The batch of a step of the stage, counted from 0: a pure function of the run's seed and that number."""
        ...


def given_step(s: Session, given: Given) -> Mapping[str, float]:
    """Advances a stage of given rows by one optimiser step; returns its metrics."""
    clock = Clock()
    batch = annotated(s, given.batch(s.stage_step), clock)
    with timed("credit"):
        batch = s.program.credit(batch)
    with asking("the gradient pass"):
        stats = s.learner.step(batch, s.plan, s.program)
    s.untrained = stats.untrained
    return {**s.program.metrics(), **stats.metrics, "tokens/trained": float(batch.counts.tokens), **clock.seconds()}


def in_order(stream: str, seed: int, pool: int, wanted: range) -> list[int]:
    """Which of ``pool`` rows stand at the places ``wanted`` of an endless walk: a seeded order, anew each epoch.

    >>> sorted(in_order("rows", 0, 3, range(3, 6)))
    [0, 1, 2]
    """
    return [int(_order(stream, seed, i // pool, pool)[i % pool]) for i in wanted]


@lru_cache(maxsize=4)
def _order(stream: str, seed: int, epoch: int, pool: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return generator(stream, seed, "epoch", epoch).permutation(pool)
