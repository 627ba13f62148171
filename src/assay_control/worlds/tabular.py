"""Worlds of a few states: how far ahead a learner must look in them, and a learner that looks just so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core import ConfigError, generator
from assay_control.records import Array, Choices
from assay_control.worlds.base import Copies, Move, RunningWorld, Seeds
from assay_control.worlds.pictures import traces

__all__ = ["Corridor", "EffectiveHorizon", "effective_horizon", "learn_shallow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corridor:
    """Walk right to the end of a corridor for 1; going left pays ``decoy`` at its begin.

    States ``0 ... cells``, the last of which ends the episode. Observation: the place and the time, scaled, for a return over a
    horizon depends on both.

    Attributes:
        cells: steps to the end.
        decoy: reward of going left in the first cell.
        horizon: steps of an episode.

    Raises:
        ConfigError: a size below 1.
    """

    cells: int = 4
    decoy: float = 0.0
    horizon: int = 8

    def __post_init__(self) -> None:
        if min(self.cells, self.horizon) < 1:
            raise ConfigError(f"Corridor(cells={self.cells}, horizon={self.horizon}): use whole numbers from 1 up")

    @property
    def observation_size(self) -> int:
        """2."""
        return 2

    @property
    def actions(self) -> Choices:
        """Left, right."""
        return Choices(2)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """``[n, 2]`` in the first cell, at time 0."""
        return np.zeros((len(seeds), 2))

    def observe(self, state: Array) -> Array:
        """Place and time in [-1, 1]."""
        return 2 * state / np.array([self.cells, self.horizon]) - 1

    def move(self, state: Array, action: Array) -> Move:
        """One step."""
        place = state[:, 0]
        after = np.where(action == 1, place + 1, np.maximum(place - 1, 0))
        there = after >= self.cells
        reward = np.where(action == 1, there.astype(np.float64), np.where(place == 0, self.decoy, 0.0))
        return Move(state=np.column_stack([after, state[:, 1] + 1]), reward=reward, terminated=there)

    def table(self) -> tuple[Array, Array]:
        """``[S, A]`` next states and rewards; the end leads to itself for nothing."""
        place = np.arange(self.cells + 1.0)
        moves = [self.move(np.column_stack([place, 0 * place]), np.full(len(place), a)) for a in (0, 1)]
        follows = np.stack([m.state[:, 0] for m in moves], 1).astype(np.int64)
        reward = np.stack([m.reward for m in moves], 1)
        follows[-1], reward[-1] = self.cells, 0.0
        return follows, reward

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]``: the place."""
        return traces(observations[:, 0:1])

    def control(self, observation: Array) -> Array:
        """``[n]`` stays for the decoy as long as there is time for it, then goes right."""
        place = np.rint((observation[:, 0] + 1) / 2 * self.cells)
        left = self.horizon - np.rint((observation[:, 1] + 1) / 2 * self.horizon)
        return ((left <= self.cells - place) | (place > 0) | (self.decoy <= 0)).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveHorizon:
    """How far ahead a world must be planned in.

    Attributes:
        least: smallest ``k`` for which acting greedily by ``Q^k`` is optimal; None where no ``k`` up to the greatest tried is.
        returns: of acting greedily by ``Q^1, Q^2, ...``.
        best: the optimal return.
    """

    least: int | None
    returns: tuple[float, ...]
    best: float


