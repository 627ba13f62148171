"""A point that is to reach a goal around a hazard: a world with a cost, and which of its states can still be saved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from assay.core import ConfigError, uniforms
from assay_control.records import Array, Box
from assay_control.worlds.base import Copies, Move, RunningWorld, Seeds
from assay_control.worlds.pictures import traces

__all__ = ["HazardPoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HazardPoint:
    """A point with inertia flies to a goal; a disc in between costs 1 at each step inside.

    State and observation: place in [-1, 1]² and velocity. An action is a push along both axes: ``v' = drag v + push a``, ``x' =
    x + v'``. Reward: how much nearer the goal it comes, and 1 on reaching it, which terminates. Because it cannot stop at once,
    some
    states outside of the disc are lost already: `feasible` says from which no way of acting keeps clear.

    Attributes:
        center: of the hazard.
        radius: of the hazard.
        goal: place; within ``reach`` of it an episode ends.
        reach: of the goal.
        push: change of velocity by a full action.
        drag: share of the velocity that stays.
        horizon: steps of an episode.

    Raises:
        ConfigError: a size that is not positive.

    >>> place = HazardPoint()
    >>> place.feasible(np.array([[-0.4, 0.0, 0.12, 0.0], [-0.9, 0.9, 0.0, 0.0]])).tolist()
    [False, True]
    """

    center: tuple[float, float] = (0.0, 0.0)
    radius: float = 0.35
    goal: tuple[float, float] = (0.8, 0.0)
    reach: float = 0.12
    push: float = 0.02
    drag: float = 0.95
    horizon: int = 80

    def __post_init__(self) -> None:
        for name in ("radius", "reach", "push", "drag", "horizon"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"HazardPoint.{name}={getattr(self, name)}; use a positive number")

    @property
    def observation_size(self) -> int:
        """4."""
        return 4

    @property
    def actions(self) -> Box:
        """A push along both axes."""
        return Box(2)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """At rest, left of the hazard."""
        u = uniforms(np.asarray(seeds, np.uint64), 0, 2)
        return np.column_stack([-0.9 + 0.1 * u[:, 0], -0.5 + u[:, 1], np.zeros((len(u), 2))])

    def observe(self, state: Array) -> Array:
        """Place, and velocity tenfold."""
        return state * np.array([1.0, 1.0, 10.0, 10.0])

    def inside(self, place: Array) -> Array:
        """``[n]`` whether ``[n, 2]`` places are in the hazard."""
        return ((place - np.array(self.center)) ** 2).sum(1) < self.radius**2

    def move(self, state: Array, action: Array) -> Move:
        """One step; at a wall the velocity across it is lost."""
        speed = self.drag * state[:, 2:] + self.push * np.clip(action, -1, 1)
        free = state[:, :2] + speed
        place = np.clip(free, -1, 1)
        speed = np.where(free == place, speed, 0.0)
        far, near = (np.linalg.norm(p - np.array(self.goal), axis=1) for p in (state[:, :2], place))
        there = near < self.reach
        cost = self.inside(place).astype(np.float64)
        return Move(state=np.column_stack([place, speed]), reward=far - near + there, terminated=there, cost=cost)

    def feasible(self, state: Array, steps: int = 12) -> Array:
        """``[n]`` whether some way of acting keeps out of the hazard: tried are constant pushes in 16 directions, and none.

        Braking or turning hard for good is what saves a point with bounded pushes; ``steps`` of it tell.
        """
        angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
        ways = np.concatenate([np.zeros((1, 2)), np.stack([np.cos(angles), np.sin(angles)], 1)])
        saved = np.zeros(len(state), bool)
        for way in ways / np.maximum(np.abs(ways).max(1, keepdims=True), 1):
            at, clear = state, ~self.inside(state[:, :2])
            for _ in range(steps):
                move = self.move(at, np.broadcast_to(way, (len(at), 2)))
                at, clear = move.state, clear & (move.cost == 0)
            saved |= clear
        return saved

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]``: the place along both axes."""
        return traces(observations[:, 0:2])

    def control(self, observation: Array) -> Array:
        """``[n, 2]`` the scripted expert: around the hazard on the side where it is, then to the goal."""
        place, speed = observation[:, :2], observation[:, 2:] / 10
        side = np.where(place[:, 1] >= self.center[1], 1.0, -1.0)
        corner = np.column_stack([np.full(len(place), self.center[0] + 0.1), self.center[1] + side * (self.radius + 0.25)])
        passed = place[:, 0] > self.center[0]
        aim = np.where(passed[:, None], np.array(self.goal), corner)
        way = aim - place
        wanted = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 0.3) * 0.05
        return np.clip((wanted - self.drag * speed) / self.push, -1, 1)


@lru_cache(maxsize=4)
def grid_states(world: HazardPoint, cells: int = 15, speeds: int = 5) -> Array:
    """``[m, 4]`` states on a grid, to measure a learned set of feasible states by."""
    x, v = np.linspace(-0.9, 0.9, cells), np.linspace(-0.1, 0.1, speeds)
    return np.stack(np.meshgrid(x, x, v, v, indexing="ij"), -1).reshape(-1, 4)
