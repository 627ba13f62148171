"""Pieces of episodes as batches, also spliced from two episodes that pass through one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core import ConfigError, generator
from assay_control.data.measures import trajectory_weights
from assay_control.lazy_torch import to_tensor, torch
from assay_control.parts.base import Drawer, TransitionBatch
from assay_control.parts.buffer import Buffer
from assay_control.records import Array, Transitions
from assay_control.worlds.cells import cluster_points

if TYPE_CHECKING:
    from assay_control.parts.nets import Nets

__all__ = ["Segments"]


class _Drawn:
    """Segments of a data set."""

    def __init__(self, source: Segments, data: Transitions, seed: int) -> None:
        self._source, self._data, self._seed = source, data, seed
        self._end = np.append(data.first[1:], len(data))[data.episode]
        weights = source.weights(data)
        self._bounds = np.cumsum(weights) / weights.sum()
        if source.stitch:
            self._cell = cluster_points(data.observation, source.cells, seed)
            self._members = np.argsort(self._cell, kind="stable")
            self._begin = np.searchsorted(self._cell[self._members], np.arange(source.cells + 1))

    def draw(self, count: int) -> TransitionBatch:
        """As `Drawer.draw`; fields are ``[B, K, ...]``, and ``columns["real"]`` says which steps are none of padding."""
        rng, batch, steps = generator("control/segments", self._seed, index=count), self._source.batch, self._source.context
        last = np.minimum(np.searchsorted(self._bounds, rng.random(batch), side="right"), len(self._data) - 1)
        begin = np.maximum(self._data.first[self._data.episode[last]], last - steps + 1)
        index = begin[:, None] + np.arange(steps)
        real = index <= last[:, None]
        index = np.minimum(index, last[:, None])
        to_go = self._data.to_go[index].astype(np.float64)
        if self._source.stitch:
            index, real, to_go = self._splice(index, real, to_go, rng)
        return self._batch(index, real, to_go)

    def _splice(self, index: Array, real: Array, to_go: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Where it is drawn, goes on from a random row in the cell of one of the segment's steps."""
        batch, steps = int(index.shape[0]), int(index.shape[1])
        length = np.count_nonzero(real, axis=1)
        cut = 1 + (rng.random(batch) * np.maximum(length - 1, 1)).astype(np.int64)
        chosen = (rng.random(batch) < self._source.stitch) & (length > 1)
        cell = self._cell[index[np.arange(batch), np.minimum(cut, length - 1)]]
        low, high = self._begin[cell], self._begin[cell + 1]
        member = self._members[low + (rng.random(batch) * (high - low)).astype(np.int64)]
        after = np.arange(steps) - cut[:, None]
        tail = member[:, None] + after
        limit = self._end[member][:, None]
        use = chosen[:, None] & (after >= 0)
        real = np.where(use, tail < limit, real)
        index = np.where(use, np.minimum(tail, limit - 1), index)
        # what is still to come at the head is what its steps give and then what the tail still gets
        gained = np.where(chosen[:, None] & (after < 0), self._data.reward[index], 0.0)
        ahead = gained[:, ::-1].cumsum(1)[:, ::-1]
        joined = ahead + self._data.to_go[member].astype(np.float64)[:, None]
        return index, real, np.where(chosen[:, None], np.where(after < 0, joined, self._data.to_go[index]), to_go)

    def _batch(self, index: Array, real: Array, to_go: Array) -> TransitionBatch:
        d: Any = self._data
        held: dict[str, Any] = {
            n: to_tensor(getattr(d, n)[index]) for n in ("observation", "action", "reward", "next_observation", "terminal")
        }
        return TransitionBatch(
            **held,
            to_go=to_tensor(to_go.astype(np.float32)),
            index=to_tensor(index),
            stream=torch.zeros(index.shape, dtype=torch.int64),
            columns={"real": to_tensor(real)},
        )

    def prepare(self, nets: Nets, discount: float) -> None:
        """Nothing: the data set stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Segments of up to ``context`` steps; with ``stitch`` some go over into another episode where both are in one cell.

    A spliced segment ``s_0 ... s_{c-1}, s'_j ...`` has the returns ``R_t = Σ_{k<c} r_k + R'_j`` at its head. Source: Ghugare et
    al. 2024, arXiv 2401.11237, whose augmentation this is, for sequences.

    Attributes:
        batch: segments of a batch.
        context: steps of a segment.
        by: how the last steps of segments are drawn: ``even``, or episodes by ``return`` as in RW.
        stitch: probability that a segment is spliced.
        cells: of k-means over scaled observations.

    Raises:
        ConfigError: a number out of its range, or another word.
    """

    batch: int = 64
    context: int = 20
    by: str = "even"
    stitch: float = 0.0
    cells: int = 40

    def __post_init__(self) -> None:
        if min(self.batch, self.context, self.cells) < 1 or not 0 <= self.stitch <= 1 or self.by not in ("even", "return"):
            raise ConfigError(
                f"Segments(batch={self.batch}, context={self.context}, by={self.by!r}, stitch={self.stitch}, "
                f"cells={self.cells}): use whole numbers from 1 up, 'even' or 'return', and a probability"
            )

    def weights(self, data: Transitions) -> Array:
        """``[n]`` of each row as the last of a segment."""
        return np.ones(len(data)) if self.by == "even" else trajectory_weights(data.returns(), 0.1)[data.episode]

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        if data is None:
            raise ConfigError("Segments draws from a data set, and the run has none; name one, such as pendulum/mixed")
        return _Drawn(self, data, seed)
