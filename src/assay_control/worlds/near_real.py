"""Worlds with what near-real data have: an action that acts late behind a pipe, and prices that nobody moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.core import ConfigError
from assay_control.records import Array, Box
from assay_control.worlds.base import Copies, Move, RunningWorld, Seeds, seed_column, state_uniforms
from assay_control.worlds.pictures import traces

__all__ = ["DelayLine", "Portfolio", "portfolio_step", "sharpe_ratio"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayLine:
    """Hold a flow at a demand that jumps by itself; what is done at the valve arrives ``lag`` steps later.

    The inflow changes by up to ``change`` a step, ``q' = q + change a``; at the outlet is what was let in ``lag`` steps ago.
    Reward ``-|outflow - demand|``. The demand, which is exogenous, jumps with probability ``jump`` among four levels.
    Observation: outflow, demand, inflow, and with ``history`` the last ``lag`` inflows, which say what
    is on its way. After the Pipeline of NeoRL-2 (Gao et al. 2025), which has a lag of 20 steps and
    jumps at .003.

    Attributes:
        lag: steps.
        history: whether the observation has what is in the pipe.
        jump: probability of a jump at each step.
        change: greatest of the inflow in a step.
        horizon: steps of an episode.

    Raises:
        ConfigError: a lag or horizon below 1, or no probability.
    """

    lag: int = 8
    history: bool = True
    jump: float = 0.03
    change: float = 0.2
    horizon: int = 120

    def __post_init__(self) -> None:
        if min(self.lag, self.horizon) < 1 or not 0 <= self.jump <= 1 or self.change <= 0:
            raise ConfigError(
                f"DelayLine(lag={self.lag}, horizon={self.horizon}, jump={self.jump}, change={self.change}): use whole numbers "
                "from 1 up, a probability, and a positive change"
            )

    @property
    def observation_size(self) -> int:
        """3, and ``lag`` with history."""
        return 3 + self.lag * self.history

    @property
    def actions(self) -> Box:
        """A change of the inflow."""
        return Box(1)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def _level(self, u: Array) -> Array:
        return np.array([-0.6, -0.2, 0.4, 1.0])[(u * 4).astype(np.int64)]

    def start(self, seeds: Array) -> Array:
        """``[n, lag + 4]``: what is in the pipe, the inflow, the demand, a seed and a counter."""
        seed = seed_column(seeds)
        zero = np.zeros(len(seed))
        u = state_uniforms(seed, zero, 2)
        return np.column_stack([np.zeros((len(seed), self.lag)), zero, self._level(u[:, 1]), seed, zero])

    def observe(self, state: Array) -> Array:
        """Outflow, demand, inflow, and what is in the pipe."""
        n = self.lag
        seen = [state[:, 0], state[:, n + 1], state[:, n]]
        return np.column_stack([*seen, state[:, :n]] if self.history else seen)

    def move(self, state: Array, action: Array) -> Move:
        """The pipe moves on by a step."""
        n = self.lag
        inflow = np.clip(state[:, n] + self.change * np.clip(action[:, 0], -1, 1), -1.5, 1.5)
        pipe = np.column_stack([state[:, 1:n], inflow])
        reward = -np.abs(pipe[:, 0] - state[:, n + 1])
        counter = state[:, n + 3] + 1
        u = state_uniforms(state[:, n + 2], counter, 2)
        demand = np.where(u[:, 0] < self.jump, self._level(u[:, 1]), state[:, n + 1])
        after = np.column_stack([pipe, inflow, demand, state[:, n + 2], counter])
        return Move(state=after, reward=reward, terminated=np.zeros(len(after), bool))

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]``: outflow and demand."""
        return traces(observations[:, 0:2])

    def control(self, observation: Array) -> Array:
        """``[n, 1]`` sets the inflow to the demand as fast as the valve can: what a controller that knows the pipe does."""
        return np.clip((observation[:, 1] - observation[:, 2]) / self.change, -1, 1)[:, None]


def portfolio_step(weights: Array, growth: Array, wanted: Array, fee: float) -> tuple[Array, Array, Array]:
    """What a day does to a portfolio, and what trading back to other weights costs.

    ``w' = w ∘ y / (w · y)``; the turnover is ``|wanted - w'|₁`` and the cost ``fee`` times it.

    Args:
        weights: ``[n, N]`` before the day.
        growth: ``[n, N]`` prices after over before.
        wanted: ``[n, N]`` to be held after it.
        fee: per unit that is traded.

    Returns:
        Drifted weights ``[n, N]``, turnover ``[n]``, cost ``[n]``.

    >>> d, t, c = portfolio_step(np.array([[0.5, 0.3, 0.2]]), np.array([[1.02, 0.99, 1.0]]), np.array([[0.4, 0.4, 0.2]]), 1e-3)
    >>> d.round(5).tolist(), t.round(5).tolist(), c.round(6).tolist()
    ([[0.50645, 0.29494, 0.19861]], [0.21291], [0.000213])
    """
    drifted = weights * growth / (weights * growth).sum(1, keepdims=True)
    turnover = np.abs(wanted - drifted).sum(1)
    return drifted, turnover, fee * turnover


