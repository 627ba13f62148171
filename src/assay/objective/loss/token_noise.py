"""A uniform number per token that depends on a name, a seed, and the token itself: random choices that no layout can change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.seeds import derive, uniforms
from assay.objective.reducers import F

__all__ = ["token_noise"]

_BITS = 2.0**53
_PRIME = np.uint64(0x9E3779B97F4A7C15)


def token_noise(batch: Batch, name: str, seed: int = 0, draw: int = 0) -> F:
    """``[N]`` uniforms in [0, 1), the same whatever rows, micro-batches or ranks the tokens stand in.

    A token is known by its group, its rollout's place in the group, and all tokens up to it in its row; so rollouts of one group
    must stand in one order, or the batch has a column ``place`` that says it.

    Args:
        batch: any part of an optimiser batch that has whole groups in its table.
        name, seed: what the numbers are for.
        draw: for other numbers at the same tokens, for example the version of the weights.
    """
    ids = np.asarray(batch.token("ids")).astype(np.uint64)
    starts = np.repeat(batch.offsets[:-1], batch.lengths)
    places = (np.arange(len(ids)) - starts).astype(np.uint64)
    group = np.asarray(batch.rollout("group"), np.int64)
    order = np.asarray(batch.rollouts["place"], np.int64) if "place" in batch.rollouts else _place_in_group(group)
    rollout = (order + 1).astype(np.uint64) * _PRIME + group.astype(np.uint64)
    owner = np.repeat(np.asarray(batch.rows["rollout"], np.int64), batch.lengths)
    base = np.uint64(derive(name, seed, "token", draw))
    with np.errstate(over="ignore"):
        before = np.concatenate([[np.uint64(0)], np.cumsum(_mix_bits(ids << np.uint64(32) | places), dtype=np.uint64)])
        prefix = before[1:] - before[starts]
        return uniforms(prefix + _mix_bits(rollout[owner] ^ base), 0, 1)[:, 0]


def _mix_bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Well mixed 53-bit numbers of 64-bit ones."""
    return (uniforms(values, 0, 1)[:, 0] * _BITS).astype(np.uint64)


def _place_in_group(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """``[R]`` how many rollouts of the same group stand before each."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    first = np.searchsorted(ordered, ordered)
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - first
    return place
