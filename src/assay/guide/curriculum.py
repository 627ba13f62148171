"""Which arm and level comes next, with the probability of the choice.

A curriculum keeps two numbers per cell, an (arm, level): a moving average of success, and the highest that it has been.
Draws are counter based: draw ``k`` of turn ``t`` is a pure function of the seed, ``t``, ``k`` and these, so a resumed run
continues bit for bit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import FrozenMap
from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Draw, Group
from assay.core.protocols import State
from assay.core.seeds import derive, uniforms

__all__ = ["CellCurriculum", "Frontier", "Standing", "SuccessVariance", "Uniform", "Weighting"]


Cell = tuple[str, int]
"""Arm and level."""


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What is known of the cells when weights are asked for.

    Attributes:
        cells: (arm, level), arm by arm, levels ascending.
        success: ``[cells]`` moving average of success.
        best: ``[cells]`` the highest that ``success`` has been since the cell had as many groups as the rule's ``settle``; 0
            before.
        seen: ``[cells]`` groups observed.
    """

    cells: tuple[Cell, ...]
    success: NDArray[np.float64]
    best: NDArray[np.float64]
    seen: NDArray[np.int64]


class Weighting(Protocol):
    """What is known of the cells to unnormalised weights, how fast the success moves, and when it counts as known."""

    @property
    def decay(self) -> float: ...

    @property
    def prior(self) -> float: ...

    @property
    def settle(self) -> int: ...

    def weights(self, standing: Standing) -> NDArray[np.float64]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Every (arm, level) is equally likely. Success per cell is still measured, with the moving average of ``SuccessVariance``.

    >>> [d.propensity for d in Uniform().build({"sort": (3, 4, 5, 6)}, seed=0).draw(2)]
    [0.25, 0.25]
    """

    @property
    def decay(self) -> float:
        """Share of the old average kept per group."""
        return 0.9

    @property
    def prior(self) -> float:
        """Average before the first group."""
        return 0.5

    @property
    def settle(self) -> int:
        """Groups until the average is taken for known."""
        return 1

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` ones."""
        return np.ones_like(standing.success)

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> CellCurriculum:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return CellCurriculum(self, arms, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessVariance:
    """A cell's weight is ``p (1 - p) + floor``, with ``p`` the moving average of its success: practice goes where outcomes
    differ.

    After a batch with ``k`` graded groups of a cell, ``p`` becomes ``decay^k p + (1 - decay^k) m``, with ``m`` the mean
    success of those groups; so the order of groups in a batch does not matter.

    Attributes:
        floor: weight that every cell keeps. At a small floor mastered cells are forgotten.
        decay: share of the old average kept per group, in [0, 1).
        prior: ``p`` before the first group, in [0, 1].

    Raises:
        ConfigError: a value out of range.

    >>> c = SuccessVariance(floor=0.1).build({"sort": (3, 4)}, seed=0)
    >>> [round(float(x), 3) for x in c.propensities]
    [0.5, 0.5]
    """

    floor: float = 0.1
    decay: float = 0.9
    prior: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.floor < float("inf"):
            raise ConfigError(f"SuccessVariance.floor must be > 0, or cells at 0 and 1 are never seen again; got {self.floor}")
        if not 0.0 <= self.decay < 1.0:
            raise ConfigError(f"SuccessVariance.decay must be in [0, 1), or success never moves; got {self.decay}")
        if not 0.0 <= self.prior <= 1.0:
            raise ConfigError(f"SuccessVariance.prior is a success rate in [0, 1], got {self.prior}")

    @property
    def settle(self) -> int:
        """Groups until the average is taken for known."""
        return 1

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` variance of success plus the floor."""
        return standing.success * (1.0 - standing.success) + self.floor

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> CellCurriculum:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return CellCurriculum(self, arms, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """Each arm has a frontier, the highest level that it practises: it moves up when that level succeeds often enough.

    Arms are equally likely. Within one, a level up to the frontier weighs ``4 p (1 - p) + floor``, with ``p`` the moving average
    of its success as in `SuccessVariance`, and levels beyond weigh nothing. The frontier itself weighs at least ``reserve``: a
    level that never succeeds yet would otherwise hardly be tried. The frontier goes one level up when the average of its level
    reaches ``unlock`` after at least ``settle`` groups, and never down.

    Attributes:
        start: arm to its first frontier, such as one level past those demonstrated; an arm's lowest level where it is not named.
        unlock: success that moves the frontier, in (0, 1].
        reserve: least weight of the frontier; a level where half succeed weighs 1 and ``floor``.
        floor: weight that every level up to the frontier keeps.
        decay: share of the old average kept per group, in [0, 1).
        settle: groups of a level before it may move the frontier.

    Raises:
        ConfigError: a value out of range.

    >>> c = Frontier(start={"sort": 4}, floor=0.1).build({"sort": (3, 4, 5)}, seed=0)
    >>> [round(float(x), 3) for x in c.propensities]
    [0.5, 0.5, 0.0]
    """

    start: Mapping[str, int] = field(default_factory=FrozenMap)
    unlock: float = 0.5
    reserve: float = 0.5
    floor: float = 0.05
    decay: float = 0.9
    settle: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", FrozenMap(self.start))
        if not 0.0 < self.floor < float("inf"):
            raise ConfigError(f"Frontier.floor must be > 0, or mastered levels are never seen again; got {self.floor}")
        if not 0.0 <= self.decay < 1.0:
            raise ConfigError(f"Frontier.decay must be in [0, 1), or success never moves; got {self.decay}")
        if not 0.0 < self.unlock <= 1.0 or not 0.0 <= self.reserve < float("inf"):
            raise ConfigError(f"Frontier.unlock={self.unlock} must be in (0, 1] and Frontier.reserve={self.reserve} at least 0")
        if self.settle < 1:
            raise ConfigError(f"Frontier.settle={self.settle}; use at least 1 group")

    @property
    def prior(self) -> float:
        """Average before the first group."""
        return 0.5

    def frontiers(self, standing: Standing) -> dict[str, int]:
        """Arm to its frontier."""
        found: dict[str, int] = {}
        closed: set[str] = set()
        for (arm, level), best in zip(standing.cells, standing.best, strict=True):
            if arm in closed:
                continue
            found[arm] = level
            if level >= self.start.get(arm, level) and best < self.unlock:
                closed.add(arm)
        return found

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` weights that sum to 1 within each arm."""
        at, arms = self.frontiers(standing), np.array([arm for arm, _ in standing.cells])
        out = 4.0 * standing.success * (1.0 - standing.success) + self.floor
        for i, (arm, level) in enumerate(standing.cells):
            if level >= at[arm]:
                out[i] = max(out[i], self.reserve) if level == at[arm] else 0.0
        for arm in at:
            out[arms == arm] /= out[arms == arm].sum()
        return out

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> CellCurriculum:
        """The curriculum with its state.

        Raises:
            ConfigError: nothing to choose, or ``start`` names an arm or level that there is not.
        """
        for arm, level in self.start.items():
            if level not in arms.get(arm, ()):
                raise ConfigError(
                    f"Frontier.start={dict(self.start)}: arm {arm!r} has no level {level} here; there are {dict(arms)}"
                )
        return CellCurriculum(self, arms, seed)


class CellCurriculum:
    """Draws cells by weights that follow their success.

    Args:
        rule: `Uniform`, `SuccessVariance`, `Frontier`, or anything with ``decay``, ``prior``, ``settle`` and ``weights``.
        arms: each arm with its levels.
        seed: the run's seed.

    Raises:
        ConfigError: no arm, an arm without levels, or a level that an arm has twice.
    """

    def __init__(self, rule: Weighting, arms: Mapping[str, tuple[int, ...]], seed: int) -> None:
        empty = [arm for arm, levels in arms.items() if not levels]
        if not arms or empty:
            raise ConfigError(f"a curriculum needs arms with levels; got {dict(arms)}" + (f", empty: {empty}" if empty else ""))
        self.rule = rule
        self.seed = seed
        self.cells = [(arm, level) for arm in sorted(arms) for level in sorted(arms[arm])]
        self._at = {cell: i for i, cell in enumerate(self.cells)}
        if len(self._at) < len(self.cells):  # its true probability would be twice the one that a draw tells
            repeated = sorted({cell for cell in self.cells if self.cells.count(cell) > 1})
            raise ConfigError(f"a curriculum's arms hold cells (arm, level) twice: {repeated}; name each level once")
        self._turn = 0
        self._success = np.full(len(self.cells), rule.prior, np.float64)
        self._seen = np.zeros(len(self.cells), np.int64)
        self._best = np.zeros(len(self.cells), np.float64)

    @property
    def standing(self) -> Standing:
        """What the rule is asked with."""
        return Standing(tuple(self.cells), self._success, self._best, self._seen)

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
        return [self._drawn(bisect_right(edges, float(x)), p) for x in u]

    def observe(self, groups: Sequence[Group]) -> None:
        """Take in every graded group once, filtered or not; one without a valid rollout, or of a foreign cell, says nothing."""
        results: dict[int, list[float]] = defaultdict(list)
        for group in groups:
            cell = self._at.get((group.task.arm, group.task.level))
            if cell is not None and group.success is not None:
                results[cell].append(group.success)
        for cell, values in results.items():
            kept = self.rule.decay ** len(values)
            # Sorted, so that the sum has the same bits in any order of the groups.
            mean = sum(sorted(values)) / len(values)
            self._success[cell] = kept * self._success[cell] + (1.0 - kept) * mean
            self._seen[cell] += len(values)
            if self._seen[cell] >= self.rule.settle:
                self._best[cell] = max(self._best[cell], self._success[cell])

    def _drawn(self, i: int, p: NDArray[np.float64]) -> Draw:
        arm, level = self.cells[i]
        return Draw(arm, level, float(p[i]))

    def metrics(self) -> Mapping[str, float]:
        """``curriculum/success/ARM/level_L`` and ``curriculum/share/ARM/level_L`` per cell, ``curriculum/groups`` seen in all."""
        out = {"curriculum/groups": float(self._seen.sum())}
        for (arm, level), success, share in zip(self.cells, self._success, self.propensities, strict=True):
            out[f"curriculum/success/{arm}/level_{level}"] = float(success)
            out[f"curriculum/share/{arm}/level_{level}"] = float(share)
        return out

    def state_dict(self) -> State:
        """Turn, and per cell its arm, level, success, groups seen and best success."""
        cells = [
            [arm, level, float(success), int(seen), float(best)]
            for (arm, level), success, seen, best in zip(self.cells, self._success, self._seen, self._best, strict=True)
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
        self._turn = int(state["turn"])
        self._success = np.array([c[2] for c in state["cells"]], np.float64)
        self._seen = np.array([c[3] for c in state["cells"]], np.int64)
        self._best = np.array([c[4] for c in state["cells"]], np.float64)
