"""The channel of an extrusion die to balance, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core import ConfigError
from assay_control.records import Array, Box
from assay_control.worlds.base import Copies, Move, RunningWorld, Seeds, uniform_start
from assay_control.worlds.pictures import traces

__all__ = ["ExtrusionDie", "flow_ratios"]


def flow_ratios(height: Array, land: Array, index: float) -> Array:
    """``[n, K]`` mean speed in each outlet over that of the whole die, for a power-law melt in slits.

    ``v_i ∝ h_i^((m + 1) / m) L_i^(-1 / m)`` at one pressure, ``ratio_i = v_i Σ h / Σ (v h)``; all 1 where the die is balanced.

    >>> flow_ratios(np.array([[1.0, 1.0, 1.1]]), np.ones((1, 3)), 0.35).round(4).tolist()
    [[0.8638, 0.8638, 1.2476]]
    """
    speed = height ** ((index + 1) / index) * land ** (-1 / index)
    return speed * height.sum(1, keepdims=True) / (speed * height).sum(1, keepdims=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtrusionDie:
    """Shape the lands of a die with three outlets until its melt leaves all of them alike fast.

    Heights are drawn for each episode, so each is another shape to optimise; an action changes the logarithm of each land by up
    to ``change``. ``c_i = (ratio_i - 1) / max(ratio_i, 1)``; reward ``-Σ c²``, and 5 with the end of the episode where it is
    below ``goal``. After Wolff et al. 2023 (ReLeSO), with a power-law melt in slits in place of a flow solver.

    Observation: logarithms of heights and lands, and ``c``. Each step is one call of the solver.

    Attributes:
        index: exponent of the melt.
        spread: of the heights' logarithms.
        change: of a land's logarithm in a step.
        goal: ``Σ c²`` that ends an episode.
        horizon: steps of an episode.

    Raises:
        ConfigError: a number that is not positive.

    >>> place = ExtrusionDie()
    >>> round(float(place.imbalance(np.array([[1.0, 1.0, 1.1]]), np.ones((1, 3)))[0]), 4)
    0.0765
    """

    index: float = 0.35
    spread: float = 0.15
    change: float = 0.15
    goal: float = 0.002
    horizon: int = 30

    def __post_init__(self) -> None:
        for name in ("index", "spread", "change", "goal", "horizon"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"ExtrusionDie.{name}={getattr(self, name)}; use a positive number")

    @property
    def observation_size(self) -> int:
        """9."""
        return 9

    @property
    def actions(self) -> Box:
        """A change of each land."""
        return Box(3)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """``[n, 6]`` logarithms of heights, drawn, and of lands, which are alike."""
        s = self.spread
        return uniform_start(seeds, (-s, -s, -s, 0, 0, 0), (s, s, s, 0, 0, 0))

    def deviations(self, height: Array, land: Array) -> Array:
        """``[n, K]`` ``c_i`` of each outlet."""
        ratio = flow_ratios(height, land, self.index)
        return (ratio - 1) / np.maximum(ratio, 1)

    def imbalance(self, height: Array, land: Array) -> Array:
        """``[n]`` ``Σ c²``."""
        return (self.deviations(height, land) ** 2).sum(1)

    def observe(self, state: Array) -> Array:
        """Heights and lands as logarithms, fivefold, and the deviations of the outlets."""
        return np.concatenate([5 * state, self.deviations(np.exp(state[:, :3]), np.exp(state[:, 3:]))], axis=1)

    def move(self, state: Array, action: Array) -> Move:
        """Changes the lands; lands stay within a factor of e."""
        land = np.clip(state[:, 3:] + self.change * np.clip(action, -1, 1), -1.0, 1.0)
        after = np.concatenate([state[:, :3], land], axis=1)
        cost = self.imbalance(np.exp(after[:, :3]), np.exp(land))
        there = cost < self.goal
        return Move(state=after, reward=np.where(there, 5.0, -cost), terminated=there)

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]``: the deviations of the three outlets."""
        return traces(observations[:, 6:9])

    def control(self, observation: Array) -> Array:
        """``[n, 3]`` towards the balance of slits, ``L ∝ h^(1 + m)``, known in closed form."""
        height, land = observation[:, :3] / 5, observation[:, 3:6] / 5
        wanted = (1 + self.index) * height
        # only ratios of lands matter: the mean of the wanted ones is that of now
        error = wanted - land
        return np.clip((error - error.mean(1, keepdims=True)) / self.change, -1, 1)
