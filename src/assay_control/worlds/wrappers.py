"""Worlds made of other worlds: with coordinates that mean nothing, and with starts out of episodes that were seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from assay.core import ConfigError, uniforms
from assay.core.seeds import derive_each
from assay_control.records import Array, Space
from assay_control.worlds.base import (
    Copies,
    Move,
    RunningWorld,
    Seeds,
    SimulatedWorld,
    World,
    seed_column,
    state_uniforms,
)
from assay_control.worlds.cells import cluster_points

__all__ = ["Distracted", "SnapshotStarts"]


def _simulated_world(world: World, part: str) -> SimulatedWorld:
    if not all(hasattr(world, name) for name in ("start", "observe", "move")):
        raise ConfigError(f"{part}.world={type(world).__name__} has no start, observe and move; use one of assay's own worlds")
    return cast("SimulatedWorld", world)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distracted:
    """A world whose observations have further coordinates that move by themselves and mean nothing.

    Each is a wave ``sin(phase + speed t)`` with a phase and a speed of its own, so a model can spend all that it has on them.

    Attributes:
        world: below it; one of assay's own.
        count: of the coordinates.

    Raises:
        ConfigError: no coordinate, or a world without a state.

    >>> from assay_control.worlds.pendulum import Pendulum
    >>> Distracted(world=Pendulum(), count=5).observation_size
    8
    """

    world: World
    count: int = 10

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"Distracted.count={self.count}; use a whole number, at least 1")
        _simulated_world(self.world, "Distracted")

    @property
    def observation_size(self) -> int:
        """That of the world and ``count``."""
        return self.world.observation_size + self.count

    @property
    def actions(self) -> Space:
        """Those of the world."""
        return self.world.actions

    @property
    def horizon(self) -> int:
        """That of the world."""
        return self.world.horizon

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """The world's state, a seed and a counter."""
        below = _simulated_world(self.world, "Distracted").start(seeds)
        return np.column_stack([below, seed_column(seeds), np.zeros(len(below))])

    def observe(self, state: Array) -> Array:
        """What the world shows, and the waves."""
        u = state_uniforms(state[:, -2], np.zeros(len(state)), 2 * self.count)
        phase, speed = 2 * np.pi * u[:, : self.count], 0.2 + u[:, self.count :]
        return np.column_stack(
            [_simulated_world(self.world, "Distracted").observe(state[:, :-2]), np.sin(phase + speed * state[:, -1:])]
        )

    def move(self, state: Array, action: Array) -> Move:
        """As the world moves."""
        below = _simulated_world(self.world, "Distracted").move(state[:, :-2], action)
        after = np.column_stack([below.state, state[:, -2], state[:, -1] + 1])
        return Move(state=after, reward=below.reward, terminated=below.terminated, cost=below.cost)

    def control(self, observation: Array) -> Array:
        """The world's controller, which sees what is not distraction.

        Raises:
            ConfigError: it has none.
        """
        found: Any = getattr(self.world, "control", None)
        if found is None:
            raise ConfigError(f"{type(self.world).__name__} has no scripted controller")
        return found(observation[:, : self.world.observation_size])


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotStarts:
    """A world some of whose episodes begin in a state that its controller passed through.

    ``P(start = stored state) = share`` for an episode's seed; the stored states are cut into ``clusters`` by k-means and drawn
    evenly over clusters (S3RL), so that places that the teacher passes seldom are not rare. An episode from a stored state is cut
    after ``length`` steps, as a truncation that bootstraps. After SnapshotRL (2024). Evaluate in the plain ``world``: give it as
    that of a data set, or resume with it. The paper ends snapshots after a share of training; here that is a second run.

    Attributes:
        world: below it; one of assay's own with a controller.
        share: of the episodes that begin in a stored state.
        teachers: episodes of the controller that are stored.
        clusters: of their states; 0 draws states evenly.
        length: steps after which an episode from a stored state is cut; that of the world where 0.
        seed: of the teacher's episodes.

    Raises:
        ConfigError: no share, a number out of its range, or a world without a controller.
    """

    world: World
    share: float = 0.5
    teachers: int = 10
    clusters: int = 8
    length: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.teachers < 1 or min(self.clusters, self.length) < 0:
            raise ConfigError(
                f"SnapshotStarts(share={self.share}, teachers={self.teachers}, clusters={self.clusters}, length={self.length}): "
                "use a "
                "share, an episode or more, and no negative number"
            )
        _simulated_world(self.world, "SnapshotStarts")
        if not hasattr(self.world, "control"):
            raise ConfigError(f"SnapshotStarts.world={type(self.world).__name__} has no controller whose states could be stored")

    @property
    def observation_size(self) -> int:
        """That of the world."""
        return self.world.observation_size

    @property
    def actions(self) -> Space:
        """Those of the world."""
        return self.world.actions

    @property
    def horizon(self) -> int:
        """That of the world."""
        return self.world.horizon

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return _SnapshotCopies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """``[n, S]`` states, and whether each is a stored one as the last column."""
        seeds = np.asarray(seeds, np.uint64)
        plain = _simulated_world(self.world, "SnapshotStarts").start(seeds)
        states, cells = stored_states(self)
        u = uniforms(seeds, 100, 3)
        members = [np.flatnonzero(cells == c) for c in np.unique(cells)]
        kind: list[int] = (u[:, 1] * len(members)).astype(np.int64).tolist()
        within: list[float] = u[:, 2].tolist()
        chosen = np.array([members[k][int(v * len(members[k]))] for k, v in zip(kind, within, strict=True)], np.int64)
        snap = u[:, 0] < self.share
        return np.column_stack([np.where(snap[:, None], states[chosen], plain), snap])

    def observe(self, state: Array) -> Array:
        """What the world shows."""
        return _simulated_world(self.world, "SnapshotStarts").observe(state[:, :-1])

    def move(self, state: Array, action: Array) -> Move:
        """As the world moves."""
        below = _simulated_world(self.world, "SnapshotStarts").move(state[:, :-1], action)
        after = np.column_stack([below.state, state[:, -1]])
        return Move(state=after, reward=below.reward, terminated=below.terminated, cost=below.cost)

    def control(self, observation: Array) -> Array:
        """The world's controller."""
        return cast("Any", self.world).control(observation)


class _SnapshotCopies(Copies):
    """Copies that cut an episode from a stored state earlier."""

    def limits(self) -> Array:
        world = cast("SnapshotStarts", self.world)
        return np.where(self._state[:, -1] > 0, world.length or world.horizon, world.horizon)


@lru_cache(maxsize=8)
def stored_states(world: SnapshotStarts) -> tuple[Array, Array]:
    """``[m, S]`` states of the controller's episodes, and the cell of each."""
    below = _simulated_world(world.world, "SnapshotStarts")
    state = below.start(np.array(derive_each("control/snapshots", world.seed, "", world.teachers), np.uint64))
    kept: list[Array] = []
    alive = np.ones(len(state), bool)
    for _ in range(world.horizon):
        kept.append(state[alive])
        move = below.move(state, cast("Any", world.world).control(below.observe(state)))
        state, alive = move.state, alive & ~move.terminated
        if not alive.any():
            break
    states = np.concatenate(kept)
    if not world.clusters:
        return states, np.zeros(len(states), np.int64)
    seen = below.observe(states)
    scaled = (seen - seen.mean(0)) / (seen.std(0) + 1e-3)
    return states, cluster_points(scaled, min(world.clusters, len(states)), world.seed)
