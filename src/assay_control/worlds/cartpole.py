"""A pole to balance on a cart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core import ConfigError
from assay_control.records import Array, Choices
from assay_control.worlds.base import Copies, Move, RunningWorld, Seeds, uniform_start
from assay_control.worlds.pictures import Line, frames, strip

__all__ = ["CartPole"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CartPole:
    """Push a cart left or right so that its pole stays up.

    Observation: position, speed, angle, angular speed. Two actions. Reward 1 a step; it terminates when the pole leans by more
    than 12 degrees or the cart leaves the track. The equations are those of Gymnasium's CartPole-v1 (Barto, Sutton and Anderson
    1983).

    Attributes:
        mass: of the pole, kg.
        length: half of the pole's, m.
        force: N.
        horizon: steps of an episode.

    Raises:
        ConfigError: a size that is not positive.

    >>> place = CartPole()
    >>> place.open(2, lambda n: np.arange(n, dtype=np.uint64)).step(np.array([0, 1])).reward.tolist()
    [1.0, 1.0]
    """

    mass: float = 0.1
    length: float = 0.5
    force: float = 10.0
    horizon: int = 500

    def __post_init__(self) -> None:
        for name in ("mass", "length", "force", "horizon"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"CartPole.{name}={getattr(self, name)}; use a positive number")

    @property
    def observation_size(self) -> int:
        """4."""
        return 4

    @property
    def actions(self) -> Choices:
        """Left, right."""
        return Choices(2)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """All four numbers in [-0.05, 0.05]."""
        return uniform_start(seeds, (-0.05,) * 4, (0.05,) * 4)

    def observe(self, state: Array) -> Array:
        """The state itself."""
        return state

    def move(self, state: Array, action: Array) -> Move:
        """One step of 0.02 s by Euler's rule."""
        x, speed, angle, turning = state.T
        total, moment = 1.0 + self.mass, self.mass * self.length
        force = np.where(action == 1, self.force, -self.force)
        cos, sin = np.cos(angle), np.sin(angle)
        push = (force + moment * turning**2 * sin) / total
        swing = (9.8 * sin - cos * push) / (self.length * (4.0 / 3.0 - self.mass * cos**2 / total))
        shift = push - moment * swing * cos / total
        after = np.stack([x + 0.02 * speed, speed + 0.02 * shift, angle + 0.02 * turning, turning + 0.02 * swing], axis=1)
        fallen = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > 12 * np.pi / 180)
        return Move(state=after, reward=np.ones(len(after)), terminated=fallen)

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]`` in frames from left to right."""
        drawn: list[list[Line]] = []
        for o in frames(observations, 16):
            x, angle = float(o[0]) / 2.4, float(o[2])
            drawn.append([Line(x - 0.25, -0.6, x + 0.25, -0.6), Line(x, -0.6, x + np.sin(angle), -0.6 + np.cos(angle))])
        return strip(drawn, reach=1.3)

    def control(self, observation: Array) -> Array:
        """``[n]`` the scripted expert: pushes to where a weighted sum of the state leans."""
        return (observation @ np.array([0.1, 0.3, 3.0, 1.0]) > 0).astype(np.int64)
