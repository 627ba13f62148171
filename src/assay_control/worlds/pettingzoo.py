"""Worlds of several agents of one kind, through PettingZoo's parallel interface; the package is imported when one is opened."""

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

__all__ = ["ParallelAgents"]


def _make_environment(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        made = getattr(import_module(module), name or "parallel_env")()
    except ModuleNotFoundError as error:
        raise ConfigError(f"ParallelAgents.path={path!r}: {error}; install the package that has it, such as pettingzoo") from None
    except AttributeError:
        raise ConfigError(f"ParallelAgents.path={path!r}: no such function; write 'module:function'") from None
    if not hasattr(made, "possible_agents"):
        raise ConfigError(f"{path} gave a {type(made).__name__}; give a function that makes a parallel environment of PettingZoo")
    return made


@lru_cache(maxsize=32)
def _facts(path: str) -> tuple[int, Space, int]:
    """Length of an observation, space of actions, number of agents."""
    made = _make_environment(path)
    agents = list(made.possible_agents)
    seen, acted = ([f(a) for a in agents] for f in (made.observation_space, made.action_space))
    if len({getattr(s, "shape", None) for s in seen}) != 1 or len(getattr(seen[0], "shape", None) or ()) != 1:
        raise ConfigError(f"{path}: agents need observations that are vectors of one length, to share a policy")
    if all(hasattr(a, "n") for a in acted) and len({int(a.n) for a in acted}) == 1:
        space: Space = Choices(int(acted[0].n))
    elif len({getattr(a, "shape", None) for a in acted}) == 1 and len(getattr(acted[0], "shape", None) or ()) == 1:
        space = Box(int(acted[0].shape[0]))
    else:
        raise ConfigError(f"{path}: agents need one space of actions, choices or vectors, to share a policy")
    return int(seen[0].shape[0]), space, len(agents)


@dataclass(frozen=True, slots=True)
class ParallelAgents:
    """A parallel environment of PettingZoo whose agents are of one kind and share a policy: each agent is one copy of the world.

    An episode of all agents of an environment is over where one of them ends; the others are cut, which bootstraps. Its state
    cannot be saved, as with `GymnasiumWorld`.

    Attributes:
        path: ``module:function`` that makes the environment.
        horizon: steps of an episode.

    Raises:
        ConfigError: the package is not installed, or the agents are not of one kind; when it is first asked about.
    """

    path: str
    horizon: int = 200

    @property
    def observation_size(self) -> int:
        """Of one agent's observation."""
        return _facts(self.path)[0]

    @property
    def actions(self) -> Space:
        """Of one agent."""
        return _facts(self.path)[1]

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`; environments for at least ``count`` agents."""
        return _Agents(self, count, seeds)


class _Agents:
    def __init__(self, world: ParallelAgents, count: int, seeds: Seeds) -> None:
        self._world, self._count, self._seeds = world, count, seeds
        self._team = _facts(world.path)[2]
        self._made = [_make_environment(world.path) for _ in range(-(-count // self._team))]
        self._steps = np.zeros(len(self._made), np.int64)
        self._seen = np.zeros((len(self._made) * self._team, world.observation_size))
        for i in range(len(self._made)):
            self._reset(i)

    @property
    def observation(self) -> Array:
        """As `RunningWorld.observation`."""
        return self._seen[: self._count].copy()

    def _reset(self, index: int) -> None:
        seed = int(self._seeds(1)[0]) & 0x7FFFFFFF
        seen, _ = self._made[index].reset(seed=seed)
        self._steps[index] = 0
        self._seen[self._rows(index)] = [seen[a] for a in self._made[index].possible_agents]

    def _rows(self, index: int) -> slice:
        return slice(index * self._team, (index + 1) * self._team)

    def step(self, actions: Array) -> WorldStep:
        """As `RunningWorld.step`; agents beyond ``count``, that fill up the last environment, repeat the last action."""
        n = len(self._made) * self._team
        filled = np.concatenate([actions, np.repeat(actions[-1:], n - len(actions), 0)])
        after, reward = np.zeros_like(self._seen), np.zeros(n)
        terminated, truncated = np.zeros(n, bool), np.zeros(n, bool)
        for i, made in enumerate(self._made):
            rows, agents = self._rows(i), made.possible_agents
            given = {a: self._own(v, made.action_space(a)) for a, v in zip(agents, filled[rows], strict=True)}
            seen, gained, ended, cut, _ = made.step(given)
            self._steps[i] += 1
            after[rows] = [seen[a] for a in agents]
            reward[rows] = [float(gained[a]) for a in agents]
            terminated[rows] = [bool(ended[a]) for a in agents]
            if any(ended.values()) or any(cut.values()) or self._steps[i] >= self._world.horizon:
                truncated[rows] = ~terminated[rows]
        self._seen = after.copy()
        for i in range(len(self._made)):
            if (terminated | truncated)[i * self._team]:
                self._reset(i)
        c = self._count
        return WorldStep(
            observation=after[:c], reward=reward[:c], cost=np.zeros(c), terminated=terminated[:c], truncated=truncated[:c]
        )

    def _own(self, action: Any, space: Any) -> Any:
        if isinstance(self._world.actions, Choices):
            return int(action)
        return (space.low + (np.clip(action, -1, 1) + 1) / 2 * (space.high - space.low)).astype(space.dtype)

    def state(self) -> Mapping[str, Array]:
        """Nothing can be saved of it."""
        return {}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Begins fresh episodes."""
        del state
        for i in range(len(self._made)):
            self._reset(i)
