"""What is remembered of each cell (arm, level), and draws by weights that follow it.

A rule says what a graded group tells (its *signal*), how that is remembered, and what weight a cell has by it; `CellBook` does
the rest. Draws are counter based: draw ``k`` of turn ``t`` is a pure function of the seed, ``t``, ``k`` and what is remembered,
so a resumed run continues bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Draw, Outcome
from assay.core.protocols import State
from assay.core.seeds import derive, uniforms
from assay.core.util.renamed import RenamedMembers

__all__ = ["Cell", "CellBook", "CellRule", "Memory", "Standing", "cells_of"]

Cell = tuple[str, int]
"""Arm and level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(RenamedMembers):
    """How a cell remembers.

    After a batch whose groups of a cell gave ``k`` signals of mean ``m``, the cell's average ``v`` becomes
    ``decay^k v + (1 - decay^k) m``; with ``per_batch`` it becomes ``decay v + (1 - decay) m``, with ``total`` ``v + k m``.

    Attributes:
        decay: share of the old average kept, in [0, 1).
        prior: the average before the first signal; None takes the first batch's mean as it is.
        settle: groups until an average counts as known.
        per_batch: a batch moves an average once, however many groups it has of the cell.
        window: how many of a cell's last signals are kept one by one.
        total: signals are summed instead of averaged. The average of success is not affected.
        by_batch: what the window keeps one by one are the means of batches.

    Raises:
        ConfigError: a value out of range.

    >>> Memory(decay=0.5, prior=0.0).average(0.0, False, [1.0, 1.0])
    0.75
    >>> Memory(decay=0.5, per_batch=True).average(0.0, True, [1.0, 1.0])
    0.5
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"moved": "average"}

    decay: float = 0.9
    prior: float | None = 0.5
    settle: int = 1
    per_batch: bool = False
    window: int = 0
    total: bool = False
    by_batch: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.decay < 1.0:
            raise ConfigError(f"Memory.decay={self.decay} must be in [0, 1), or an average never moves")
        if self.settle < 1 or self.window < 0:
            raise ConfigError(f"Memory.settle={self.settle} must be at least 1 group and Memory.window={self.window} at least 0")

    def average(self, old: float, known: bool, values: Sequence[float]) -> float:
        """The average after a batch.

        Args:
            old: the average before.
            known: whether there was a signal before.
            values: the batch's signals, at least one.
        """
        # Sorted, so that the sum has the same bits in any order of the groups.
        mean = sum(sorted(values)) / len(values)
        if self.prior is None and not known:
            return mean
        kept = self.decay if self.per_batch else self.decay ** len(values)
        return kept * old + (1.0 - kept) * mean


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What is known of the cells when weights are asked for.

    Attributes:
        cells: (arm, level), arm by arm, levels ascending.
        success: ``[cells]`` moving average of success.
        best: ``[cells]`` the highest that ``success`` has been since the cell had as many groups as the rule's ``settle``; 0
            before.
        seen: ``[cells]`` groups with a valid rollout.
        value: ``[cells]`` moving average of the rule's signal.
        count: ``[cells]`` signals observed in all.
        recent: per cell its last ``Memory.window`` signals, oldest first.
    """

    cells: tuple[Cell, ...]
    success: NDArray[np.float64]
    best: NDArray[np.float64]
    seen: NDArray[np.int64]
    value: NDArray[np.float64]
    count: NDArray[np.int64]
    recent: tuple[tuple[float, ...], ...]


def cells_of(arms: Mapping[str, tuple[int, ...]]) -> list[Cell]:
    """(arm, level) of all arms: arm by arm, levels ascending.

    Raises:
        ConfigError: no arm, an arm without levels, or a level that an arm has twice.

    >>> cells_of({"sort": (4, 3)})
    [('sort', 3), ('sort', 4)]
    """
    empty = [arm for arm, levels in arms.items() if not levels]
    if not arms or empty:
        raise ConfigError(f"a curriculum needs arms with levels; got {dict(arms)}" + (f", empty: {empty}" if empty else ""))
    cells = [(arm, level) for arm in sorted(arms) for level in sorted(arms[arm])]
    if len(set(cells)) < len(cells):  # its true probability would be twice the one that a draw tells
        repeated = sorted({cell for cell in cells if cells.count(cell) > 1})
        raise ConfigError(f"a curriculum's arms hold cells (arm, level) twice: {repeated}; name each level once")
    return cells


