"""Curricula over rows in phases: the hardest (DRIVE), hard ones of earlier phases (QwenLong-L1), rounds that choose anew
(Vision-G1), one pair of a hard and a brittle row (W-GRPO).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.core.fields import later
from assay.guide.row_book import F, RowBook, RowRule, check_pool

B = NDArray[np.bool_]

__all__ = ["HardFocus", "PromptPair", "Retrospective", "Rounds", "least_met"]


def least_met(book: RowBook) -> F:
    """``[rows]`` 1 for the rows of the phase that were met least in it, so that all are met before any is met again."""
    counts = np.where(book.active, book.visits, np.iinfo(np.int64).max)
    return (counts == counts.min()).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class HardFocus(RowRule):
    """DRIVE: first all rows evenly, then in each phase only the hardest of those before, by success in the phase that ends.

    Selection is by rank, not by a bound: phase ``k`` has the ``sizes[k]`` rows of lowest success, so the sets are nested, and
    success is estimated anew in each. Rows that were not met, or never graded, in a phase leave with it; of equal ones the first
    of the pool stay.

    Source: DRIVE (arXiv 2511.06307): 9,000 problems evenly, then the hardest 72, 50 and 25 for 64, 32 and 32 batches. UNSURE:
    whether rows that were never solved may stay.

    Attributes:
        pool: rows of each (arm, level), the first of its stream.
        warm: batches on all rows; every row must have been met besides.
        sizes: of the sets, descending.
        batches: of each set; the last is kept to the end of the stage.
        unsolved: rows that were never solved may stay.

    Raises:
        ConfigError: a number out of range, sizes that do not descend, or another number of ``batches``.
    """

    pool: int = 64
    warm: int = 32
    sizes: tuple[int, ...] = (72, 50, 25)
    batches: tuple[int, ...] = (64, 32, 32)
    unsolved: bool = True

    def __post_init__(self) -> None:
        check_pool(self)
        if not self.sizes or min(self.sizes) < 1 or list(self.sizes) != sorted(self.sizes, reverse=True):
            raise ConfigError(f"HardFocus.sizes={self.sizes}; use whole numbers from 1, the largest first")
        if len(self.batches) != len(self.sizes) or min(self.batches) < 1 or self.warm < 1:
            raise ConfigError(
                f"HardFocus.batches={self.batches}, .warm={self.warm}; give each of the {len(self.sizes)} sets 1 batch or more, "
                "and as many to the beginning"
            )

    def weights(self, book: RowBook) -> F:
        """``[rows]`` 1 for those of the phase that were met least."""
        return least_met(book)

    def advance(self, book: RowBook) -> None:
        """The next set, when this one has had its batches and each of its rows a group."""
        if book.phase == len(self.sizes):
            return
        due = (self.warm, *self.batches)[book.phase]
        if book.batches - book.since < due or book.visits[book.active].min() == 0:
            return
        rates = book.rates
        eligible = book.active & ~np.isnan(rates) & (self.unsolved | (rates > 0))
        if eligible.any():
            order = np.argsort(np.where(eligible, rates, np.inf), kind="stable")
            book.begin_phase(order[: min(self.sizes[book.phase], int(eligible.sum()))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrospective(RowRule):
    """QwenLong-L1: phases of longer and longer rows; the hard ones of earlier phases come along.

    Phase ``k`` has the rows whose level is above ``bounds[k - 1]`` and at most ``bounds[k]``, where a family's level is the
    length of its input, and of the phases before the ``carry`` rows of highest difficulty, 1 over the mean success in their own
    phase: rows that were never solved come first, and one that always was is never carried. A carried row stays carried.

    Source: QwenLong-L1 (arXiv 2505.17667), with bounds 20,000 and 60,000 tokens. There the difficulty is that for the base
    model; here that of the policy in the phase that ends.

    Attributes:
        pool: rows of each (arm, level), the first of its stream.
        bounds: highest level of each phase, ascending; empty for each level a phase of its own.
        batches: of a phase; the last one is kept to the end of the stage.
        carry: rows of earlier phases, at most.

    Raises:
        ConfigError: a number out of range, or bounds that do not ascend.
    """

    pool: int = 64
    bounds: tuple[int, ...] = ()
    batches: int = 100
    carry: int = 32

    def __post_init__(self) -> None:
        check_pool(self)
        if self.batches < 1 or self.carry < 0 or list(self.bounds) != sorted(set(self.bounds)):
            raise ConfigError(
                f"Retrospective.batches={self.batches} must be at least 1, .carry={self.carry} at least 0, and "
                f".bounds={self.bounds} ascend"
            )

    def phase_of(self, book: RowBook) -> np.ndarray:
        """``[rows]`` number of the phase that each row belongs to, from 0; rows beyond the last bound belong to none."""
        return np.searchsorted(np.array(self.bounds or book.levels), book.level, side="left")

    def weights(self, book: RowBook) -> F:
        """``[rows]`` 1 for the phase's rows and those carried along, the ones that were met least in it."""
        if book.phase == 0:  # not begun: the rows of the first phase
            return _least(book, self.phase_of(book) == 0)
        return least_met(book)

    def advance(self, book: RowBook) -> None:
        """The next phase, when this one had its batches and there is another."""
        now = book.phase
        if book.batches - book.since < self.batches or now + 1 >= len(self.bounds or book.levels):
            return
        own = self.phase_of(book)
        rates = book.rates
        hard = np.flatnonzero(~np.isnan(rates) & (rates < 1.0))
        carried = hard[np.argsort(rates[hard], kind="stable")][: self.carry]
        book.begin_phase(np.concatenate([np.flatnonzero(own == now + 1), carried]))


