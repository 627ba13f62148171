"""Codes of low weight: take edges out of a check matrix without losing what the code can do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from assay.core import ConfigError, uniforms
from assay_control.records import Array, Choices
from assay_control.worlds.base import Copies, Move, RunningWorld, Seeds
from assay_control.worlds.pictures import traces

__all__ = ["CheckMatrix", "code_distance", "gf2_rank", "hypergraph_product"]


def gf2_rank(matrix: Array) -> int:
    """Rank over the field of two elements.

    >>> gf2_rank(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))
    2
    """
    bits: list[list[int]] = np.asarray(matrix, np.int64).tolist()
    rows: list[int] = [int("".join(map(str, row)), 2) for row in bits if any(row)]
    rank = 0
    while rows:
        pivot: int = max(rows)
        rank += pivot > 0
        top = pivot.bit_length() - 1
        rows = [r ^ pivot if top >= 0 and r >> top & 1 else r for r in rows if r != pivot]
        rows = [r for r in rows if r]
    return rank


def code_distance(matrix: Array) -> int:
    """Least number of ones in a word that all checks pass, other than 0; the length plus 1 where there is no such word.

    >>> code_distance(np.array([[1, 1, 0], [0, 1, 1]]))
    3
    """
    h = np.asarray(matrix, np.int64)
    return int(_distances(h[None])[0])


@cache
def _words(length: int) -> Array:
    """``[2^length - 1, length]`` all words but 0."""
    number = np.arange(1, 1 << length, dtype=np.int64)
    return (number[:, None] >> np.arange(length)) & 1


def _distances(matrices: Array) -> Array:
    """``[n]`` of ``[n, m, length]``."""
    words = _words(matrices.shape[2])
    passed = ((matrices @ words.T) % 2 == 0).all(1)
    weight: Array = words.sum(1)
    out: Array = np.where(passed, weight, matrices.shape[2] + 1)
    return out.min(1)


def _dimensions(matrices: Array) -> Array:
    """``[n]`` logarithm of how many words pass."""
    words = _words(matrices.shape[2])
    return np.log2(((matrices @ words.T) % 2 == 0).all(1).sum(1) + 1).round().astype(np.int64)


def hypergraph_product(matrix: Array) -> tuple[Array, Array]:
    """The two check matrices of the quantum code of a classical one: ``[H ⊗ 1 | 1 ⊗ Hᵀ]`` and ``[1 ⊗ H | Hᵀ ⊗ 1]``.

    ``H_X H_Zᵀ = 0``, so checks commute; the code has ``n² + m²`` qubits. Source: Tillich and Zemor 2009.

    >>> x, z = hypergraph_product(np.array([[1, 1, 0], [0, 1, 1]]))
    >>> x.shape, int((x @ z.T % 2).sum()), x.shape[1] - gf2_rank(x) - gf2_rank(z)
    ((6, 13), 0, 1)
    """
    h = np.asarray(matrix, np.int64)
    m, n = h.shape
    one, other = np.eye(n, dtype=np.int64), np.eye(m, dtype=np.int64)
    return np.hstack([np.kron(h, one), np.kron(other, h.T)]), np.hstack([np.kron(one, h), np.kron(h.T, other)])


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckMatrix:
    """Toggle entries of a check matrix until its weights are low, without losing words or distance.

    A random matrix is drawn for each episode, with rows of many ones. A toggle that would lower the number of words or bring the
    distance below ``distance`` is not done. Reward ``(excess before - excess after) / size`` with ``excess = Σ max(row - limit,
    0) + Σ max(column - limit, 0)``, and 1 with the end of the episode where it is 0. After Olsen et al. 2025 (quantum codes of
    low weight by reinforcement learning), whose thresholds are not known; `hypergraph_product` makes the quantum code of what
    was found.

    Attributes:
        checks, length: of the matrix; the length at most 10, for distances are found by trying all words.
        limit: of the ones in a row or a column.
        distance: that must be kept.
        share: of ones at the start.
        horizon: toggles of an episode.

    Raises:
        ConfigError: a size out of range.
    """

    checks: int = 4
    length: int = 8
    limit: int = 3
    distance: int = 2
    share: float = 0.6
    horizon: int = 40

    def __post_init__(self) -> None:
        if not 1 <= self.checks < self.length <= 10 or min(self.limit, self.distance, self.horizon) < 1 or not 0 < self.share < 1:
            raise ConfigError(
                f"CheckMatrix(checks={self.checks}, length={self.length}, limit={self.limit}, distance={self.distance}, "
                f"share={self.share}): use fewer checks than the length, a length of at most 10, a share, and whole "
                "numbers from 1 up"
            )

    @property
    def observation_size(self) -> int:
        """Entries, rows' and columns' weights."""
        return self.checks * self.length + self.checks + self.length

    @property
    def actions(self) -> Choices:
        """An entry."""
        return Choices(self.checks * self.length)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """``[n, checks · length + 1]``: entries, and how many words there are at least, as a logarithm."""
        size = self.checks * self.length
        tries = [(uniforms(np.asarray(seeds, np.uint64), k * size, size) < self.share).astype(np.float64) for k in range(24)]
        chosen = tries[-1]
        chosen[:, :] = self._plain().reshape(-1)  # where no draw has the distance
        for tried in reversed(tries[:-1]):
            good = _distances(self._matrix(tried)) >= self.distance
            chosen = np.where(good[:, None], tried, chosen)
        return np.column_stack([chosen, _dimensions(self._matrix(chosen))])

    def _plain(self) -> Array:
        """A matrix of full rank whose words are pairs at least: each column in some check."""
        h = np.zeros((self.checks, self.length))
        h[np.arange(self.length) % self.checks, np.arange(self.length)] = 1
        return h

    def _matrix(self, state: Array) -> Array:
        return state[:, : self.checks * self.length].reshape(-1, self.checks, self.length).astype(np.int64)

    def excess(self, state: Array) -> Array:
        """``[n]`` ones above the limit, over rows and columns."""
        h = self._matrix(state)
        return np.maximum(h.sum(2) - self.limit, 0).sum(1) + np.maximum(h.sum(1) - self.limit, 0).sum(1)

    def observe(self, state: Array) -> Array:
        """Entries, and weights less the limit."""
        h = self._matrix(state)
        return np.column_stack([state[:, :-1], (h.sum(2) - self.limit) / 3, (h.sum(1) - self.limit) / 3])

    def move(self, state: Array, action: Array) -> Move:
        """One toggle, where the code stays as good."""
        tried = state.copy()
        at = np.arange(len(state))
        tried[at, action] = 1 - tried[at, action]
        h = self._matrix(tried)
        kept = (_distances(h) >= self.distance) & (_dimensions(h) >= state[:, -1])
        after = np.where(kept[:, None], tried, state)
        before, left = self.excess(state), self.excess(after)
        there = left == 0
        return Move(state=after, reward=(before - left) / (self.checks * self.limit) + there, terminated=there)

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]``: weights of the rows over the limit."""
        size = self.checks * self.length
        return traces(observations[:, size : size + self.checks])

    def control(self, observation: Array) -> Array:
        """``[n]`` greedy: the toggle that lowers the excess most among those that the code allows."""
        size = self.checks * self.length
        state = np.column_stack([observation[:, :size], _dimensions(self._matrix(observation))])
        gains = np.stack([self.move(state, np.full(len(state), a)).reward for a in range(size)], 1)
        return gains.argmax(1)