class CellRule(ABC):
    """Base of curricula over cells, for frozen dataclasses: override `weights`, and what else differs.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Easiest(CellRule):
    ...     def weights(self, standing):
    ...         return standing.success**2
    >>> [d.propensity for d in Easiest().build({"sort": (3, 4)}, seed=0).draw(2)]
    [0.5, 0.5]
    """

    __slots__ = ()

    @property
    def memory(self) -> Memory:
        """How signals, and success, are remembered."""
        return Memory()

    @property
    def signal_name(self) -> str:
        """What the signal is called in the metrics, ``curriculum/NAME/ARM/level_L``."""
        return "success"

    def signal(self, outcome: Outcome) -> Sequence[float]:
        """What a graded group tells of its cell: any number of values; mean success unless overridden."""
        return () if outcome.group.success is None else (outcome.group.success,)

    @abstractmethod
    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` unnormalised weights: finite, at least 0, not all 0."""

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> CellBook:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return CellBook(self, arms, seed)


class CellBook:
    """The state of a curriculum over cells; implements `assay.core.protocols.Curriculum`.

    Args:
        rule: `Uniform`, `SuccessVariance`, `Frontier`, ..., or a `CellRule` of your own.
        arms: each arm with its levels.
        seed: the run's seed.

    Raises:
        ConfigError: no arm, an arm without levels, or a level that an arm has twice.
    """

    def __init__(self, rule: CellRule, arms: Mapping[str, tuple[int, ...]], seed: int) -> None:
        self.rule = rule
        self.seed = seed
        self.cells = cells_of(arms)
        self._at = {cell: i for i, cell in enumerate(self.cells)}
        n, prior = len(self.cells), rule.memory.prior or 0.0
        self._turn = 0
        self._success, self._value = np.full(n, prior, np.float64), np.full(n, prior, np.float64)
        self._best = np.zeros(n, np.float64)
        self._seen, self._count = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._recent: list[tuple[float, ...]] = [()] * n

    @property
    def standing(self) -> Standing:
        """What the rule is asked with."""
        return Standing(tuple(self.cells), self._success, self._best, self._seen, self._value, self._count, tuple(self._recent))

    @property
    def propensities(self) -> NDArray[np.float64]:
        """``[cells]`` probability of each cell at the next draw; sums to 1.

        Raises:
            ConfigError: the rule gave other than one finite weight per cell, at least 0 and not all 0.
        """
        weights = self.rule.weights(self.standing)
        if weights.shape != self._success.shape or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
            raise ConfigError(
                f"{type(self.rule).__name__}.weights gave {weights.tolist()} for {len(self.cells)} cells; give each a finite "
                "weight, at least 0, and one of them more"
            )
        return weights / weights.sum()

    def draw(self, n: int) -> list[Draw]:
        """``n`` independent choices under the current averages.

        Raises:
            ConfigError: ``n`` is not positive.
        """
        if n < 1:
            raise ConfigError(f"a curriculum draws at least one task, got n={n}")
        p = self.propensities
        u = uniforms(np.array([derive("curriculum", self.seed, "", self._turn)], np.uint64), 0, n)[0]
        self._turn += 1
        edges: list[float] = np.cumsum(p).tolist()
        edges[-1] = 1.0  # a uniform below 1 must fall in some cell, whatever the sum's last bits
        return [self._draw_of(bisect_right(edges, float(x)), p) for x in u]

    def _draw_of(self, i: int, p: NDArray[np.float64]) -> Draw:
        arm, level = self.cells[i]
        return Draw(arm, level, float(p[i]))

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Take in every graded group once, learned from or not; one without a valid rollout or of another cell says nothing."""
        success: dict[int, list[float]] = defaultdict(list)
        signals: dict[int, list[float]] = defaultdict(list)
        plain = type(self.rule).signal is CellRule.signal  # which is the success that was just asked for
        for outcome in outcomes:
            group = outcome.group
            cell = self._at.get((group.task.arm, group.task.level))
            if cell is None or (mean := group.success) is None:
                continue
            success[cell].append(mean)
            signals[cell] += (mean,) if plain else self.rule.signal(outcome)
        memory = self.rule.memory
        for cell, values in success.items():
            self._success[cell] = memory.average(float(self._success[cell]), bool(self._seen[cell]), values)
            self._seen[cell] += len(values)
            if self._seen[cell] >= memory.settle:
                self._best[cell] = max(self._best[cell], self._success[cell])
        for cell, values in signals.items():
            if values:
                old = float(self._value[cell])
                known = bool(self._count[cell])
                self._value[cell] = old + sum(sorted(values)) if memory.total else memory.average(old, known, values)
                self._count[cell] += len(values)
                kept = (sum(sorted(values)) / len(values),) if memory.by_batch else values
                self._recent[cell] = (*self._recent[cell], *kept)[-memory.window :] if memory.window else ()

    def metrics(self) -> Mapping[str, float]:
        """``curriculum/success/ARM/level_L`` and ``curriculum/share/ARM/level_L`` per cell, the signal where it is another
        (`CellRule.signal_name`), and ``curriculum/groups`` seen in all.
        """
        out = {"curriculum/groups": float(self._seen.sum())}
        name = self.rule.signal_name
        for i, ((arm, level), share) in enumerate(zip(self.cells, self.propensities, strict=True)):
            out[f"curriculum/success/{arm}/level_{level}"] = float(self._success[i])
            out[f"curriculum/share/{arm}/level_{level}"] = float(share)
            if name != "success":
                out[f"curriculum/{name}/{arm}/level_{level}"] = float(self._value[i])
        return out

    def state_dict(self) -> State:
        """Turn, and per cell its arm, level, success, groups seen, best success, signal's average, signals, last signals."""
        cells = [
            [
                arm,
                level,
                float(self._success[i]),
                int(self._seen[i]),
                float(self._best[i]),
                float(self._value[i]),
                int(self._count[i]),
                list(self._recent[i]),
            ]
            for i, (arm, level) in enumerate(self.cells)
        ]
        return {"turn": self._turn, "cells": cells}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken.

        Raises:
            CheckpointError: the state has other cells.
        """
        cells = [(str(arm), int(level)) for arm, level, *_ in state["cells"]]
        if cells != self.cells:
            raise CheckpointError(f"the curriculum's state is of cells {cells}, this run has {self.cells}")
        # A state of five numbers is of before rules had signals of their own: success was the only one.
        rows: list[Any] = [c if len(c) > 5 else [*c, c[2], c[3], []] for c in state["cells"]]
        self._turn = int(state["turn"])
        self._success, self._best, self._value = (np.array([c[k] for c in rows], np.float64) for k in (2, 4, 5))
        self._seen, self._count = (np.array([c[k] for c in rows], np.int64) for k in (3, 6))
        self._recent = [tuple(float(x) for x in c[7]) for c in rows]
