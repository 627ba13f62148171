"""A pendulum to swing up with a weak motor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core import ConfigError
from assay_control.records import Array, Box
from assay_control.worlds.base import Copies, Move, RunningWorld, Seeds, uniform_start
from assay_control.worlds.pictures import Line, frames, strip

__all__ = ["Pendulum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pendulum:
    """Swing a pendulum up and hold it; the motor is too weak to lift it at once.

    Observation: cosine and sine of the angle (0 is upright), angular speed. Action: torque over ``max_torque``, in [-1, 1].
    Reward: ``-(angle^2 + 0.1 speed^2 + 0.001 torque^2)`` at each of 200 steps of 0.05 s, so a return is between about -1800 and
    0. It never terminates. The equations are those of Gymnasium's Pendulum-v1.

    Attributes:
        gravity: m/s^2.
        mass: kg.
        length: m.
        max_torque: N m.
        horizon: steps of an episode.

    Raises:
        ConfigError: a size that is not positive.

    >>> place = Pendulum()
    >>> place.open(4, lambda n: np.arange(n, dtype=np.uint64)).step(np.zeros((4, 1))).observation.shape
    (4, 3)
    """

    gravity: float = 10.0
    mass: float = 1.0
    length: float = 1.0
    max_torque: float = 2.0
    horizon: int = 200

    def __post_init__(self) -> None:
        for name in ("mass", "length", "max_torque", "horizon"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"Pendulum.{name}={getattr(self, name)}; use a positive number")

    @property
    def observation_size(self) -> int:
        """3."""
        return 3

    @property
    def actions(self) -> Box:
        """One torque."""
        return Box(1)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """Any angle, at a speed in [-1, 1]."""
        return uniform_start(seeds, (-np.pi, -1.0), (np.pi, 1.0))

    def observe(self, state: Array) -> Array:
        """Cosine, sine, speed."""
        return np.stack([np.cos(state[:, 0]), np.sin(state[:, 0]), state[:, 1]], axis=1)

    def move(self, state: Array, action: Array) -> Move:
        """One step of 0.05 s by Euler's rule, speed limited to 8."""
        angle, speed = state[:, 0], state[:, 1]
        torque = np.clip(action[:, 0], -1.0, 1.0) * self.max_torque
        turned = np.mod(angle + np.pi, 2 * np.pi) - np.pi
        reward = -(turned**2 + 0.1 * speed**2 + 0.001 * torque**2)
        pull = 1.5 * self.gravity / self.length * np.sin(angle)
        speed = np.clip(speed + (pull + 3.0 / (self.mass * self.length**2) * torque) * 0.05, -8.0, 8.0)
        after = np.stack([angle + speed * 0.05, speed], axis=1)
        return Move(state=after, reward=reward, terminated=np.zeros(len(after), bool))

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]`` in frames from left to right."""
        shown = frames(observations, 16)
        rods = [(0.0, 0.0, float(o[1]), float(o[0])) for o in shown]
        return strip([[Line(a, b, c, d)] for a, b, c, d in rods], reach=1.2)

    def control(self, observation: Array) -> Array:
        """``[n, 1]`` the scripted expert: pumps energy until the pendulum is near the top, and holds it there.

        Energy control after Astrom and Furuta 2000: torque along the speed while the energy is below that of standing upright,
        against it while above; near the top a linear feedback of angle and speed. It is smooth in the speed, so that a small
        network can imitate it.
        """
        cos, sin, speed = observation[:, 0], observation[:, 1], observation[:, 2]
        angle = np.arctan2(sin, cos)
        inertia = self.mass * self.length**2 / 3.0
        lack = self.mass * self.gravity * self.length / 2.0 * (1.0 - cos) - 0.5 * inertia * speed**2
        pump = np.tanh(2.0 * lack * speed + 0.2 * (speed >= 0) - 0.1)
        hold = -(12.0 * angle + 3.0 * speed) / (2.0 * self.max_torque)
        near = np.abs(angle) < 0.6
        return np.clip(np.where(near, hold, pump), -1.0, 1.0)[:, None]
