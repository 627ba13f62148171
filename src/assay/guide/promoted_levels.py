"""SATURN's curriculum: one level of each arm at a time, and the next when a held-out evaluation is above a bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.protocols import State
from assay.guide.cell_curricula import CellBook, CellRule, Standing

__all__ = ["Promoted", "PromotedBook", "accuracy_at"]


def accuracy_at(metrics: Mapping[str, float], mode: str, arm: str, level: int) -> float | None:
    """Held-out accuracy of a cell in a run's metrics; None without an item of it. With one arm a level stands by itself.

    >>> accuracy_at({"eval/greedy/level_3": 0.5}, "greedy", "sort", 3)
    0.5
    """
    own = metrics.get(f"eval/{mode}/{arm}/level_{level}")
    return metrics.get(f"eval/{mode}/level_{level}") if own is None else own


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted(CellRule):
    """Practises the lowest level of each arm until a held-out evaluation of that level is above a bound, then the next one.

    Arms are drawn equally often. At each evaluation during the stage an arm whose present level has an accuracy strictly above
    ``above`` moves up by one, at most ``rounds`` times; it never falls. A success of training rollouts promotes nothing.

    Source: SATURN (arXiv 2505.16368), which validates every 250 samples, ``Evaluation.every`` times the stage's groups, moves on
    above a pass@1 of 0.5 (for 1.5B parameters) or 0.75 (7B), and does so in two rounds.

    Attributes:
        above: accuracy that an evaluation must exceed, in [0, 1).
        rounds: promotions of an arm at most; 0 for up to its last level.
        mode: ``sampled``, whose mean over items is pass@1, or ``greedy``.

    Raises:
        ConfigError: a number out of range.
        UnknownNameError: another mode.

    >>> book = Promoted().build({"sat": (1, 2, 3)}, seed=0)
    >>> for accuracy in (0.5, 0.6):  # not above the bound, then above it
    ...     book.observe_metrics({"eval/sampled/level_1": accuracy})
    ...     print(book.draw(1)[0].level)
    1
    2
    """

    above: float = 0.5
    rounds: int = 0
    mode: Literal["sampled", "greedy"] = "sampled"

    def __post_init__(self) -> None:
        if not 0.0 <= self.above < 1.0 or self.rounds < 0:
            raise ConfigError(f"Promoted.above={self.above} must be in [0, 1), and .rounds={self.rounds} at least 0")
        if self.mode not in ("sampled", "greedy"):
            raise UnknownNameError("Promoted.mode", self.mode, ("sampled", "greedy"))

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` 1 for the lowest level of each arm: as it is before the first promotion."""
        return np.array([float(i == 0 or standing.cells[i - 1][0] != arm) for i, (arm, _) in enumerate(standing.cells)])

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> PromotedBook:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return PromotedBook(self, arms, seed)


class PromotedBook(CellBook):
    """The state of `Promoted`; implements `assay.core.ReadsMetrics`.

    Attributes:
        promotions: of each arm.
    """

    def __init__(self, rule: Promoted, arms: Mapping[str, tuple[int, ...]], seed: int) -> None:
        super().__init__(rule, arms, seed)
        self.spec = rule
        self._levels = {arm: tuple(sorted(levels)) for arm, levels in arms.items()}
        self.promotions = dict.fromkeys(sorted(arms), 0)

    @property
    def propensities(self) -> NDArray[np.float64]:
        """``[cells]`` probability of each cell at the next draw: the present level of each arm, arms alike."""
        now = {(arm, self._levels[arm][number]) for arm, number in self.promotions.items()}
        return np.array([float(cell in now) for cell in self.cells]) / len(now)

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """Promotes the arms whose present level an evaluation found above the bound.

        Raises:
            ConfigError: there was an evaluation, and it had no item of an arm's present level.
        """
        if not any(name.startswith(f"eval/{self.spec.mode}/") for name in metrics):
            return
        for arm, number in self.promotions.items():
            level = self._levels[arm][number]
            accuracy = accuracy_at(metrics, self.spec.mode, arm, level)
            if accuracy is None:
                raise ConfigError(
                    f"Promoted: the evaluation has no item of {arm!r} at level {level}, which is practised; leave "
                    "Evaluation.levels empty, or name this level too"
                )
            last = len(self._levels[arm]) - 1
            if accuracy > self.spec.above and number < (min(last, self.spec.rounds) if self.spec.rounds else last):
                self.promotions[arm] = number + 1

    def metrics(self) -> Mapping[str, float]:
        """Those of `CellBook`, and ``curriculum/promotions/ARM``."""
        return {**super().metrics(), **{f"curriculum/promotions/{arm}": float(n) for arm, n in self.promotions.items()}}

    def state_dict(self) -> State:
        """That of `CellBook`, and the promotions of each arm."""
        return {**super().state_dict(), "promotions": dict(self.promotions)}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken.

        Raises:
            CheckpointError: the state has other cells.
        """
        super().load_state_dict(state)
        self.promotions = {str(arm): int(number) for arm, number in state["promotions"].items()}
