"""What ends a stage early."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import later
from assay.core.import_path import filed_as

__all__ = ["Until", "check_evaluation_metric"]


@filed_as("assay.train.run:Until")
@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """Ends a stage early when a metric of an evaluation reaches a bound, or has not risen for some evaluations.

    What ends the stage is part of the run: a resume ends it at the same step.

    Attributes:
        metric: ``eval/greedy/all``, ``eval/sampled/all``, or either with ``level_L`` for ``all``; where there are several arms
            also ``eval/MODE/ARM/all`` and ``eval/MODE/ARM/level_L``.
        at_least: bound.
        patience: evaluations of the stage without a better value than its best that end it; 0 for any number.
        gain: by how much a value must exceed the best to be better.
        strictly: the bound itself does not end the stage, as in SATURN (arXiv 2505.16368): pass@1 of exactly 0.5 promotes nobody.

    Raises:
        UnknownNameError: a metric that no evaluation gives.
        ConfigError: a patience that is no number of evaluations, or a gain below 0.

    >>> Until(patience=3)
    Until(metric='eval/greedy/all', at_least=1.0, patience=3, gain=0.0, strictly=False)
    """

    metric: str = "eval/greedy/all"
    at_least: float = 1.0
    patience: int = later(0)
    gain: float = later(0.0)
    strictly: bool = later(False)

    def __post_init__(self) -> None:
        if not isinstance(self.patience, int) or self.patience < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"Until.patience={self.patience!r}; use a number of evaluations, or 0 to wait for the bound alone")
        if not self.gain >= 0:
            raise ConfigError(f"Until.gain={self.gain!r}; use 0, or by how much a value must exceed the best")
        check_evaluation_metric(self.metric)

    def reason(self, value: float, stale: int) -> str:
        """Why an evaluation ends the stage; empty where it goes on.

        Args:
            value: of the metric.
            stale: evaluations since the best one.

        >>> Until(at_least=0.5).reason(0.62, 0)
        'eval/greedy/all is 0.62, which reaches until.at_least = 0.5'
        """
        if value > self.at_least or (value == self.at_least and not self.strictly):
            how = "is above" if self.strictly else "reaches"
            return f"{self.metric} is {value:.3g}, which {how} until.at_least = {self.at_least:g}"
        if 0 < self.patience <= stale:
            return f"{stale} evaluations without a gain in {self.metric} (until.patience = {self.patience})"
        return ""


def check_evaluation_metric(name: str) -> None:
    """Raises UnknownNameError for a metric that no evaluation gives.

    >>> check_evaluation_metric("eval/greedy/level_3")
    """
    if not re.fullmatch(r"eval/(greedy|sampled)/(.+/)?(all|level_\d+)", name):
        known = [f"eval/{mode}/{cell}" for mode in ("greedy", "sampled") for cell in ("all", "level_L")]
        raise UnknownNameError("evaluation metric", name, known)
