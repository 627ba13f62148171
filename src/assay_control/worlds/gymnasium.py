"""Environments of Gymnasium as worlds; the package is imported when one is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from assay.core import ConfigError
from assay_control.records import Array, Box, Choices, Space, WorldStep
from assay_control.worlds.base import RunningWorld, Seeds

__all__ = ["GymnasiumWorld"]

MUJOCO = ("qpos", "qvel", "qacc_warmstart")
"""Arrays of a simulation of MuJoCo on which its next step depends."""


def _gymnasium() -> Any:
    try:
        return import_module("gymnasium")
    except ModuleNotFoundError:
        raise ConfigError(
            "gymnasium is not installed: pip install gymnasium, or choose a world of 'assay control worlds'"
        ) from None


@lru_cache(maxsize=32)
def _facts(name: str) -> tuple[int, Space, int]:
    """Length of an observation, space of actions, horizon."""
    made = _gymnasium().make(name)
    seen, acted = made.observation_space, made.action_space
    if len(getattr(seen, "shape", None) or ()) != 1:
        raise ConfigError(f"{name} has observations of shape {getattr(seen, 'shape', None)}; only vectors can be learned from")
    if hasattr(acted, "n"):
        space: Space = Choices(int(acted.n))
    elif len(acted.shape) == 1 and np.isfinite(acted.low).all() and np.isfinite(acted.high).all():
        space = Box(int(acted.shape[0]))
    else:
        raise ConfigError(f"{name} has actions {acted}; only choices, and vectors between finite ends, can be learned")
    return int(seen.shape[0]), space, int(getattr(made.spec, "max_episode_steps", None) or 1000)


@dataclass(frozen=True, slots=True)
class GymnasiumWorld:
    """An environment of Gymnasium, by its id; actions in [-1, 1] are stretched to its own ends.

    Where it is one of MuJoCo's, positions, velocities, the solver's start and the steps are saved, so a run that was killed
    goes on in the same episode. The state of others cannot be saved: such a run goes on with a fresh episode and is not
    bit-equal.

    Attributes:
        name: of the environment: ``Pendulum-v1``.

    Raises:
        ConfigError: gymnasium is not installed, or the environment has no vectors or choices; when it is first asked about.
    """

    name: str

    @property
    def observation_size(self) -> int:
        """Of its observation space."""
        return _facts(self.name)[0]

    @property
    def actions(self) -> Space:
        """Of its action space."""
        return _facts(self.name)[1]

    @property
    def horizon(self) -> int:
        """Its time limit, 1000 where it has none."""
        return _facts(self.name)[2]

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return _Running(self, count, seeds)


class _Running:
    def __init__(self, world: GymnasiumWorld, count: int, seeds: Seeds) -> None:
        self._world, self._seeds = world, seeds
        self._made = [_gymnasium().make(world.name) for _ in range(count)]
        self._steps = np.zeros(count, np.int64)
        self.observation: Array = np.stack([self._reset(i) for i in range(count)])

    def _reset(self, index: int) -> Array:
        seed = int(self._seeds(1)[0]) & 0x7FFFFFFF
        self._steps[index] = 0
        return np.asarray(self._made[index].reset(seed=seed)[0], np.float64)

    def step(self, actions: Array) -> WorldStep:
        """As `RunningWorld.step`."""
        n = len(self._made)
        after, reward = np.empty((n, self._world.observation_size)), np.empty(n)
        terminated, truncated = np.zeros(n, bool), np.zeros(n, bool)
        for i, made in enumerate(self._made):
            seen, gained, ended, cut, _ = made.step(self._stretch_action(actions[i], made.action_space))
            self._steps[i] += 1
            after[i], reward[i] = seen, gained
            terminated[i] = ended
            truncated[i] = not ended and (cut or self._steps[i] >= self._world.horizon)
        self.observation = np.stack([self._reset(i) if terminated[i] or truncated[i] else after[i] for i in range(n)])
        return WorldStep(observation=after, reward=reward, cost=np.zeros(n), terminated=terminated, truncated=truncated)

    def _stretch_action(self, action: Array, space: Any) -> Any:
        if isinstance(self._world.actions, Choices):
            return int(action)
        share = (np.clip(action, -1, 1) + 1) / 2
        return (space.low + share * (space.high - space.low)).astype(space.dtype)

    def state(self) -> Mapping[str, Array]:
        """What can be saved: the state of MuJoCo, nothing of other environments."""
        inner = [made.unwrapped for made in self._made]
        if not all(hasattr(e, "set_state") and hasattr(e, "data") for e in inner):
            return {}
        held = {name: np.stack([np.array(getattr(e.data, name)) for e in inner]) for name in MUJOCO}
        return {**held, "time": np.array([e.data.time for e in inner]), "steps": self._steps.copy(), "seen": self.observation}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Goes on from a saved state, or begins fresh episodes."""
        if state:
            for i, made in enumerate(self._made):
                made.reset(seed=0)
                inner = made.unwrapped
                inner.set_state(np.array(state["qpos"][i]), np.array(state["qvel"][i]))
                inner.data.qacc_warmstart[:] = state["qacc_warmstart"][i]
                inner.data.time = float(state["time"][i])
            self._steps, self.observation = np.array(state["steps"]), np.array(state["seen"])
            return
        self.observation = np.stack([self._reset(i) for i in range(len(self._made))])
