"""What is remembered of each row, and draws of rows by weights that follow it.

A rule says what weight a row has, and when the run passes to another phase with other rows; `RowBook` does the rest. Costs of a
draw and of an observation grow with the rows only by a few passes over arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Draw, Outcome
from assay.core.optional_protocols import CountsRows
from assay.core.protocols import State, TaskSource
from assay.core.seeds import derive, uniforms
from assay.core.task import Task
from assay.core.util.renamed import refuse_renamed
from assay.guide.cell_curricula import cells_of

__all__ = ["Row", "RowBook", "RowRule", "check_pool"]

Row = tuple[str, int, int]
"""Arm, level and index of a task."""

F = NDArray[np.float64]


def check_pool(part: RowRule) -> None:
    """Raises ConfigError for a pool without rows."""
    if part.pool < 1:
        raise ConfigError(f"{type(part).__name__}.pool={part.pool}; use at least 1 row per arm and level")


class RowRule(ABC):
    """Base of curricula over rows, for frozen dataclasses with a ``pool``: override `weights`, and what else differs.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Unsolved(RowRule):
    ...     pool: int = 2
    ...     def weights(self, book):
    ...         return 1.0 - np.nan_to_num(book.rates, nan=0.0) + 0.1
    >>> [d.propensity for d in Unsolved().build({"sort": (3,)}, seed=0).draw(2)]
    [0.5, 1.0]
    """

    __slots__ = ()

    pool: int

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        refuse_renamed(cls, {"ordered_by": "order_score"})

    @abstractmethod
    def weights(self, book: RowBook) -> F:
        """``[rows]`` unnormalised weights: finite, at least 0, not all 0."""

    def order_score(self) -> str:
        """A score of the rows, as curation writes it, that their `RowBook.rank` follows; empty for level, arm and index."""
        return ""

    def signal_score(self) -> str:
        """A score of the rows, as curation writes it, whose mean over a batch's rows `step` is told; empty for none."""
        return ""

    def step(self, accuracy: float, signal: float = 0.0) -> float:
        """By how much `RowBook.centre` grows after a batch of this mean success, and of this mean of `signal_score`."""
        return 0.0

    def advance(self, book: RowBook) -> None:  # noqa: B027 -- most rules have one phase
        """Called after each batch: may begin another phase by `RowBook.begin_phase`."""

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> RowBook:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return RowBook(self, arms, seed)