def sharpe_ratio(returns: Array) -> float:
    """``mean / deviation`` of returns (of a sample), 0 where they do not vary.

    >>> round(sharpe_ratio(np.array([0.01, -0.005, 0.008, 0.002])), 4)
    0.5554
    """
    spread = float(np.std(returns, ddof=1))
    return float(np.mean(returns)) / spread if spread > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    """Hold ``assets`` and cash; prices have momentum of a known strength, or none.

    Daily returns ``r_t = momentum m_t + noise``, ``m_t = .9 m_{t-1} + .1 r_{t-1}``, scaled so that the deviation of noise is 1
    %. An action gives weights by a softmax. Reward: the log of the day's growth less the cost of trading, in per cent.
    Observation: the averages ``m`` in deviations, and the weights held. With ``momentum`` 0 nothing can be gained on average,
    so a method that gains
    there has learned the past by heart: the null test. A made market in place of one of stocks (2024), with its costs.

    Attributes:
        assets: beside cash.
        momentum: strength; 0 for returns that are independent.
        fee: of trading, per unit of turnover.
        horizon: days of an episode.

    Raises:
        ConfigError: no asset, or a negative number.
    """

    assets: int = 4
    momentum: float = 1.0
    fee: float = 1e-3
    horizon: int = 60

    def __post_init__(self) -> None:
        if min(self.assets, self.horizon) < 1 or min(self.momentum, self.fee) < 0:
            raise ConfigError(
                f"Portfolio(assets={self.assets}, horizon={self.horizon}, momentum={self.momentum}, fee={self.fee}): use whole "
                "numbers from 1 up, and no negative number"
            )

    @property
    def observation_size(self) -> int:
        """Averages of assets, and weights of assets and cash."""
        return 2 * self.assets + 1

    @property
    def actions(self) -> Box:
        """A preference for each asset and cash."""
        return Box(self.assets + 1)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """Averages as after a while, equal weights, a seed and a counter."""
        seed = seed_column(seeds)
        zero = np.zeros(len(seed))
        average = 0.23 * self._normal(seed, zero)
        weights = np.full((len(seed), self.assets + 1), 1 / (self.assets + 1))
        return np.column_stack([average, weights, seed, zero])

    def _normal(self, seed: Array, counter: Array) -> Array:
        u = state_uniforms(seed, counter, 2 * self.assets)
        radius = np.sqrt(-2 * np.log(1 - u[:, : self.assets]))
        return radius * np.cos(2 * np.pi * u[:, self.assets :])

    def observe(self, state: Array) -> Array:
        """Averages fourfold, and weights."""
        n = self.assets
        return np.column_stack([4 * state[:, :n], state[:, n : 2 * n + 1]])

    def weights(self, action: Array) -> Array:
        """``[n, assets + 1]`` of actions: a softmax of fourfold preferences."""
        e = np.exp(4 * np.clip(action, -1, 1))
        return e / e.sum(1, keepdims=True)

    def move(self, state: Array, action: Array) -> Move:
        """Trades in the morning, then a day of prices."""
        n = self.assets
        average, held, seed, counter = state[:, :n], state[:, n : 2 * n + 1], state[:, -2], state[:, -1] + 1
        wanted = self.weights(action)
        cost = self.fee * np.abs(wanted - held).sum(1)
        day = self.momentum * average + self._normal(seed, counter)
        growth = np.column_stack([np.exp(0.01 * day), np.ones(len(day))])
        drifted, _, _ = portfolio_step(wanted, growth, wanted, self.fee)
        gain: Any = np.log((wanted * growth).sum(1) * (1 - cost))
        after = np.column_stack([0.9 * average + 0.1 * day, drifted, seed, counter])
        return Move(state=after, reward=100 * gain, terminated=np.zeros(len(after), bool))

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]``: weights of assets and cash."""
        return traces(observations[:, self.assets :])

    def control(self, observation: Array) -> Array:
        """``[n, assets + 1]`` the momentum rule: prefers assets by their averages, which is right where there is momentum."""
        average = observation[:, : self.assets]
        return np.clip(np.column_stack([average, np.zeros(len(average))]), -1, 1)
