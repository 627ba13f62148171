"""What a world is: a frozen spec with pure vectorised functions, and the copies of it that run.

A world says how states begin, move and look; `Copies` holds the states of ``n`` of them, counts steps, cuts at the horizon and
begins the next episode. Because a world is a pure function of state and action, every own world can be saved and gone on with at
any step, and a planner can ask it about states that nobody is in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from assay.core import ConfigError, uniforms
from assay_control.records import Array, Choices, Space, WorldStep

__all__ = ["Copies", "Move", "RunningWorld", "SimulatedWorld", "World", "seed_column", "state_uniforms", "uniform_start"]

Seeds = Callable[[int], Array]
"""Gives so many fresh seeds for the starts of the next episodes, uint64."""


class RunningWorld(Protocol):
    """``n`` copies of a world that are being acted in."""

    @property
    def observation(self) -> Array:
        """``[n, O]`` float64 that the next actions answer to; after an episode's end, the start of the next."""
        ...

    def step(self, actions: Array) -> WorldStep:
        """Acts in all copies; those that are done begin their next episode at once."""
        ...

    def state(self) -> Mapping[str, Array]:
        """All that a later `restore` needs."""
        ...

    def restore(self, state: Mapping[str, Array]) -> None:
        """Goes on from a `state`."""
        ...


@runtime_checkable
class World(Protocol):
    """A Markov decision process with a horizon: a frozen dataclass.

    Attributes:
        observation_size: length of an observation.
        actions: the space of actions.
        horizon: steps at which an episode is cut.
    """

    @property
    def observation_size(self) -> int: ...

    @property
    def actions(self) -> Space: ...

    @property
    def horizon(self) -> int: ...

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """``count`` copies at the starts of episodes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What an action does to ``n`` states.

    Attributes:
        state: ``[n, S]`` after it.
        reward, cost: ``[n]``.
        terminated: ``[n]`` bool.
    """

    state: Array
    reward: Array
    terminated: Array
    cost: Array | None = None


class SimulatedWorld(Protocol):
    """The pure functions of a world of assay's own; `Copies` runs them."""

    @property
    def horizon(self) -> int: ...

    @property
    def actions(self) -> Space: ...

    def start(self, seeds: Array) -> Array:
        """``[n, S]`` float64 states, a pure function of ``[n]`` seeds."""
        ...

    def observe(self, state: Array) -> Array:
        """``[n, O]`` what a policy sees of ``[n, S]`` states."""
        ...

    def move(self, state: Array, action: Array) -> Move:
        """The states after an action."""
        ...


class Copies:
    """``count`` copies of a simulated world.

    Args:
        world: its functions.
        count: how many.
        seeds: of the starts.

    Raises:
        ConfigError: ``count`` is below 1.
    """

    def __init__(self, world: SimulatedWorld, count: int, seeds: Seeds) -> None:
        if count < 1:
            raise ConfigError(f"open(count={count}); use at least one copy of a world")
        self.world, self._seeds = world, seeds
        self._state = world.start(seeds(count))
        self._steps = np.zeros(count, np.int64)
        self._observation = world.observe(self._state)

    @property
    def observation(self) -> Array:
        """As `RunningWorld.observation`."""
        return self._observation

    def step(self, actions: Array) -> WorldStep:
        """As `RunningWorld.step`.

        Raises:
            ConfigError: actions of another shape, or that are not finite.
        """
        self._check(actions)
        move = self.world.move(self._state, actions)
        self._steps += 1
        truncated = (self._steps >= self.limits()) & ~move.terminated
        self._state = move.state
        after = self.world.observe(move.state)
        self._observation = after
        if (done := move.terminated | truncated).any():
            self._begin(done)
        cost = np.zeros(len(after)) if move.cost is None else move.cost
        return WorldStep(observation=after, reward=move.reward, cost=cost, terminated=move.terminated, truncated=truncated)

    def limits(self) -> Array | int:
        """Steps after which the episode of each copy is cut."""
        return self.world.horizon

    def _begin(self, done: Array) -> None:
        """The next episode, where one is done; the arrays that were handed out stay as they are."""
        self._state = self._state.copy()
        self._state[done] = self.world.start(self._seeds(int(done.sum())))
        self._steps[done] = 0
        self._observation = self.world.observe(self._state)

    def _check(self, actions: Array) -> None:
        n, space = len(self._state), self.world.actions
        shape = (n,) if isinstance(space, Choices) else (n, space.size)
        if actions.shape != shape or not np.isfinite(actions).all():
            raise ConfigError(f"{type(self.world).__name__}: actions of shape {actions.shape}; give finite ones of {shape}")

    def state(self) -> Mapping[str, Array]:
        """As `RunningWorld.state`."""
        return {"state": self._state.copy(), "steps": self._steps.copy()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """As `RunningWorld.restore`."""
        self._state, self._steps = np.array(state["state"]), np.array(state["steps"])
        self._observation = self.world.observe(self._state)


def uniform_start(seeds: Array, low: Any, high: Any) -> Array:
    """``[n, S]`` states drawn evenly between two ends, a pure function of ``[n]`` seeds."""
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return low + (high - low) * uniforms(np.asarray(seeds, np.uint64), 0, len(low))


def seed_column(seeds: Array) -> Array:
    """``[n]`` float64 seeds that are exact as numbers of a state, for worlds with chance inside an episode."""
    return (np.asarray(seeds, np.uint64) >> np.uint64(32)).astype(np.float64)


def state_uniforms(seed: Array, counter: Array, count: int) -> Array:
    """``[n, count]`` numbers in [0, 1) of a `seed_column` and of how many steps were done: chance that is part of the state.

    >>> a = state_uniforms(np.array([3.0, 4.0]), np.array([1.0, 1.0]), 2)
    >>> bool((a == state_uniforms(np.array([3.0, 4.0]), np.array([1.0, 1.0]), 2)).all()), bool((a[0] == a[1]).any())
    (True, False)
    """
    return uniforms((seed.astype(np.uint64) << np.uint64(24)) + counter.astype(np.uint64), 0, count)
