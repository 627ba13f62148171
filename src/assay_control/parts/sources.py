"""Where batches come from: the data set, evenly or by weights; what was collected; both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core import ConfigError, generator
from assay_control.data.measures import return_advantages, trajectory_weights
from assay_control.lazy_torch import to_tensor, torch
from assay_control.parts.base import Drawer, TransitionBatch
from assay_control.parts.buffer import Buffer
from assay_control.records import Array, Transitions

if TYPE_CHECKING:
    from assay_control.parts.nets import Nets

__all__ = [
    "AlternateBlocks",
    "Collected",
    "DataThenCollected",
    "DataThenHalf",
    "Evenly",
    "HalfOnline",
    "TopEpisodes",
    "WeightedEpisodes",
    "top_episodes",
]


def _check_batch(part: object, batch: int) -> None:
    if batch < 1:
        raise ConfigError(f"{type(part).__name__}.batch={batch}; use a whole number, at least 1")


def need_data(data: Transitions | None, part: object) -> Transitions:
    if data is None:
        raise ConfigError(f"{type(part).__name__} draws from a data set, and the run has none; name one, such as pendulum/mixed")
    return data


class RowsAt:
    """Rows of a data set by their numbers, as a batch.

    Args:
        data: as they are learned from.
    """

    def __init__(self, data: Transitions) -> None:
        names = ("observation", "action", "reward", "next_observation", "terminal", "to_go")
        self.columns: dict[str, Any] = {n: to_tensor(np.ascontiguousarray(getattr(data, n))) for n in names}
        size = len(data)
        follows = np.append(data.episode[1:] == data.episode[:-1], False)
        end = np.append(data.first[1:], size)[data.episode] - 1
        self._follows, self._end = to_tensor(follows), to_tensor(end)
        self._next = to_tensor(np.where(follows, np.arange(1, size + 1), np.arange(size)))
        self._cost = to_tensor(np.ascontiguousarray(data.cost))
        self._ahead = to_tensor((end + 1 - np.arange(size)).astype(np.float32))

    def __call__(self, index: Array) -> TransitionBatch:
        """The batch of ``[B]`` rows."""
        at, held = to_tensor(index), self.columns
        return TransitionBatch(
            **{n: c[at] for n, c in held.items()},
            index=at,
            stream=torch.zeros(len(index), dtype=torch.int64),
            columns={
                "next_action": held["action"][self._next[at]],
                "follows": self._follows[at],
                "cost": self._cost[at],
                "ahead": self._ahead[at],
                "cut": ~held["terminal"][self._end[at]],
                "end_observation": held["next_observation"][self._end[at]],
            },
            pool=(held["observation"], held["action"]),
        )


class OfflineRows:
    """Rows of a data set: evenly where there are no weights."""

    def __init__(self, data: Transitions, batch: int, seed: int, weights: Array | None = None) -> None:
        self._rows = RowsAt(data)
        self._batch, self._seed, self._size = batch, seed, len(data)
        self._bounds = None if weights is None or np.all(weights == weights[0]) else np.cumsum(weights) / weights.sum()

    def draw(self, count: int) -> TransitionBatch:
        """As `Drawer.draw`. Equal weights draw what no weights draw."""
        u = generator("control/batch", self._seed, index=count).random(self._batch)
        if self._bounds is None:
            index = (u * self._size).astype(np.int64)
        else:
            index = np.minimum(np.searchsorted(self._bounds, u, side="right"), self._size - 1)
        return self._rows(index)

    def prepare(self, nets: Nets, discount: float) -> None:
        """Nothing: the data set stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batched:
    """What draws batches of one size."""

    batch: int = 256

    def __post_init__(self) -> None:
        _check_batch(self, self.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evenly(_Batched):
    """Rows of the data set, each as likely as any other.

    Attributes:
        batch: rows of a batch.
    """

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        return OfflineRows(need_data(data, self), self.batch, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedEpisodes:
    """Rows of better episodes more often: ``p(episode) ∝ exp(scaled(value) / temperature)``, alike within an episode.

    Source: Hong et al. 2023, arXiv 2306.13085: RW values an episode by its return, AW by its return less what a linear regression
    on the first observation expects.

    Attributes:
        batch: rows of a batch.
        by: ``advantage`` (AW) or ``return`` (RW).
        temperature: the less, the more the best episodes count.

    Raises:
        ConfigError: another word, or a temperature that is not positive.
    """

    batch: int = 256
    by: str = "advantage"
    temperature: float = 0.1

    def __post_init__(self) -> None:
        _check_batch(self, self.batch)
        if self.by not in ("advantage", "return") or self.temperature <= 0:
            raise ConfigError(
                f"WeightedEpisodes(by={self.by!r}, temperature={self.temperature}): use 'advantage' or 'return', and a positive "
                "number"
            )

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        rows = need_data(data, self)
        return OfflineRows(rows, self.batch, seed, self.weights(rows))

    def weights(self, data: Transitions) -> Array:
        """``[n]`` of each row: that of its episode."""
        values = return_advantages(data) if self.by == "advantage" else data.returns()
        return trajectory_weights(values, self.temperature)[data.episode]


def top_episodes(returns: Array, share: float) -> Array:
    """``[E]`` whether an episode is among the best ``share`` of them by return; counted, at least one.

    Raises:
        ConfigError: no share, or one that cuts through episodes whose returns are alike, so that which of them are kept would be
            chance.

    >>> top_episodes(np.array([1.0, 5.0, 2.0, 9.0]), 0.5).tolist()
    [False, True, False, True]
    """
    if not 0 < share <= 1:
        raise ConfigError(f"share={share}; use a share of the episodes above 0 and up to 1")
    count = max(1, round(share * len(returns)))
    order = np.sort(returns)[::-1]
    if count < len(order) and order[count - 1] == order[count]:
        tied = int((returns == order[count]).sum())
        raise ConfigError(
            f"the best {share:.0%} of {len(returns)} episodes is not defined: {tied} have a return of {order[count]:g}; use "
            "another share, or WeightedEpisodes"
        )
    return returns >= order[count - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopEpisodes(_Batched):
    """Rows of the best episodes alone (%BC draws so).

    Source: Chen et al. 2021, arXiv 2106.01345, who compare with it.

    Attributes:
        batch: rows of a batch.
        share: of the episodes that are kept, by return.
    """

    share: float = 0.1

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        rows = need_data(data, self)
        return OfflineRows(rows, self.batch, seed, top_episodes(rows.returns(), self.share)[rows.episode].astype(np.float64))


class _Ring:
    """Rows that were collected, evenly."""

    def __init__(self, buffer: Buffer, batch: int, seed: int) -> None:
        self._buffer, self._batch, self._seed = buffer, batch, seed

    def draw(self, count: int) -> TransitionBatch:
        """As `Drawer.draw`."""
        index = (generator("control/online", self._seed, index=count).random(self._batch) * len(self._buffer)).astype(np.int64)
        return gather(self._buffer, index)

    def prepare(self, nets: Nets, discount: float) -> None:
        """Nothing: rows are drawn as they were put."""


def gather(buffer: Buffer, index: Array) -> TransitionBatch:
    """Rows of a buffer; their return to go is not known and stands as 0."""
    named = {"observation", "action", "reward", "next_observation", "terminal"}
    held: dict[str, Any] = {n: to_tensor(values[index]) for n, values in buffer.arrays.items() if n != "done"}
    return TransitionBatch(
        **{n: held[n] for n in named},
        to_go=torch.zeros(len(index)),
        index=to_tensor(index),
        stream=torch.ones(len(index), dtype=torch.int64),
        columns={n: v for n, v in held.items() if n not in named},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected(_Batched):
    """Rows that were collected in the world, each as likely as any other.

    Attributes:
        batch: rows of a batch.
    """

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        assert buffer is not None
        return _Ring(buffer, self.batch, seed)


class _Both:
    def __init__(self, offline: OfflineRows, online: _Ring, buffer: Buffer) -> None:
        self._offline, self._online, self._buffer = offline, online, buffer

    def draw(self, count: int) -> TransitionBatch:
        """As `Drawer.draw`: offline rows first."""
        a, b = self._offline.draw(count), self._online.draw(count)
        names = ("observation", "action", "reward", "next_observation", "terminal", "to_go", "index", "stream")
        joined: dict[str, Any] = {n: torch.cat([getattr(a, n), getattr(b, n)]) for n in names}
        return TransitionBatch(**joined)

    def prepare(self, nets: Nets, discount: float) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfOnline:
    """Half of each batch from the data set, half from what was collected.

    Source: RLPD, Ball et al. 2023, arXiv 2302.02948.

    Attributes:
        batch: rows of a batch; an even number.
    """

    batch: int = 256

    def __post_init__(self) -> None:
        _check_batch(self, self.batch)
        if self.batch % 2:
            raise ConfigError(f"HalfOnline.batch={self.batch}; use an even number, half of which is offline")

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        assert buffer is not None
        return _Both(OfflineRows(need_data(data, self), self.batch // 2, seed), _Ring(buffer, self.batch // 2, seed), buffer)


class _Switch:
    def __init__(self, offline: OfflineRows, online: _Ring, after: int) -> None:
        self._offline, self._online, self._after = offline, online, after

    def draw(self, count: int) -> TransitionBatch:
        """As `Drawer.draw`."""
        return self._offline.draw(count) if count < self._after else self._online.draw(count)

    def prepare(self, nets: Nets, discount: float) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataThenCollected:
    """Batches of the data set first, then of what was collected alone: the data set is not kept.

    Source: WSRL, Zhou et al. 2024, arXiv 2412.07762.

    Attributes:
        batch: rows of a batch.
        offline: how many batches are of the data set.
    """

    batch: int = 256
    offline: int = 10_000

    def __post_init__(self) -> None:
        _check_batch(self, self.batch)

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        assert buffer is not None
        return _Switch(OfflineRows(need_data(data, self), self.batch, seed), _Ring(buffer, self.batch, seed), self.offline)


class _Widen:
    def __init__(self, offline: OfflineRows, both: _Both, after: int) -> None:
        self._offline, self._both, self._after = offline, both, after

    def draw(self, count: int) -> TransitionBatch:
        """As `Drawer.draw`."""
        return self._offline.draw(count) if count < self._after else self._both.draw(count)

    def prepare(self, nets: Nets, discount: float) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataThenHalf:
    """Batches of the data set first, then half of each from what was collected.

    Attributes:
        batch: rows of a batch; an even number.
        offline: how many batches are of the data set alone.
    """

    batch: int = 256
    offline: int = 10_000

    def __post_init__(self) -> None:
        HalfOnline(batch=self.batch)

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        assert buffer is not None
        rows, half = need_data(data, self), self.batch // 2
        both = _Both(OfflineRows(rows, half, seed), _Ring(buffer, half, seed), buffer)
        return _Widen(OfflineRows(rows, self.batch, seed), both, self.offline)


class _Blocks:
    def __init__(self, offline: OfflineRows, online: _Ring, source: AlternateBlocks, seed: int) -> None:
        self._offline, self._online, self._source, self._seed = offline, online, source, seed

    def draw(self, count: int) -> TransitionBatch:
        """As `Drawer.draw`."""
        block = count // self._source.updates
        at_data = generator("control/block", self._seed, index=block).random() < self._source.share
        return self._offline.draw(count) if at_data else self._online.draw(count)

    def prepare(self, nets: Nets, discount: float) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternateBlocks:
    """Blocks of batches, each of the data set alone or of what was collected alone, as a coin of the block says.

    Source: MOORL, 2025, arXiv 2506.09574.

    Attributes:
        batch: rows of a batch.
        updates: batches of a block.
        share: probability that a block is of the data set.
    """

    batch: int = 256
    updates: int = 10
    share: float = 0.5

    def __post_init__(self) -> None:
        _check_batch(self, self.batch)
        if self.updates < 1 or not 0 <= self.share <= 1:
            raise ConfigError(f"AlternateBlocks(updates={self.updates}, share={self.share}): use a batch or more, and a share")

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        assert buffer is not None
        offline = OfflineRows(need_data(data, self), self.batch, seed)
        return _Blocks(offline, _Ring(buffer, self.batch, seed), self, seed)
