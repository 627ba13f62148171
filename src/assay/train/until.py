"""What ends a stage early."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.core.errors import UnknownNameError
from assay.core.import_path import filed_as

__all__ = ["Until", "check_evaluation_metric"]


@filed_as("assay.train.run:Until")
@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """Ends a stage early when a metric of an evaluation reaches a bound.

    Attributes:
        metric: ``eval/greedy/all``, ``eval/sampled/all``, or either with ``level_L`` for ``all``; where there are several arms
            also ``eval/MODE/ARM/all`` and ``eval/MODE/ARM/level_L``.
        at_least: bound.

    Raises:
        UnknownNameError: a metric that no evaluation gives.
    """

    metric: str = "eval/greedy/all"
    at_least: float = 1.0

    def __post_init__(self) -> None:
        check_evaluation_metric(self.metric)


def check_evaluation_metric(name: str) -> None:
    """Raises UnknownNameError for a metric that no evaluation gives.

    >>> check_evaluation_metric("eval/greedy/level_3")
    """
    if not re.fullmatch(r"eval/(greedy|sampled)/(.+/)?(all|level_\d+)", name):
        known = [f"eval/{mode}/{cell}" for mode in ("greedy", "sampled") for cell in ("all", "level_L")]
        raise UnknownNameError("evaluation metric", name, known)
