"""A direct-current motor whose current is to follow a reference within its limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core import ConfigError, uniforms
from assay_control.records import Array, Box
from assay_control.worlds.base import Copies, Move, RunningWorld, Seeds, seed_column, state_uniforms
from assay_control.worlds.pictures import traces

__all__ = ["Motor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Motor:
    """Choose the voltage of a motor so that its current follows a reference that jumps, and never leaves the limit.

    ``L di/dt = u - R i - k ω``, ``J dω/dt = k i - b ω``, by Runge and Kutta's rule of fourth order. Reward ``-|i - i*| / limit``,
    so 0 is the best. Beyond the limit the episode ends with ``-1 / (1 - γ)``, γ = .9, as in gym-electric-motor (Traue et al.
    2019), whose continuous task of a series motor this small one stands for; the motor here is separately excited.

    Observation: current and reference over the limit, speed over 100, and the error summed up over the episode, which a
    controller with an integral part needs. Action: voltage over ``voltage``.

    Attributes:
        resistance: ohm.
        inductance: henry.
        constant: of the torque, N m / A, and of the counter-voltage.
        inertia: kg m^2.
        friction: N m s.
        voltage: greatest, V.
        limit: of the current, A.
        jump: probability at each step that the reference jumps.
        period: of a step, s.
        horizon: steps of an episode.

    Raises:
        ConfigError: a number that is not positive, or no probability.
    """

    resistance: float = 0.5
    inductance: float = 5e-3
    constant: float = 0.2
    inertia: float = 5e-3
    friction: float = 1e-2
    voltage: float = 24.0
    limit: float = 20.0
    jump: float = 0.03
    period: float = 2e-3
    horizon: int = 200

    def __post_init__(self) -> None:
        for name in ("resistance", "inductance", "constant", "inertia", "friction", "voltage", "limit", "period", "horizon"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"Motor.{name}={getattr(self, name)}; use a positive number")
        if not 0 <= self.jump <= 1:
            raise ConfigError(f"Motor.jump={self.jump}; use a probability")

    @property
    def observation_size(self) -> int:
        """4."""
        return 4

    @property
    def actions(self) -> Box:
        """A voltage."""
        return Box(1)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """``[n, 6]``: current, speed, reference, summed error, a seed and a counter, from which later references are drawn."""
        seeds = np.asarray(seeds, np.uint64)
        u = uniforms(seeds, 0, 1)
        zero = np.zeros(len(seeds))
        return np.stack([zero, zero, self._reference(u[:, 0]), zero, seed_column(seeds), zero], axis=1)

    def _reference(self, u: Array) -> Array:
        """A current that the voltage can hold at standstill and at speed."""
        return (2 * u - 1) * 0.5 * self.limit

    def observe(self, state: Array) -> Array:
        """Current, reference, speed, summed error, each near 1."""
        return np.stack([state[:, 0] / self.limit, state[:, 2] / self.limit, state[:, 1] / 100, state[:, 3]], axis=1)

    def move(self, state: Array, action: Array) -> Move:
        """One period at a constant voltage; then the reference may jump."""
        u = np.clip(action[:, 0], -1, 1) * self.voltage
        x = self._integrate(state[:, :2], u)
        counter = state[:, 5] + 1
        drawn = state_uniforms(state[:, 4], counter, 2)
        reference = np.where(drawn[:, 0] < self.jump, self._reference(drawn[:, 1]), state[:, 2])
        error = (state[:, 2] - x[:, 0]) / self.limit
        over = np.abs(x[:, 0]) > self.limit
        total = np.clip(state[:, 3] + 0.1 * error, -2, 2)
        after = np.stack([x[:, 0], x[:, 1], reference, total, state[:, 4], counter], axis=1)
        return Move(state=after, reward=np.where(over, -10.0, -np.abs(error)), terminated=over, cost=over.astype(np.float64))

    def _integrate(self, x: Array, u: Array) -> Array:
        h = self.period
        k1 = self._slope(x, u)
        k2 = self._slope(x + h / 2 * k1, u)
        k3 = self._slope(x + h / 2 * k2, u)
        k4 = self._slope(x + h * k3, u)
        return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def _slope(self, x: Array, u: Array) -> Array:
        current, speed = x.T
        return np.stack(
            [
                (u - self.resistance * current - self.constant * speed) / self.inductance,
                (self.constant * current - self.friction * speed) / self.inertia,
            ],
            axis=1,
        )

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]``: current and reference."""
        return traces(observations[:, 0:2])

    def control(self, observation: Array) -> Array:
        """``[n, 1]`` a proportional-integral controller with feed-forward of the counter-voltage."""
        current, reference, speed, total = observation.T
        error = reference - current
        hold = (self.resistance * reference * self.limit + self.constant * speed * 100) / self.voltage
        return np.clip(0.6 * error + 0.3 * total + hold, -1, 1)[:, None]