class RowBook:
    """The state of a curriculum over rows; implements `assay.core.protocols.Curriculum`.

    The rows are the first ``pool`` tasks of each cell, fewer where a source has fewer rows. Within one `draw` no row comes twice
    before all that have weight came once: the propensity is the probability given what the same `draw` took before.

    Args:
        rule: weighs rows.
        arms: each arm with its levels.
        seed: the run's seed.

    Attributes:
        cells: arm and level of each cell.
        rows: arm, level, index of each.
        cell, level: ``[rows]`` number of each row's cell, and its level.
        levels: of the rows, ascending.
        rank: ``[rows]`` place of each row by level, then arm, then index.
        history: per row the mean success of its groups, oldest first; NaN where a group had no valid rollout.
        centre: a number that the rule moves (`RowRule.step`).
        batches: how often `observe` was called.
        phase, since: number of the phase, and ``batches`` when it began.
        active: ``[rows]`` of the phase, for the rule to read; all at first.
        visits: ``[rows]`` groups of each row in the phase, with a verdict or without.

    Raises:
        ConfigError: no arm, an arm without levels, or a level that an arm has twice.
    """

    def __init__(self, rule: RowRule, arms: Mapping[str, tuple[int, ...]], seed: int) -> None:
        self.rule, self.seed = rule, seed
        self.cells = cells_of(arms)
        self._turn = self.batches = self.phase = self.since = 0
        self.centre = 0.0
        self._take_rows([rule.pool] * len(self.cells))

    def _take_rows(self, sizes: Sequence[int]) -> None:
        pairs = list(zip(self.cells, sizes, strict=True))
        self.rows: list[Row] = [(arm, level, i) for (arm, level), size in pairs for i in range(size)]
        self.cell = np.repeat(np.arange(len(sizes)), sizes)
        self.level = np.repeat(np.array([level for _, level in self.cells], np.int64), sizes)
        self.levels: tuple[int, ...] = tuple(sorted({level for (_, level), size in pairs if size}))
        self._ends = np.cumsum(sizes)
        self.rank = np.empty(len(self.rows), np.int64)
        self.rank[np.lexsort((self.cell, self.level))] = np.arange(len(self.rows))
        n = len(self.rows)
        self.history: list[list[float]] = [[] for _ in range(n)]
        self.active = np.ones(n, np.bool_)
        self.visits, self._rated, self._right = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
        self._met = np.zeros(n, np.int64)
        self._at = {row: i for i, row in enumerate(self.rows)}
        self._weights: tuple[F, F] | None = None
        self._signals: F | None = None

    def read_tasks(self, tasks: TaskSource) -> None:
        """Leaves out places of the pool that the source has no row for, before anything was drawn.

        Raises:
            ConfigError: it has no training row in any of the cells, or one without a score that the rule reads.
        """
        if isinstance(tasks, CountsRows):
            sizes = [min(self.rule.pool, tasks.size(arm, level, "train")) for arm, level in self.cells]
            if not sum(sizes):
                raise ConfigError(f"{type(self.rule).__name__}: {tasks.name} has no training row in {self.cells[:8]}")
            self._take_rows(sizes)
        if name := self.rule.order_score():
            scores = [_score(tasks.task(arm, level, "train", index), name) for arm, level, index in self.rows]
            self.rank[np.argsort(scores, kind="stable")] = np.arange(len(scores))
        if name := self.rule.signal_score():
            self._signals = np.array([_score(tasks.task(arm, level, "train", index), name) for arm, level, index in self.rows])

    # ---- for rules

    @property
    def met(self) -> NDArray[np.int64]:
        """``[rows]`` groups of each row in all."""
        return self._met

    @property
    def rates(self) -> F:
        """``[rows]`` mean success of each row's groups in the phase; NaN without one that had a verdict."""
        return np.where(self._rated > 0, self._right / np.maximum(1, self._rated), np.nan)

    def begin_phase(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> None:
        """The next phase, with these rows; what was counted for the last one is forgotten."""
        self.phase, self.since = self.phase + 1, self.batches
        self.active = np.zeros(len(self.rows), np.bool_)
        self.active[rows] = True
        self.visits[:], self._rated[:], self._right[:] = 0, 0, 0.0

    # ---- as a curriculum

    def propensities(self) -> F:
        """``[rows]`` probability of each row at the first draw of a step.

        Raises:
            ConfigError: the rule gave other than one finite weight per row, at least 0 and not all 0.
        """
        return self._standing()[0]

    def _standing(self) -> tuple[F, F]:
        """Probabilities and their sums from the first row on; asked of the rule once between two observations."""
        if self._weights is None:
            weights = self.rule.weights(self)
            if weights.shape != (len(self.rows),) or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
                raise ConfigError(
                    f"{type(self.rule).__name__}.weights must give each of the {len(self.rows)} rows a finite weight, at least "
                    f"0, and one of them more; it gave {weights.tolist()[:8]}..."
                )
            p = weights / weights.sum()
            self._weights = p, np.cumsum(p)
        return self._weights

    def draw(self, n: int) -> list[Draw]:
        """``n`` rows, without repeats as long as there are others.

        Raises:
            ConfigError: ``n`` is not positive.
        """
        if n < 1:
            raise ConfigError(f"a curriculum draws at least one task, got n={n}")
        u = uniforms(np.array([derive("curriculum/rows", self.seed, "", self._turn)], np.uint64), 0, n)[0]
        self._turn += 1
        urn = _Urn(*self._standing())
        out: list[Draw] = []
        for x in u.tolist():
            i, chance = urn.take(x)
            arm, level, index = self.rows[i]
            out.append(Draw(arm, level, chance, index))
        return out

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Adds each group's mean success to its row's history; groups of other rows say nothing."""
        seen = [(row, o.group.success) for o in outcomes if (row := self._at.get(o.group.row)) is not None]
        valid = sorted(success for _, success in seen if success is not None)
        # Groups without a verdict last: NaN has no place in an order, and the order of the groups must not matter.
        for row, success in sorted(seen, key=lambda one: (one[0], one[1] is None, one[1] or 0.0)):
            self.history[row].append(float("nan") if success is None else success)
            self._met[row] += 1
            self.visits[row] += 1
            if success is not None:
                self._rated[row] += 1
                self._right[row] += success
        self.batches += 1
        if valid:
            accuracy = sum(valid) / len(valid)
            if self._signals is None:
                self.centre += self.rule.step(accuracy)
            else:
                told = sorted(float(self._signals[row]) for row, success in seen if success is not None)
                self.centre += self.rule.step(accuracy, sum(told) / len(told))
        self._weights = None
        self.rule.advance(self)

    def metrics(self) -> Mapping[str, float]:
        """``curriculum/rows`` that have weight, ``curriculum/rows_seen``, ``curriculum/groups``, ``curriculum/share/...``, and
        ``curriculum/phase`` where the rule has phases.
        """
        p = self.propensities()
        out = {
            "curriculum/groups": float(self._met.sum()),
            "curriculum/rows": float(np.count_nonzero(p)),
            "curriculum/rows_seen": float(np.count_nonzero(self._met)),
        }
        if type(self.rule).advance is not RowRule.advance:
            out["curriculum/phase"] = float(self.phase)
        # a cell's rows lie together, so its share is a difference of two sums that are there already
        sums = self._standing()[1]
        shares = [b - a for a, b in pairwise([0.0, *(float(sums[end - 1]) if end else 0.0 for end in self._ends.tolist())])]
        return out | {f"curriculum/share/{arm}/level_{level}": x for (arm, level), x in zip(self.cells, shares, strict=True)}

    def state_dict(self) -> State:
        """Counters, the bell's centre, the phase with its rows and counts, and the history of each row that has one."""
        known = [
            [*row, [None if isnan(x) else x for x in history]]
            for row, history in zip(self.rows, self.history, strict=True)
            if history
        ]
        counted = np.flatnonzero(self.visits)
        phase: dict[str, Any] = {
            "number": self.phase,
            "since": self.since,
            "active": None if self.active.all() else np.flatnonzero(self.active).tolist(),
            "rows": counted.tolist(),
            "visits": self.visits[counted].tolist(),
            "rated": self._rated[counted].tolist(),
            "right": self._right[counted].tolist(),
        }
        return {"turn": self._turn, "batches": self.batches, "centre": self.centre, "rows": known, "phase": phase}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken.

        Raises:
            CheckpointError: the state is of rows that this run does not have.
        """
        self.history = [[] for _ in self.rows]
        self._met[:] = 0
        for arm, level, index, history in state["rows"]:
            row = self._at.get((str(arm), int(level), int(index)))
            if row is None:
                raise CheckpointError(f"the curriculum's state has a row {(arm, level, index)}, which this run does not have")
            self.history[row] = [float("nan") if x is None else float(x) for x in history]
            self._met[row] = len(history)
        self._turn, self.centre, self._weights = int(state["turn"]), float(state["centre"]), None
        if "phase" not in state:  # of before rules had phases: what they have now follows from the histories
            self.rule.advance(self)
            return
        phase = state["phase"]
        self.batches, self.phase, self.since = int(state["batches"]), int(phase["number"]), int(phase["since"])
        chosen = phase["active"]
        self.active = np.ones(len(self.rows), np.bool_) if chosen is None else np.isin(np.arange(len(self.rows)), chosen)
        for counts, name in ((self.visits, "visits"), (self._rated, "rated"), (self._right, "right")):
            counts[:] = 0
            counts[np.array(phase["rows"], np.int64)] = phase[name]


def _score(task: Task, name: str) -> float:
    """A score that curation wrote to a row, or a field of its own."""
    row: Any = task.private.get("row", {})
    value: Any = row.get("curate", {}).get(name, row.get(name))
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise ConfigError(
            f"task {task.id!r} has no score {name!r}, by which rows are to be ordered or drawn, but {value!r}: curate the rows "
            "by a step that writes it ('assay curate --angles FILE' writes angle and angle_rank), or give another score"
        )
    return float(value)


class _Urn:
    """Draws without putting back, by probabilities ``p`` with sums ``edges``; filled again when it is empty."""

    def __init__(self, p: F, edges: F) -> None:
        self._full = p, edges
        self._fill(p, edges)

    def _fill(self, p: F, edges: F) -> None:
        self._p, self._edges, self._taken = p, edges, list[int]()
        self._total = self._left = float(edges[-1])
        self._many = int(np.count_nonzero(p))

    def take(self, x: float) -> tuple[int, float]:
        """A row, and the probability with which it was drawn of those that are left; ``x`` is uniform."""
        if len(self._taken) == self._many:
            self._fill(*self._full)
        elif self._left < 0.5 * self._total:  # before the difference of two sums loses its digits
            p = self._p.copy()
            p[self._taken] = 0.0
            self._fill(p, np.cumsum(p))
        at = x * self._left
        for taken in self._taken:  # ascending: what is gone is jumped over
            if self._edges[taken] - self._p[taken] > at:
                break
            at += float(self._p[taken])
        i = int(np.searchsorted(self._edges, at, side="right"))
        if i >= len(self._p) or self._p[i] == 0.0 or self._has(i):  # the sum's last bits
            i = int(np.setdiff1d(np.flatnonzero(self._p), self._taken)[-1])
        chance = min(1.0, float(self._p[i]) / self._left)
        if len(self._taken) + 1 == self._many:
            chance = 1.0
        insort(self._taken, i)
        self._left -= float(self._p[i])
        return i, chance

    def _has(self, i: int) -> bool:
        at = bisect_right(self._taken, i)
        return at > 0 and self._taken[at - 1] == i
