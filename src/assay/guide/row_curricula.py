"""Curricula over single rows: by their history (LIMR, 1-shot RLVR), or under a bell that moves (GAIN-RL)."""

from __future__ import annotations

from dataclasses import dataclass
from math import tanh
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.core.fields import later
from assay.guide.row_book import RowBook, RowRule, check_pool

__all__ = ["Bell", "HistoryRows", "impact_scores", "spread_scores"]

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
        check_pool(self)
        if self.epochs < 2 or self.keep < 1 or self.score not in ("spread", "impact"):
            raise ConfigError(
                f"HistoryRows.epochs={self.epochs} must be at least 2, .keep={self.keep} at least 1, .score={self.score!r} "
                "'spread' or 'impact'"
            )

    def weights(self, book: RowBook) -> F:
        """``[rows]`` 1 for rows that were met least, until all were met ``epochs`` times; then 1 for the chosen ones."""
        counts = book.met if book.phase == 0 else np.where(book.active, 0, 1)
        return (counts == counts.min()).astype(np.float64)

    def advance(self, book: RowBook) -> None:
        """Chooses when every row was met often enough, once."""
        if book.phase == 0 and book.met.min() >= self.epochs:
            history = np.array([h[: self.epochs] for h in book.history])
            scores = np.nan_to_num(spread_scores(history) if self.score == "spread" else impact_scores(history), nan=-np.inf)
            book.begin_phase(np.argsort(-scores, kind="stable")[: self.keep])


@dataclass(frozen=True, slots=True, kw_only=True)
class Bell(RowRule):
    """GAIN-RL's bell: rows in a fixed order are drawn by a normal curve whose centre moves on as they are learned.

    A row of rank ``i`` weighs ``exp(-(i - mu)^2 / (2 sigma^2))``, with ``mu`` 0 at first; after a batch of accuracy ``a`` it
    grows by ``stride tanh(alpha (a - target)) + stride tanh(alpha c)``, never falls, and grows by at most ``most``. With
    ``angle``, ``c`` is the mean of that score over the batch's rows, else 0.

    Source: GAIN-RL (arXiv 2506.02281). Its order is by the angles of the model's hidden states within a prompt: with
    ``order="angle_rank", angle="angle"``, on rows that ``assay curate --angles`` has measured. UNSURE: whether its ``c`` is of
    the present policy; here it is of the model that was measured.

    Attributes:
        pool: rows of each (arm, level), the first of its stream.
        sigma: width of the bell, in rows.
        stride: most that one batch moves the centre by accuracy, in rows.
        alpha: how sharply the centre follows accuracy.
        target: accuracy at which the centre rests.
        most: bound of one move.
        order: score that the rows are ordered by, lowest first, as ``angle_rank`` of ``assay curate --angles``; empty for level,
            then arm and index.
        angle: score whose mean over a batch moves the centre too, as ``angle`` of ``assay curate --angles``; empty for none.

    Raises:
        ConfigError: a number out of range.

    >>> round(Bell(stride=500).step(1.0), 2), round(Bell(stride=500).step(0.5, 0.1), 2), Bell(stride=500).step(0.0, 0.1)
    (380.8, 98.69, 0.0)
    """

    pool: int = 64
    sigma: float = 32.0
    stride: float = 16.0
    alpha: float = 2.0
    target: float = 0.5
    most: float = 1000.0
    order: str = later("")
    angle: str = later("")

    def __post_init__(self) -> None:
        check_pool(self)
        for name in ("sigma", "stride", "alpha", "most"):
            if not 0.0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"Bell.{name}={getattr(self, name)}; use a number > 0")
        if not 0.0 <= self.target < 1.0:
            raise ConfigError(f"Bell.target={self.target}; use an accuracy in [0, 1)")

    def order_score(self) -> str:
        """The score."""
        return self.order

    def signal_score(self) -> str:
        """The angle's score."""
        return self.angle

    def step(self, accuracy: float, signal: float = 0.0) -> float:
        """How far the centre moves after a batch, in rows."""
        moved = tanh(self.alpha * (accuracy - self.target)) + tanh(self.alpha * signal)
        return min(max(self.stride * moved, 0.0), self.most)

    def weights(self, book: RowBook) -> F:
        """``[rows]`` the bell over ranks: easiest level first."""
        centre = min(book.centre, float(len(book.rank) - 1))
        power = -0.5 * ((book.rank - centre) / self.sigma) ** 2
        if power.max() < -700.0:  # the bell lies between two ranks and is so narrow that all would be 0
            power -= power.max()
        return np.exp(power)