def _least(book: RowBook, rows: np.ndarray) -> F:
    counts = np.where(rows, book.visits, np.iinfo(np.int64).max)
    return ((counts == counts.min()) & rows).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds(RowRule):
    """Vision-G1: in each round the present policy tries all rows, then practises those that it solves sometimes.

    A round begins with one group of every row; behind it rows of success within ``[low, high]`` are drawn for ``batches``
    batches, arms equally often. Then the next round begins, with all rows again. Where no row is in the band, the rows nearest to
    it are.

    Source: Vision-G1 (arXiv 2508.12680), whose rounds also select by influence on a validation set: that is a step of curation,
    ``assay curate --influence``. UNSURE: its shares and its number of rounds.

    Attributes:
        pool: rows of each (arm, level), the first of its stream.
        batches: of practice in a round.
        low, high: bounds of success, both kept.

    Raises:
        ConfigError: a number out of range.
    """

    pool: int = 64
    batches: int = 100
    low: float = 0.2
    high: float = 0.8

    def __post_init__(self) -> None:
        check_pool(self)
        if self.batches < 1 or not 0.0 <= self.low <= self.high <= 1.0:
            raise ConfigError(
                f"Rounds.batches={self.batches} must be 1 or more, and 0 <= low={self.low} <= high={self.high} <= 1"
            )

    def weights(self, book: RowBook) -> F:
        """``[rows]`` all that were not met yet in the round; then those chosen, each arm's in equal parts."""
        if book.phase % 2 == 0:
            return least_met(book)
        arms = np.array([arm for arm, _ in book.cells])[book.cell]
        weights = book.active.astype(np.float64)
        for arm in np.unique(arms[book.active]):
            weights[arms == arm] /= weights[arms == arm].sum()
        return weights

    def advance(self, book: RowBook) -> None:
        """From trying to practice when every row was met, and back after the practice."""
        if book.phase % 2:
            if book.batches - book.since >= self.batches:
                book.begin_phase(np.ones(len(book.rows), np.bool_))
        elif book.visits.min() > 0 and not np.isnan(book.rates).all():
            far = np.nan_to_num(np.maximum(self.low - book.rates, book.rates - self.high), nan=np.inf)
            book.begin_phase(np.maximum(far, 0.0) <= max(float(far.min()), 0.0) + 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPair(RowRule):
    """W-GRPO's prompts: one that is hard but solvable, and one that is easy but brittle, over and over.

    Every row is tried until it has ``probes`` groups. Then the pair is chosen, once: the row of lowest success above 0, and the
    row of highest success below 1, at least ``1 - most_wrong``, if there is one, else the highest below 1. Each is sought in a
    pool of its own where ``hard_levels`` or ``easy_levels`` name one, and rows of neither pool are not tried. Where a pool has no
    row that was solved sometimes, all are tried again.

    Source: Beyond Variance (arXiv 2602.03452), from its abstract and a second source. With the objective ``w_grpo`` rare
    successes on the one and rare failures on the other get large advantages. UNSURE: how many rollouts probe a row.

    Attributes:
        pool: rows of each (arm, level), the first of its stream.
        probes: groups of each row before the choice.
        most_wrong: share of wrong rollouts up to which a row is easy, in (0, 1].
        hard_levels, easy_levels: levels of the pool of hard and of that of easy rows, where each is sought; all when empty.

    Raises:
        ConfigError: a number out of range.

    >>> book = PromptPair(pool=1, hard_levels=(9,), easy_levels=(3,)).build({"sort": (3, 6, 9)}, seed=0)
    >>> sorted(draw.level for draw in book.draw(2))
    [3, 9]
    """

    pool: int = 64
    probes: int = 2
    most_wrong: float = 0.25
    hard_levels: tuple[int, ...] = later(())
    easy_levels: tuple[int, ...] = later(())

    def __post_init__(self) -> None:
        check_pool(self)
        if self.probes < 1 or not 0.0 < self.most_wrong <= 1.0:
            raise ConfigError(f"PromptPair.probes={self.probes} must be at least 1 and .most_wrong={self.most_wrong} in (0, 1]")

    def pools(self, book: RowBook) -> tuple[B, B]:
        """``[rows]`` which are in the pool of hard rows, and which in that of easy ones.

        Raises:
            ConfigError: a pool without rows.
        """
        found = [np.isin(book.level, levels or book.levels) for levels in (self.hard_levels, self.easy_levels)]
        if not all(rows.any() for rows in found):
            raise ConfigError(
                f"PromptPair.hard_levels={self.hard_levels} and .easy_levels={self.easy_levels}: each must name a level that is "
                f"practised, of {list(book.levels)}, or none"
            )
        return found[0], found[1]

    def weights(self, book: RowBook) -> F:
        """``[rows]`` those of the pools that were met least, while rows are tried; then 1 for each of the pair."""
        hard, easy = self.pools(book)
        return book.active.astype(np.float64) if book.phase else _least(book, hard | easy)

    def advance(self, book: RowBook) -> None:
        """Chooses the pair when every row of the pools has had its groups and some were solved sometimes."""
        hard, easy = self.pools(book)
        if book.phase or book.visits[hard | easy].min() < self.probes:
            return
        rates = book.rates
        mixed = (rates > 0.0) & (rates < 1.0)
        solvable, brittle = np.flatnonzero(mixed & hard), np.flatnonzero(mixed & easy)
        if not len(solvable) or not len(brittle):
            return
        near = brittle[rates[brittle] >= 1.0 - self.most_wrong]
        brittle = near if len(near) else brittle
        book.begin_phase(np.unique([solvable[np.argmin(rates[solvable])], brittle[np.argmax(rates[brittle])]]))
