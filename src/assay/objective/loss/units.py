"""Rollouts and turns as the units over which log-ratios are pooled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import DataError
from assay.core.plan import Scope
from assay.objective.loss.base import View
from assay.objective.reducers import F, tally

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["columns_of", "pool", "pool_detached", "scope_of", "unit_of"]


def columns_of(level: str) -> tuple[str, ...]:
    """Token columns that a level reads: ``call``, the call that sampled a token, where turns are the unit."""
    return ("call",) if level.startswith("turn") else ()


def scope_of(level: str) -> Scope:
    """Pooled levels need all rows of a rollout together."""
    return Scope.TOKEN if level in ("none", "token") else Scope.SEQUENCE


def unit_of(batch: Batch, level: str) -> NDArray[np.int64]:
    """``[N]`` number of each token's unit: its turn where the level's name begins with ``turn``, else its rollout."""
    owner = np.repeat(np.asarray(batch.rows["rollout"], np.int64), batch.lengths)
    if not level.startswith("turn"):
        return owner
    pairs = np.column_stack([owner, np.asarray(batch.token("call"), np.float64)])
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)


def pool(batch: Batch, values: F, level: str) -> F:
    """``[N]`` ``values`` summed over the loss tokens of each token's unit, or averaged where the level's name ends with ``mean``;
    0 outside the loss mask.
    """
    mask, unit = np.asarray(batch.token("mask"), np.bool_), unit_of(batch, level)
    sums = tally(unit[mask], values[mask], int(unit.max(initial=-1)) + 1)
    if level.endswith("mean"):
        sums = sums / np.maximum(tally(unit[mask], np.ones(int(mask.sum())), len(sums)), 1)
    return sums[unit] * mask


def pool_detached(view: View, values: Callable[[View], Tensor], level: str) -> Tensor:
    """``[n]`` what `pool` gives, of values on current log-probabilities, without gradient.

    Args:
        view: the tokens to give it for.
        values: ``[k]`` values of any view; asked for those of all loss tokens, with an advantage or not.
        level: its name begins with ``turn`` for turns and ends with ``mean`` for means.

    Raises:
        DataError: a row of a rollout is in another micro-batch.
    """
    batch = view.batch
    whole = view.at(np.flatnonzero(batch.token("mask")))
    owner = np.repeat(np.asarray(batch.rows["rollout"], np.int64), batch.lengths)
    length = np.asarray(batch.rollout("tokens"), np.int64)
    here = np.bincount(owner[whole.index], minlength=len(length))
    if np.any((here > 0) & (here != length)):
        raise DataError(
            "a micro-batch holds only some rows of a rollout, but what is pooled over a rollout needs all: split by plan.split"
        )
    unit = unit_of(batch, level)
    each = values(whole).detach()
    sums = each.new_zeros(int(unit.max()) + 1).index_add(0, view.indices(unit[whole.index]), each)
    if level.endswith("mean"):
        sums = sums / view.tensor(np.maximum(np.bincount(unit[whole.index], minlength=len(sums)), 1))
    return sums[view.indices(unit[view.index])]
