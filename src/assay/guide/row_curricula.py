"""Curricula over single rows: by their history (LIMR, 1-shot RLVR), or under a bell that moves (GAIN-RL)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, tanh
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Draw, Outcome
from assay.core.protocols import State
from assay.core.seeds import derive, uniforms
from assay.guide.cell_curricula import cells_of

__all__ = ["Bell", "HistoryRows", "Row", "RowBook", "RowRule", "impact_scores", "spread_scores"]

Row = tuple[str, int, int]
"""Arm, level and index of a task."""

F = NDArray[np.float64]


def impact_scores(history: F) -> F:
    """LIMR's alignment of each row's rewards with the average curve of learning.

    With the mean reward ``r_i^k`` of row ``i`` in epoch ``k`` and the average curve ``m^k`` over rows, the score is
    ``1 - sum_k (r_i^k - m^k)^2 / sum_k (1 - m^k)^2``. Source: LIMR (arXiv 2502.11886), which keeps scores above 0.6.

    Args:
        history: ``[rows, epochs]``; a row's gap (NaN) takes its next epoch's value, and a row with a gap at the end scores NaN.

    Returns:
        ``[rows]`` at most 1; a row like the average scores 1, one that is always right 0.

    >>> impact_scores(np.array([[0.0, 0.5, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])).round(4).tolist()
    [0.7241, 0.0, 0.0]
    """
    whole = history.copy()
    for k in range(whole.shape[1] - 2, -1, -1):
        whole[:, k] = np.where(np.isnan(whole[:, k]), whole[:, k + 1], whole[:, k])
    known = ~np.isnan(whole).any(axis=1)
    scores = np.full(len(whole), np.nan)
    if known.any():
        mean = whole[known].mean(axis=0)
        scale = ((1.0 - mean) ** 2).sum()
        scores[known] = 1.0 - ((whole[known] - mean) ** 2).sum(axis=1) / scale if scale else 0.0
    return scores


def spread_scores(history: F) -> F:
    """The standard deviation of each row's rewards over its epochs, gaps left out. Source: 1-shot RLVR (arXiv 2504.20571).

    >>> spread_scores(np.array([[0.0, 1.0, 0.0, 1.0], [0.4, 0.6, 0.4, 0.6], [1.0, 1.0, 1.0, 1.0]])).round(2).tolist()
    [0.5, 0.1, 0.0]
    """
    counts = (~np.isnan(history)).sum(axis=1)
    return np.where(counts > 0, np.sqrt(_mean_of((history - _mean_of(history)[:, None]) ** 2)), np.nan)


def _mean_of(values: F) -> F:
    counts = np.maximum(1, (~np.isnan(values)).sum(axis=1))
    return np.nansum(values, axis=1) / counts


class RowRule(ABC):
    """Base of curricula over rows, for frozen dataclasses with a ``pool``: override `weights`."""

    __slots__ = ()

    pool: int

    @abstractmethod
    def weights(self, book: RowBook) -> F:
        """``[rows]`` unnormalised weights: finite, at least 0, not all 0."""

    def step(self, accuracy: float) -> float:
        """By how much `RowBook.centre` grows after a batch of this mean success."""
        return 0.0

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> RowBook:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return RowBook(self, arms, seed)


class RowBook:
    """The state of a curriculum over rows; implements `assay.core.protocols.Curriculum`.

    The rows are the first ``pool`` tasks of each cell. Within one `draw` no row comes twice before all that have weight came
    once: the propensity is the probability given what the same `draw` took before.

    Args:
        rule: weighs rows.
        arms: each arm with its levels.
        seed: the run's seed.

    Attributes:
        rows: arm, level, index of each.
        history: per row the mean success of its groups, oldest first; NaN where a group had no valid rollout.
        centre: a number that the rule moves (`RowRule.step`).

    Raises:
        ConfigError: no arm, an arm without levels, or a level that an arm has twice.
    """

    def __init__(self, rule: RowRule, arms: Mapping[str, tuple[int, ...]], seed: int) -> None:
        cells = cells_of(arms)
        self.rows: list[Row] = [(arm, level, i) for arm, level in cells for i in range(rule.pool)]
        self.rule, self.seed = rule, seed
        self.history: list[list[float]] = [[] for _ in self.rows]
        self.centre = 0.0
        self._at = {row: i for i, row in enumerate(self.rows)}
        self._turn = 0

    def propensities(self) -> F:
        """``[rows]`` probability of each row at the first draw of a step.

        Raises:
            ConfigError: the rule gave other than one finite weight per row, at least 0 and not all 0.
        """
        weights = self.rule.weights(self)
        if weights.shape != (len(self.rows),) or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
            raise ConfigError(
                f"{type(self.rule).__name__}.weights must give each of the {len(self.rows)} rows a finite weight, at least 0, "
                f"and one of them more; it gave {weights.tolist()[:8]}..."
            )
        return weights / weights.sum()

    def draw(self, n: int) -> list[Draw]:
        """``n`` rows, without repeats as long as there are others.

        Raises:
            ConfigError: ``n`` is not positive.
        """
        if n < 1:
            raise ConfigError(f"a curriculum draws at least one task, got n={n}")
        p = self.propensities()
        u = uniforms(np.array([derive("curriculum/rows", self.seed, "", self._turn)], np.uint64), 0, n)[0]
        self._turn += 1
        out: list[Draw] = []
        left = p.copy()
        for x in u:
            if not left.any():
                left = p.copy()
            total = float(left.sum())
            i = min(int(np.searchsorted(np.cumsum(left), float(x) * total, side="right")), int(np.flatnonzero(left)[-1]))
            arm, level, index = self.rows[i]
            out.append(Draw(arm, level, float(left[i] / total), index))
            left[i] = 0.0
        return out

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Adds each group's mean success to its row's history; groups of other rows say nothing."""
        seen = [(row, o.group.success) for o in outcomes if (row := self._at.get(o.group.row)) is not None]
        valid = sorted(success for _, success in seen if success is not None)
        # Groups without a verdict last: NaN has no place in an order, and the order of the groups must not matter.
        for row, success in sorted(seen, key=lambda one: (one[0], one[1] is None, one[1] or 0.0)):
            self.history[row].append(float("nan") if success is None else success)
        if valid:
            self.centre += self.rule.step(sum(valid) / len(valid))

    def metrics(self) -> Mapping[str, float]:
        """``curriculum/rows`` that have weight, ``curriculum/rows_seen``, ``curriculum/groups``, ``curriculum/share/...``."""
        p = self.propensities()
        out = {
            "curriculum/groups": float(sum(map(len, self.history))),
            "curriculum/rows": float((p > 0).sum()),
            "curriculum/rows_seen": float(sum(bool(h) for h in self.history)),
        }
        for (arm, level, _), share in zip(self.rows, p.tolist(), strict=True):
            name = f"curriculum/share/{arm}/level_{level}"
            out[name] = out.get(name, 0.0) + share
        return out

    def state_dict(self) -> State:
        """Counters, the bell's centre, and the history of each row that has one."""
        known = [
            [*row, [None if isnan(x) else x for x in history]]
            for row, history in zip(self.rows, self.history, strict=True)
            if history
        ]
        return {"turn": self._turn, "centre": self.centre, "rows": known}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken.

        Raises:
            CheckpointError: the state is of rows that this run does not have.
        """
        self.history = [[] for _ in self.rows]
        for arm, level, index, history in state["rows"]:
            row = self._at.get((str(arm), int(level), int(index)))
            if row is None:
                raise CheckpointError(f"the curriculum's state has a row {(arm, level, index)}, which this run does not have")
            self.history[row] = [float("nan") if x is None else float(x) for x in history]
        self._turn, self.centre = int(state["turn"]), float(state["centre"])


def _check_pool(part: object, pool: int) -> None:
    if pool < 1:
        raise ConfigError(f"{type(part).__name__}.pool={pool}; use at least 1 row per arm and level")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRows(RowRule):
    """First every row of a pool, ``epochs`` times; then only the ``keep`` rows whose history scores highest.

    ``impact`` scores by LIMR's alignment with the average curve, ``spread`` by the standard deviation of a row's success, as
    1-shot RLVR ranks rows; ``keep=1`` repeats one row, each copy a group of its own. Both papers take the history from an
    earlier run of all rows; here the run makes it itself.

    Attributes:
        pool: rows of each (arm, level), the first of its stream.
        epochs: how often each row is met before the choice, at least 2.
        keep: rows practised behind it.
        score: ``spread`` or ``impact``.

    Raises:
        ConfigError: a number out of range, or another score.

    >>> book = HistoryRows(pool=2).build({"sort": (3,)}, seed=0)
    >>> sorted((draw.index, round(draw.propensity, 2)) for draw in book.draw(1) + book.draw(1))[0][1]
    0.5
    """

    pool: int = 64
    epochs: int = 4
    keep: int = 16
    score: Literal["spread", "impact"] = "spread"

    def __post_init__(self) -> None:
        _check_pool(self, self.pool)
        if self.epochs < 2 or self.keep < 1 or self.score not in ("spread", "impact"):
            raise ConfigError(
                f"HistoryRows.epochs={self.epochs} must be at least 2, .keep={self.keep} at least 1, .score={self.score!r} "
                "'spread' or 'impact'"
            )

    def weights(self, book: RowBook) -> F:
        """``[rows]`` 1 for rows that were met least, until all were met ``epochs`` times; then 1 for the chosen ones."""
        counts = np.array([len(h) for h in book.history])
        if counts.min() < self.epochs:
            return (counts == counts.min()).astype(np.float64)
        history = np.array([h[: self.epochs] for h in book.history])
        scores = np.nan_to_num(spread_scores(history) if self.score == "spread" else impact_scores(history), nan=-np.inf)
        chosen = np.argsort(-scores, kind="stable")[: self.keep]
        out = np.zeros(len(book.rows))
        out[chosen] = 1.0
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Bell(RowRule):
    """GAIN-RL's bell: rows in a fixed order are drawn by a normal curve whose centre moves on as they are learned.

    A row of rank ``i`` weighs ``exp(-(i - mu)^2 / (2 sigma^2))``, with ``mu`` 0 at first; after a batch of accuracy ``a`` it
    grows by ``step tanh(alpha (a - target))``, never falls, and grows by at most ``most``.

    Source: GAIN-RL (arXiv 2506.02281). Half of the paper: its order is by the angles of the model's hidden states within a
    prompt, which also move ``mu``; here the order is by level, then arm and index.

    Attributes:
        pool: rows of each (arm, level), the first of its stream.
        sigma: width of the bell, in rows.
        stride: most that one batch moves the centre by accuracy, in rows.
        alpha: how sharply the centre follows accuracy.
        target: accuracy at which the centre rests.
        most: bound of one move.

    Raises:
        ConfigError: a number out of range.

    >>> round(Bell(stride=500).step(1.0), 2), Bell().step(0.2)
    (380.8, 0.0)
    """

    pool: int = 64
    sigma: float = 32.0
    stride: float = 16.0
    alpha: float = 2.0
    target: float = 0.5
    most: float = 1000.0

    def __post_init__(self) -> None:
        _check_pool(self, self.pool)
        for name in ("sigma", "stride", "alpha", "most"):
            if not 0.0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"Bell.{name}={getattr(self, name)}; use a number > 0")
        if not 0.0 <= self.target < 1.0:
            raise ConfigError(f"Bell.target={self.target}; use an accuracy in [0, 1)")

    def step(self, accuracy: float) -> float:
        """How far the centre moves after a batch, in rows."""
        return min(max(self.stride * tanh(self.alpha * (accuracy - self.target)), 0.0), self.most)

    def weights(self, book: RowBook) -> F:
        """``[rows]`` the bell over ranks: easiest level first."""
        order = sorted(range(len(book.rows)), key=lambda i: (book.rows[i][1], book.rows[i][0], book.rows[i][2]))
        rank = np.empty(len(order))
        rank[order] = np.arange(len(order))
        centre = min(book.centre, float(len(order) - 1))
        power = -0.5 * ((rank - centre) / self.sigma) ** 2
        if power.max() < -700.0:  # the bell lies between two ranks and is so narrow that all would be 0
            power -= power.max()
        return np.exp(power)
