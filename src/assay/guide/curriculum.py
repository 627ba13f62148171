"""Which arm and level comes next, by success: evenly, where outcomes differ, or up to a frontier that moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.guide.cell_curricula import CellBook, CellRule, Memory, Standing

__all__ = ["Frontier", "SuccessVariance", "Uniform"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(CellRule):
    """Every (arm, level) is equally likely. Success per cell is still measured, with the moving average of ``SuccessVariance``.

    >>> [d.propensity for d in Uniform().build({"sort": (3, 4, 5, 6)}, seed=0).draw(2)]
    [0.25, 0.25]
    """

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` ones."""
        return np.ones_like(standing.success)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessVariance(CellRule):
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
    def memory(self) -> Memory:
        """Of success, by ``decay`` and ``prior``."""
        return Memory(decay=self.decay, prior=self.prior)

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` variance of success plus the floor."""
        return standing.success * (1.0 - standing.success) + self.floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier(CellRule):
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
    def memory(self) -> Memory:
        """Of success, by ``decay`` and ``settle``."""
        return Memory(decay=self.decay, settle=self.settle)

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

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> CellBook:
        """The curriculum with its state.

        Raises:
            ConfigError: nothing to choose, or ``start`` names an arm or level that there is not.
        """
        for arm, level in self.start.items():
            if level not in arms.get(arm, ()):
                raise ConfigError(
                    f"Frontier.start={dict(self.start)}: arm {arm!r} has no level {level} here; there are {dict(arms)}"
                )
        return CellBook(self, arms, seed)
