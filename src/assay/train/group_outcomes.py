"""What became of each graded group of a step: its advantages, and which rollouts were learned from."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from assay.core.batch import Batch
from assay.core.group import Group, Outcome

__all__ = ["outcomes_of"]

_NOT = float("nan")
"""The advantage of a rollout that has none."""


def outcomes_of(graded: Sequence[Group], batch: Batch | None) -> list[Outcome]:
    """What became of each graded group.

    Args:
        graded: all groups of the step.
        batch: what was learned from, after credit; None for nothing. A batch that does not name its rollouts (a composer of
            one's own) counts as holding all groups, without advantages.
    """
    if batch is None:
        return [Outcome(group=group) for group in graded]
    if "id" not in batch.rollouts:
        return [Outcome(group=group, kept=True) for group in graded]
    valid, advantages = batch.rollout("valid").tolist(), batch.rollouts.get("advantage")
    values = [_NOT] * len(valid) if advantages is None else advantages.tolist()
    found = {name: a if v else _NOT for name, v, a in zip(batch.rollout("id").tolist(), valid, values, strict=True)}
    out: list[Outcome] = []
    for group in graded:
        told = [found.get(r.id) for r in group.rollouts]
        known = any(a is not None and isfinite(a) for a in told)
        array = np.array([_NOT if a is None else a for a in told], np.float64) if known else None
        out.append(Outcome(group=group, advantages=array, kept=any(a is not None for a in told)))
    return out
