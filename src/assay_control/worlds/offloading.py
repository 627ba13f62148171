"""Where to compute a task: on one of several edge servers or in the cloud, for less delay or less energy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay.core import ConfigError
from assay.core.seeds import derive_each
from assay_control.records import Array, Choices
from assay_control.worlds.base import Copies, Move, RunningWorld, Seeds, seed_column, state_uniforms
from assay_control.worlds.pictures import traces

__all__ = ["Offloading", "completion_rise", "hypervolume"]

CYCLES = 1000.0
"""Of the processor for a bit."""


def completion_rise(remaining: Array, size: float, speed: float) -> float:
    """By how much a new task makes the completion times of a shared processor rise, in seconds.

    Tasks share the processor evenly, so the sum of completion times is ``Σ_i (2 (n - i) + 1) s_i / speed`` over sizes in rising
    order.

    Args:
        remaining: Mbit of the tasks that are there.
        size: of the new one, Mbit.
        speed: of the processor, GHz.

    >>> completion_rise(np.array([4.0, 10.0]), 6.0, 2.0)
    13.0
    """
    return float(_sum_of_times(np.append(remaining, size), speed) - _sum_of_times(np.asarray(remaining), speed))


def _sum_of_times(sizes: Array, speed: float) -> float:
    ordered = np.sort(sizes)
    n = len(ordered)
    return float(((2 * (n - np.arange(1, n + 1)) + 1) * ordered).sum() * CYCLES / (speed * 1000))


def hypervolume(points: Array, reference: tuple[float, float] = (0.0, 0.0)) -> float:
    """Area that ``[n, 2]`` points cover above a reference; the more, the better both numbers of the set.

    >>> hypervolume(np.array([[3, 1], [2, 2], [1, 3]])), hypervolume(np.array([[3, 1], [1, 3]]))
    (6.0, 5.0)
    """
    total, height = 0.0, 0.0
    kept = sorted((tuple(p) for p in np.asarray(points, np.float64) - np.array(reference) if min(p) > 0), reverse=True)
    for x, y in kept:
        if y > height:
            total += x * (y - height)
            height = y
    return float(total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloading:
    """Send each task to a server, so that ``w · delay + (1 - w) · energy`` is least, where ``w`` is drawn for each episode.

    One task arrives a step, of about 4 Mbit; ``edges`` servers of about 2 GHz near by and a cloud of about 4 GHz share their
    processors among their tasks. Rewards: ``delay`` -.01 for each second by which completion times rise, ``energy`` -50 for each
    joule, ``J = size κ C f²``, without the uplink's; one number by the weight, ``r = w 10 r_delay + (1 - w) r_energy``. The
    weight is observed, so one policy stands for a front of them, of which `hypervolume` measures how good it is. After the
    authors' earlier simulator of GMORL (2024); the network over a histogram for each server, which does for any number of
    servers, is left out.

    Attributes:
        edges: servers near by.
        weight: of delay; drawn afresh for each episode where None.
        horizon: tasks of an episode.

    Raises:
        ConfigError: no edge server, or no share.
    """

    edges: int = 3
    weight: float | None = None
    horizon: int = 60

    def __post_init__(self) -> None:
        if min(self.edges, self.horizon) < 1 or (self.weight is not None and not 0 <= self.weight <= 1):
            raise ConfigError(
                f"Offloading(edges={self.edges}, weight={self.weight}, horizon={self.horizon}): "
                "use whole numbers from 1 up, and a "
                "share or None"
            )

    @property
    def observation_size(self) -> int:
        """Load and speed of each server, size of the task, weight of delay."""
        return 2 * (self.edges + 1) + 2

    @property
    def actions(self) -> Choices:
        """A server; the last is the cloud."""
        return Choices(self.edges + 1)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """``[n, 2 servers + 4]``: loads in Mbit, speeds in GHz, size, weight, a seed and a counter."""
        seed = seed_column(seeds)
        servers, zero = self.edges + 1, np.zeros(len(seed))
        u = state_uniforms(seed, zero, servers + 2)
        speed = np.column_stack([1.5 + u[:, : self.edges], 3 + 2 * u[:, self.edges]])
        weight = u[:, servers + 1] if self.weight is None else np.full(len(seed), self.weight)
        return np.column_stack([np.zeros((len(seed), servers)), speed, self._size(u[:, servers]), weight, seed, zero])

    def _size(self, u: Array) -> Array:
        return np.clip(-4 * np.log(1 - u), 0.1, 30.0)

    def observe(self, state: Array) -> Array:
        """Loads over 10, speeds over 4, size over 10, and the weight."""
        n = self.edges + 1
        return np.column_stack([state[:, :n] / 10, state[:, n : 2 * n] / 4, state[:, 2 * n] / 10, state[:, 2 * n + 1]])

    def costs(self, state: Array, action: Array) -> tuple[Array, Array]:
        """``[n]`` rewards of delay and of energy of sending the task to a server.

        A server's load is kept as one task, so completion times rise by ``(size + 2 min(load, size)) / speed``.
        """
        n, at = self.edges + 1, np.arange(len(state))
        load, speed, size = state[at, action], state[at, n + action], state[:, 2 * n]
        delay = (size + 2 * np.minimum(load, size)) / speed
        # κ 5e-31 · 1e3 cycles/bit · 1e6 bit · (1e9 Hz)² is 5e-4 J for a Mbit at 1 GHz; the uplink needs far less
        return -0.01 * delay, -50 * size * 5e-4 * speed**2

    def move(self, state: Array, action: Array) -> Move:
        """Sends the task, then all servers work for a second and the next task comes."""
        n = self.edges + 1
        delay, energy = self.costs(state, action)
        weight = state[:, 2 * n + 1]
        load = state[:, :n].copy()
        load[np.arange(len(load)), action] += state[:, 2 * n]
        load = np.maximum(load - state[:, n : 2 * n], 0.0)
        counter = state[:, -1] + 1
        size = self._size(state_uniforms(state[:, -2], counter, 1)[:, 0])
        after = np.column_stack([load, state[:, n : 2 * n], size, weight, state[:, -2], counter])
        reward = weight * 10 * delay + (1 - weight) * energy
        return Move(state=after, reward=reward, terminated=np.zeros(len(after), bool))

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]``: loads of the servers."""
        return traces(observations[:, : self.edges + 1])

    def control(self, observation: Array) -> Array:
        """``[n]`` the server that costs least now, by the weight: greedy, without regard to tasks to come."""
        n = self.edges + 1
        state = np.column_stack(
            [observation[:, :n] * 10, observation[:, n : 2 * n] * 4, observation[:, 2 * n] * 10, observation[:, 2 * n + 1]]
        )
        weight = state[:, -1]
        made: list[Array] = []
        for server in range(n):
            delay, energy = self.costs(state, np.full(len(state), server))
            made.append(weight * 10 * delay + (1 - weight) * energy)
        return np.stack(made, 1).argmax(1)


def front_of(world: Offloading, act: Callable[[Array], Array], weights: Array, episodes: int = 10, seed: int = 0) -> Array:
    """``[W, 2]`` mean rewards of delay and energy of a policy for each weight of delay.

    Args:
        world: to act in.
        act: actions for ``[n, O]`` raw observations.
        weights: of delay.
        episodes: for each.
        seed: of their starts.
    """
    out: list[tuple[float, float]] = []
    for weight in weights:
        place = Offloading(edges=world.edges, weight=float(weight), horizon=world.horizon)
        state = place.start(np.array(derive_each("control/front", seed, "", episodes), np.uint64))
        total = np.zeros(2)
        for _ in range(place.horizon):
            action = np.asarray(act(place.observe(state)))
            delay, energy = place.costs(state, action)
            total += np.array([float(np.mean(delay)), float(np.mean(energy))])
            state = place.move(state, action).state
        out.append((float(total[0]), float(total[1])))
    return np.array(out)
