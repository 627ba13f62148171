"""The records of control: spaces, what a step of a world returns, episodes, and flat rows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core import ConfigError, DataError, FrozenMap, array_digest, digest

__all__ = ["Array", "Box", "Choices", "Episode", "Space", "Transitions", "WorldStep", "transitions"]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Box:
    """Actions that are vectors in [-1, 1]; a world scales them itself.

    Attributes:
        size: length of the vector.
    """

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"Box.size={self.size}; use a whole number, at least 1")


@dataclass(frozen=True, slots=True)
class Choices:
    """Actions that are whole numbers ``0 .. count - 1``.

    Attributes:
        count: how many there are.
    """

    count: int

    def __post_init__(self) -> None:
        if self.count < 2:
            raise ConfigError(f"Choices.count={self.count}; a choice needs two actions or more")


Space = Box | Choices


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldStep:
    """What a step of ``n`` copies of a world returns.

    Attributes:
        observation: ``[n, O]`` after the action, before any reset: the true successor.
        reward: ``[n]``.
        cost: ``[n]``, 0 where the world has no constraint.
        terminated: ``[n]`` whether the episode ended by itself; nothing is to be gained after it.
        truncated: ``[n]`` whether it was only cut at the horizon.
    """

    observation: Array
    reward: Array
    cost: Array
    terminated: Array
    truncated: Array

    @property
    def done(self) -> Array:
        """``[n]`` whether the episode is over, in either way."""
        return self.terminated | self.truncated


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Episode:
    """One episode: ``T`` actions and ``T + 1`` observations, as Minari lays them out.

    Attributes:
        observations: ``[T + 1, O]`` float32.
        actions: ``[T, A]`` float32 in [-1, 1], or ``[T]`` int64.
        rewards: ``[T]`` float32.
        terminated, truncated: ``[T]``; only the last can be true.
        costs: ``[T]`` float32, or None.
        source: which behaviour acted, with its version.
        seed: of its start.

    Raises:
        DataError: lengths that do not fit, a flag before the last step, or a number that is not finite.

    >>> e = Episode(observations=np.zeros((3, 2)), actions=np.zeros((2, 1)), rewards=np.ones(2),
    ...             terminated=np.array([False, True]), truncated=np.zeros(2, bool))
    >>> len(e), e.total
    (2, 2.0)
    """

    observations: Array
    actions: Array
    rewards: Array
    terminated: Array
    truncated: Array
    costs: Array | None = None
    source: str = ""
    seed: int = 0
    columns: Mapping[str, Array] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        n = len(self.rewards)
        sizes = {"actions": len(self.actions), "terminated": len(self.terminated), "truncated": len(self.truncated)}
        if n < 1 or len(self.observations) != n + 1 or any(size != n for size in sizes.values()):
            raise DataError(
                f"episode of {n} rewards has {len(self.observations)} observations and {sizes}; give T of each and T + 1 "
                "observations"
            )
        if bool(np.any(self.terminated[:-1])) or bool(np.any(self.truncated[:-1])):
            raise DataError("an episode ends at its first terminated or truncated step; split it there")
        for name in ("observations", "actions", "rewards"):
            if not np.isfinite(getattr(self, name)).all():
                raise DataError(f"episode has {name} that are not finite; leave it out or mend them")

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The return, undiscounted."""
        return float(np.sum(self.rewards, dtype=np.float64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transitions:
    """Steps of episodes in flat columns, in their order.

    Attributes:
        observation, next_observation: ``[n, O]`` float32.
        action: ``[n, A]`` float32, or ``[n]`` int64.
        reward, cost: ``[n]`` float32.
        terminal: ``[n]`` bool: nothing follows, so nothing is bootstrapped. A cut at the horizon is none.
        to_go: ``[n]`` float32, the discounted return from there to the episode's end.
        episode, step: ``[n]`` int64, which episode and where in it.
        first: ``[E]`` row at which each episode begins.
    """

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminal: Array
    cost: Array
    to_go: Array
    episode: Array
    step: Array
    first: Array

    def __len__(self) -> int:
        return len(self.reward)

    def returns(self) -> Array:
        """``[E]`` undiscounted return of each episode, float64."""
        return np.add.reduceat(self.reward.astype(np.float64), self.first)

    def digest(self) -> str:
        """Of all columns: equal digests are equal data."""
        names = ("observation", "action", "reward", "next_observation", "terminal", "cost", "episode", "step")
        return digest([array_digest(np.ascontiguousarray(getattr(self, name))) for name in names])


def transitions(episodes: Sequence[Episode], discount: float) -> Transitions:
    """Flat columns of episodes.

    Args:
        episodes: at least one.
        discount: of the returns to go; nothing is added for what a cut at the horizon hides.

    Raises:
        DataError: there is no episode.

    >>> e = Episode(observations=np.zeros((3, 2)), actions=np.zeros((2, 1)), rewards=np.ones(2),
    ...             terminated=np.array([False, True]), truncated=np.zeros(2, bool))
    >>> transitions([e], 0.5).to_go.tolist()
    [1.5, 1.0]
    """
    if not episodes:
        raise DataError("a data set needs at least one episode")
    lengths = np.array([len(e) for e in episodes])
    first = np.cumsum(lengths) - lengths

    def join_columns(name: str, kind: Any) -> Array:
        return np.concatenate([cast("Array", getattr(e, name)) for e in episodes]).astype(kind)

    discrete = np.issubdtype(np.asarray(episodes[0].actions).dtype, np.integer)
    costs = np.concatenate([np.zeros(len(e)) if e.costs is None else e.costs.astype(np.float64) for e in episodes])
    return Transitions(
        observation=np.concatenate([e.observations[:-1] for e in episodes]).astype(np.float32),
        action=join_columns("actions", np.int64 if discrete else np.float32),
        reward=join_columns("rewards", np.float32),
        next_observation=np.concatenate([e.observations[1:] for e in episodes]).astype(np.float32),
        terminal=join_columns("terminated", np.bool_),
        cost=costs.astype(np.float32),
        to_go=np.concatenate([returns_to_go(e.rewards, discount) for e in episodes]).astype(np.float32),
        episode=np.repeat(np.arange(len(episodes)), lengths),
        step=np.arange(int(lengths.sum())) - np.repeat(first, lengths),
        first=first,
    )


def returns_to_go(rewards: Array, discount: float) -> Array:
    """``[T]`` discounted sums from each step to the end, float64."""
    out = np.empty(len(rewards))
    total = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        total = float(rewards[t]) + discount * total
        out[t] = total
    return out
