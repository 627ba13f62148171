"""Who acts when data are collected: at random, by a script, weakly, or from way point to way point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from assay.core import ConfigError, generator
from assay.core.fields import later
from assay_control.records import Array, Box, Choices
from assay_control.worlds.base import World
from assay_control.worlds.maze import PointMaze, free_cells

__all__ = ["Act", "Behaviour", "RandomActions", "Scripted", "Wander"]

Act = Callable[[Array, int], Array]
"""Actions for ``[n, O]`` observations at step ``t`` of ``n`` episodes."""


class Behaviour(Protocol):
    """A frozen dataclass that says how to act in a world."""

    @property
    def source(self) -> str:
        """Its name and settings, noted with each episode."""
        ...

    def begin(self, world: World, count: int, seed: int) -> Act:
        """Acts in ``count`` episodes that begin now; a pure function of its arguments."""
        ...


def random_actions(space: Box | Choices, rng: np.random.Generator, count: int) -> Array:
    """Even over the space: ``[count, A]`` or ``[count]``."""
    if isinstance(space, Choices):
        return rng.integers(0, space.count, count)
    return rng.uniform(-1.0, 1.0, (count, space.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomActions:
    """Actions drawn evenly from the space.

    >>> from assay_control.worlds.pendulum import Pendulum
    >>> RandomActions().begin(Pendulum(), 2, 0)(np.zeros((2, 3)), 0).shape
    (2, 1)
    """

    @property
    def source(self) -> str:
        """``random``."""
        return "random"

    def begin(self, world: World, count: int, seed: int) -> Act:
        """As `Behaviour.begin`."""
        return lambda observation, t: random_actions(world.actions, generator("control/random", seed, index=t), count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """The world's own controller, weakened and disturbed.

    ``a = clip(gain * control(o) + noise * N(0, 1))``; with choices, a random one in a share ``noise`` of the steps.

    Attributes:
        gain: factor on the controller's action; below 1 it is a mediocre one. Ignored by no world: choices refuse it.
        noise: standard deviation of what is added, or the share of random choices.
        of: world whose controller acts, where it is that of another world of the same observations and actions.

    Raises:
        ConfigError: a negative number.
    """

    gain: float = 1.0
    noise: float = 0.0
    of: World | None = later(None)

    def __post_init__(self) -> None:
        if self.gain <= 0 or self.noise < 0:
            raise ConfigError(f"Scripted(gain={self.gain}, noise={self.noise}): use a positive gain and noise of 0 or more")

    @property
    def source(self) -> str:
        """``script`` with its settings."""
        other = f" of {type(self.of).__name__}" if self.of is not None else ""
        return f"script gain={self.gain:g} noise={self.noise:g}{other}"

    def begin(self, world: World, count: int, seed: int) -> Act:
        """As `Behaviour.begin`.

        Raises:
            ConfigError: the world has no controller, or its choices cannot be weakened.
        """
        control = getattr(self.of or world, "control", None)
        if control is None:
            raise ConfigError(f"{type(world).__name__} has no scripted controller; use RandomActions or give it a method control")
        space = world.actions
        if isinstance(space, Choices) and self.gain != 1.0:
            raise ConfigError(f"Scripted.gain={self.gain} does nothing to choices; use noise, the share of random ones")

        def act(observation: Array, t: int) -> Array:
            rng = generator("control/script", seed, index=t)
            if isinstance(space, Choices):
                drawn = random_actions(space, rng, count)
                return np.where(rng.random(count) < self.noise, drawn, control(observation))
            action: Array = self.gain * control(observation)
            if self.noise:
                action = action + self.noise * rng.standard_normal(action.shape)
            return np.clip(action, -1.0, 1.0)

        return act


@dataclass(frozen=True, slots=True, kw_only=True)
class Wander:
    """Walks through a maze to way points that have nothing to do with its goal.

    Each episode has a free cell as its way point, within ``near`` cells of where it begins where that is given; having reached
    it, the walker goes on to another.

    Attributes:
        near: longest shortest way to a way point, in cells; 0 for any.
        noise: standard deviation of what is added to each action.

    Raises:
        ConfigError: a negative number.
    """

    near: int = 0
    noise: float = 0.2

    def __post_init__(self) -> None:
        if self.near < 0 or self.noise < 0:
            raise ConfigError(f"Wander(near={self.near}, noise={self.noise}): use numbers of 0 or more")

    @property
    def source(self) -> str:
        """``wander`` with its settings."""
        return f"wander near={self.near} noise={self.noise:g}"

    def begin(self, world: World, count: int, seed: int) -> Act:
        """As `Behaviour.begin`.

        Raises:
            ConfigError: the world is no maze.
        """
        if not isinstance(world, PointMaze):
            raise ConfigError(f"Wander walks in a PointMaze, not in {type(world).__name__}")
        goals: list[Array] = []

        def act(observation: Array, t: int) -> Array:
            rng = generator("control/wander", seed, index=t)
            cell = np.rint(world.place(observation)).astype(np.int64)
            fresh = self._targets(world, cell, rng)
            arrived = np.ones(count, bool) if not goals else (cell == goals[0]).all(1)
            goals[:] = [fresh if not goals else np.where(arrived[:, None], fresh, goals[0])]
            action = world.toward(observation, goals[0])
            return np.clip(action + self.noise * rng.standard_normal(action.shape), -1.0, 1.0)

        return act

    def _targets(self, world: PointMaze, cell: Array, rng: np.random.Generator) -> Array:
        """``[n, 2]`` free cells that are near enough, each drawn evenly."""
        free = np.argwhere(free_cells(world.maze))
        drawn = rng.random((len(cell), len(free)))
        if self.near:
            far = np.abs(cell[:, None] - free[None]).sum(2)
            drawn = np.where(far <= self.near, drawn, -1.0)
        return cast("Any", free[drawn.argmax(1)])