def effective_horizon(world: Corridor, most: int = 0) -> EffectiveHorizon:
    """Steps of value iteration from the random policy's values until acting greedily is optimal.

    ``Q^1`` is the value of acting at random, ``Q^{i+1}_h = r + max_a Q^i_{h+1}``; the world is k-QVI-solvable where the greedy
    policy of ``Q^k`` is optimal. Source: Laidlaw et al. 2024 (the effective horizon in stochastic environments).

    Args:
        world: to measure.
        most: greatest ``k``; its horizon where 0.

    >>> found = effective_horizon(Corridor(cells=6, horizon=10, decoy=0.05))
    >>> found.least, [round(j, 2) for j in found.returns[:3]], round(found.best, 2)
    (7, [0.5, 0.5, 1.0], 1.2)
    """
    follows, reward = world.table()
    value = np.zeros(len(reward))
    q: list[Array] = []
    for _ in range(world.horizon):
        q.insert(0, reward + value[follows])
        value = q[0].mean(1)
    best = np.zeros(len(reward))
    for _ in range(world.horizon):
        best = (reward + best[follows]).max(1)
    returns: list[float] = []
    least: int | None = None
    for k in range(1, (most or world.horizon) + 1):
        returns.append(_greedy_return(follows, reward, q))
        if least is None and returns[-1] >= best[0] - 1e-9:
            least = k
        q = [reward + (q[h + 1].max(1)[follows] if h + 1 < len(q) else 0.0) for h in range(len(q))]
    return EffectiveHorizon(least=least, returns=tuple(returns), best=float(best[0]))


def _greedy_return(follows: Array, reward: Array, q: list[Array]) -> float:
    place, total = 0, 0.0
    for values in q:
        action = int(values[place].argmax())
        total += float(reward[place, action])
        place = int(follows[place, action])
    return total


def learn_shallow(world: Corridor, depth: int, episodes: int, seed: int = 0) -> tuple[float, int]:
    """SQIRL with tables: for each time of an episode, random play behind what was fixed, then ``depth`` steps of iteration.

    At time ``i``, ``episodes`` episodes follow the fixed policy for ``i`` steps and then act at random; ``Q^1`` is the mean of
    what came, ``Q^{j+1} = r + max Q^j``, and the greedy action of ``Q^depth`` at time ``i`` is fixed. Source: Laidlaw et al.
    2024, with means over visits in place of networks.

    Returns:
        The return of the policy, and the steps of the world that it took.

    Raises:
        ConfigError: a depth or number of episodes below 1.

    >>> learn_shallow(Corridor(), 1, 200)[0]
    1.0
    """
    if min(depth, episodes) < 1:
        raise ConfigError(f"learn_shallow(depth={depth}, episodes={episodes}): use whole numbers from 1 up")
    follows, reward = world.table()
    fixed: list[Array] = []
    horizon, steps = world.horizon, 0
    for i in range(horizon):
        rng = generator("control/shallow", seed, index=i)
        drawn = rng.integers(0, 2, (horizon, episodes))
        place = np.zeros((horizon + 1, episodes), np.int64)
        gained, actions = np.zeros((horizon, episodes)), np.zeros((horizon, episodes), np.int64)
        for h in range(horizon):
            actions[h] = fixed[h][place[h]] if h < i else drawn[h]
            gained[h], place[h + 1] = reward[place[h], actions[h]], follows[place[h], actions[h]]
            steps += int((place[h] < world.cells).sum())
        ahead = gained[::-1].cumsum(0)[::-1]
        tables = {h: _means(place[h], actions[h], ahead[h], len(reward)) for h in range(i, horizon)}
        for _ in range(depth - 1):
            later = {h: tables[h].max(1) if h in tables else np.zeros(len(reward)) for h in range(i, horizon + 1)}
            tables = {
                h: _means(place[h], actions[h], gained[h] + later[h + 1][place[h + 1]], len(reward)) for h in range(i, horizon)
            }
        fixed.append(tables[i].argmax(1))
    total, at = 0.0, 0
    for table in fixed:
        total += float(reward[at, table[at]])
        at = int(follows[at, table[at]])
    return total, steps


def _means(place: Array, action: Array, value: Array, states: int) -> Array:
    """``[S, 2]`` means over visits; 0 where there was none."""
    total, count = np.zeros((states, 2)), np.zeros((states, 2))
    np.add.at(total, (place, action), value)
    np.add.at(count, (place, action), 1)
    return total / np.maximum(count, 1)
