"""Coefficients that follow a schedule over rollout batches."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from assay.core.errors import ConfigError
from assay.core.protocols import State
from assay.objective.loss.wrap import Wrapped
from assay.objective.reducers import Partials

__all__ = ["Annealed", "Cosine", "Linear", "Schedule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(ABC):
    """Base of the schedules of a coefficient."""

    @abstractmethod
    def at(self, coef: float, batches: int) -> float:
        """The coefficient after so many rollout batches, of a term whose own is ``coef``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(Schedule):
    """``max(coef - step * n, floor)`` at the ``n``-th rollout batch, counted from 0.

    Attributes:
        step: what a batch takes off.
        floor: where it stays.

    >>> [round(Linear(step=5e-5, floor=1e-3).at(5e-3, n), 6) for n in (0, 40, 80, 400)]
    [0.005, 0.003, 0.001, 0.001]
    """

    step: float
    floor: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.step < math.inf or not 0 <= self.floor < math.inf:
            raise ConfigError(f"Linear(step={self.step}, floor={self.floor}): use a positive step and a floor of 0 or more")

    def at(self, coef: float, batches: int) -> float:
        """The coefficient."""
        return max(coef - self.step * batches, self.floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosine(Schedule):
    """From the coefficient to ``floor`` over ``batches`` rollout batches along half a cosine; ``floor`` from there on.

    Attributes:
        batches: how many.
        floor: where it stays.

    >>> [round(Cosine(batches=4).at(1.0, n), 4) for n in (0, 1, 2, 9)]
    [1.0, 0.8536, 0.5, 0.0]
    """

    batches: int
    floor: float = 0.0

    def __post_init__(self) -> None:
        if self.batches < 1 or not 0 <= self.floor < math.inf:
            raise ConfigError(f"Cosine(batches={self.batches}, floor={self.floor}): use batches >= 1 and a floor of 0 or more")

    def at(self, coef: float, batches: int) -> float:
        """The coefficient."""
        share = min(batches / self.batches, 1.0)
        return self.floor + (coef - self.floor) * (1 + math.cos(math.pi * share)) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Annealed(Wrapped):
    """A term whose coefficient follows a schedule over rollout batches, from its own ``coef`` on.

    The number of the batch is part of the saved state; all optimiser steps of a batch have the same coefficient.

    Attributes:
        schedule: how it goes.
    """

    schedule: Schedule = field(kw_only=False)

    def __post_init__(self) -> None:
        Wrapped.__post_init__(self)
        if self.term.init():
            raise ConfigError(
                f"Annealed({type(self.term).__name__}): its coefficient follows a state of its own already; use one of the two"
            )
        first = self.schedule.at(self.coef, 0)
        if not math.isclose(first, self.coef):
            raise ConfigError(
                f"Annealed: the schedule {self.schedule} starts at {first}, not at the term's coef={self.coef}: its floor is "
                "higher; lower the floor or raise the coefficient"
            )

    def init(self) -> State:
        """No batch yet."""
        return {"batches": 0}

    def advance(self, state: State, stats: Partials) -> State:
        """One more."""
        return {"batches": state["batches"] + 1}

    def factor(self, state: State) -> float:
        """The coefficient in force."""
        return self.schedule.at(self.coef, int(state["batches"]))
