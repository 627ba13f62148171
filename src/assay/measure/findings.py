"""What a doctor's rule is made of: the finding, its severity, and the words for windows and shares.

"At the start" and "lately" mean the first and last tenth of a series (at least 5 points, at most 50).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from assay.measure.history import History, Series

__all__ = ["PAGE", "Finding", "Rule", "Severity", "at_start", "lately", "percent", "steps_of"]


PAGE = "docs/not_learning.md"
"""Has a paragraph for each rule, under the rule's name."""


class Severity(StrEnum):
    """How bad: an ``alarm`` makes results doubtful, a ``warning`` wastes the run, a ``note`` explains."""

    ALARM = "alarm"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that the doctor sees.

    Attributes:
        rule: name of the rule's class.
        severity: how bad.
        sentence: what, where and how much, in the run's own numbers.
        action: what to do next.
        first_step, last_step: the part of the run that it rests on.
        numbers: the values that decided, by metric name.
    """

    rule: str
    severity: Severity
    sentence: str
    action: str
    first_step: int
    last_step: int
    numbers: Mapping[str, float]

    @property
    def page(self) -> str:
        """Where the docs say what it means, what to look at and what to change."""
        return f"{PAGE}#{self.rule.lower()}"

    def __str__(self) -> str:
        return f"{self.severity}: {self.sentence} {self.action} ({self.page})"


class Rule(Protocol):
    """Looks at the reinforcement-learning part of a history."""

    def __call__(self, history: History) -> Finding | None: ...


def lately(series: Series) -> Series:
    """The last tenth of a series' finite points."""
    finite = series.finite()
    return finite.last(finite.window())


def at_start(series: Series) -> Series:
    """The first tenth of a series' finite points."""
    finite = series.finite()
    return finite.first(finite.window())


def steps_of(series: Series) -> str:
    """``step 5`` or ``steps 5-9``."""
    first, last = series.span
    return f"step {first}" if first == last else f"steps {first}–{last}"


def percent(share: float) -> str:
    """``4 %`` or ``0.4 %``."""
    return f"{100 * share:.{0 if share >= 0.1 or share == 0 else 1}f} %"
