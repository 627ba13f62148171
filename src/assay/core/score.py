"""How good: named raw components, spans for step credit, and whose fault a failure was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from assay.core.canon import FrozenMap
from assay.core.errors import DataError

__all__ = ["LEARNED", "ROLLOUT_COLUMNS", "ROW_WEIGHT", "Fault", "Score", "SpanScore"]

ROLLOUT_COLUMNS = frozenset(
    {"group", "valid", "domain", "arm", "level", "lag", "length", "truncated", "tokens", "reward", "advantage", "keep"}
)
"""Columns that a batch or the credit chain gives every rollout."""

ROW_WEIGHT = "row_weight"
"""Rollout column with a factor of each rollout's loss, in batches with rows of a user's that name weights."""

LEARNED = "learned"
"""In ``info``: the component that a stage learns from, where that is not the main one."""


class Fault(StrEnum):
    """Whose fault a missing verdict is.

    ``policy``: the model's output exceeded a limit; it scores the floor. ``verifier`` and ``infra``: not the model's doing; the
    rollout is retried, then masked and counted, never scored 0.
    """

    NONE = "none"
    POLICY = "policy"
    VERIFIER = "verifier"
    INFRA = "infra"


@dataclass(frozen=True, slots=True)
class SpanScore:
    """A value for tokens ``[start, end)`` of one call's completion."""

    call: int
    start: int
    end: int
    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A verdict on one rollout.

    Attributes:
        components: name to raw, unweighted value. ``correct`` in [0, 1] is the task's own metric; a user's plain function gives
            ``reward``.
        spans: step or token values; see `assay.core.spans`.
        columns: numbers that a method reads beside the reward, such as how hard the task is: each becomes a column of the
            rollouts under its name, and is never a part of a reward.
        info: anything a reader of the report may want.
        fault: `Fault.NONE` for a normal verdict.

    >>> Score(components={"correct": 1.0, "format": 1.0}).primary
    1.0
    """

    components: Mapping[str, float]
    spans: tuple[SpanScore, ...] = ()
    columns: Mapping[str, float] = field(default_factory=dict[str, float])
    info: FrozenMap = field(default_factory=FrozenMap)
    fault: Fault = Fault.NONE

    def __post_init__(self) -> None:
        for name, value in self.components.items():
            if not abs(value) < inf:
                raise DataError(f"score component {name!r} is {value}; a verdict is a finite number or a fault")
        for name, value in self.columns.items():
            if name in ROLLOUT_COLUMNS:
                raise DataError(
                    f"a score may not name a column {name!r}: every rollout has one of its own; call it something else"
                )
            if not abs(value) < inf:
                raise DataError(f"score column {name!r} is {value}; give a finite number, or leave the column out")
        if not self.components and self.valid:
            raise DataError("a score without fault needs at least one component")

    @property
    def valid(self) -> bool:
        """Whether the score may enter statistics and losses."""
        return self.fault is Fault.NONE or self.fault is Fault.POLICY

    @property
    def primary(self) -> float:
        """The task's own metric: ``correct``, else ``reward``, else the only component.

        Raises:
            DataError: several components and neither name among them, or the score is a fault.
        """
        for name in ("correct", "reward"):
            if name in self.components:
                return self.components[name]
        if len(self.components) == 1:
            return next(iter(self.components.values()))
        raise DataError(f"no 'correct' or 'reward' among the components {sorted(self.components)} (fault: {self.fault})")
