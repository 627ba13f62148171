"""The stages that learn from rows: a family's oracle traces, given demonstrations, given preferences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from assay.core.canon import FrozenMap, check_row_text
from assay.core.errors import ConfigError, UnknownNameError, a_kind
from assay.core.fields import check_positive
from assay.core.import_path import filed_as
from assay.objective.methods import dpo, nll
from assay.objective.objective import Objective
from assay.runtime.settings import LearnerSettings
from assay.train.levels import Levels, settle_levels
from assay.train.naming import refuse_name

__all__ = ["GivenRows", "Imitate", "OneUpdate", "Prefer", "WarmUp"]


class OneUpdate:
    """What stages share whose steps are one update each, by their objective as it is."""

    __slots__ = ()
    objective: Objective
    learner: LearnerSettings

    @property
    def taught(self) -> Objective:
        """The objective as it is compiled."""
        return self.objective

    @property
    def updates(self) -> int:
        """Optimiser updates per step."""
        return 1


class GivenRows(OneUpdate):
    """What stages of given rows share: the rows, and that the tasks are for evaluation alone."""

    __slots__ = ()
    steps: int
    batch: int
    data: str | tuple[Mapping[str, Any], ...]

    @property
    def levels(self) -> Levels:
        """None in particular: the tasks are for evaluation alone."""
        return ()

    def settle(self) -> None:
        """Makes a path text, and rows frozen ones.

        Raises:
            ConfigError: something else among the rows.
            DataError: a text that cannot be written.
        """
        given: Any = self.data
        if isinstance(given, str | Path):
            object.__setattr__(self, "data", str(given))
            return
        rows: list[Any] = list(given) if isinstance(given, list | tuple) else [given]  # pyright: ignore[reportUnknownArgumentType]
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ConfigError(
                    f"{type(self).__name__}.data, row {i} is {a_kind(row)}; name a file of rows, or give a list of dicts"
                )
            check_row_text(cast("Mapping[str, Any]", row), f"{type(self).__name__}.data, row {i}")
        object.__setattr__(self, "data", tuple(map(FrozenMap, rows)))


@filed_as("assay.train.run:WarmUp")
@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp(OneUpdate):
    """A supervised stage on the task family's oracle traces.

    Attributes:
        steps: optimiser steps.
        batch: traces per step.
        demonstrations: size of the fixed pool of traces, equal parts per level; 0 draws fresh ones for ever.
        noise: probability that a trace is corrupted.
        levels: levels demonstrated, of every arm, or arm by arm (`Levels`); all when empty.
        gate: lowest held-out temperature-1 accuracy on the demonstrated levels at the end, of every arm by itself; below it
            the run stops with a `GateError`, because RL from almost no success collapses. Arms that ``Evaluation.levels`` leaves
            out need not pass: they are there to help others.
        objective, learner: what is minimised, and how.
    """

    steps: int = 600
    batch: int = 64
    demonstrations: int = 3000
    noise: float = 0.1
    levels: Levels = ()
    gate: float = 0.0
    objective: Objective = field(default_factory=nll)
    learner: LearnerSettings = field(default_factory=LearnerSettings)

    def __post_init__(self) -> None:
        settle_levels(self)
        refuse_name(self)
        check_positive(self, "steps", "batch")
        if not 0.0 <= self.noise <= 1.0:
            raise ConfigError(f"WarmUp.noise={self.noise} is a probability; use a number in [0, 1]")
        if not 0.0 <= self.gate <= 1.0:
            raise ConfigError(f"WarmUp.gate={self.gate} is an accuracy; use a number in [0, 1]")

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "warm-up"


@filed_as("assay.train.run:Imitate")
@dataclass(frozen=True, slots=True, kw_only=True)
class Imitate(GivenRows):
    """A supervised stage on given demonstrations: questions with answers, or whole conversations.

    Attributes:
        data: a file of rows (JSON lines, CSV, Parquet), a folder of them, ``hub:OWNER/NAME@REVISION:FILES``, or the rows
            themselves, in the forms of `assay.train.Demonstration`. A file is read when the run begins and when it
            is resumed, and must stay as it is until the run has ended.
        steps: optimiser steps.
        batch: rows per step. They are walked in a seeded order, anew each epoch.
        learn: which tokens carry loss: ``assistant``: those of the answers and the tokens that end them; ``all``: those of the
            questions, of tools and of the chat template too.
        objective, learner: what is minimised, and how.

    >>> Imitate(data=[{"prompt": "2+2=", "completion": "4"}], steps=10, batch=1).updates
    1
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    steps: int = 100
    batch: int = 32
    learn: Literal["assistant", "all"] = "assistant"
    objective: Objective = field(default_factory=nll)
    learner: LearnerSettings = field(default_factory=LearnerSettings)

    def __post_init__(self) -> None:
        refuse_name(self)
        check_positive(self, "steps", "batch")
        self.settle()
        if self.learn not in ("assistant", "all"):
            raise UnknownNameError("Imitate.learn", self.learn, ("assistant", "all"))

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "sft"


@filed_as("assay.train.run:Prefer")
@dataclass(frozen=True, slots=True, kw_only=True)
class Prefer(GivenRows):
    """A stage on given preferences: answers that people or programs have judged.

    Attributes:
        data: a file of rows (JSON lines, CSV, Parquet), a folder of them, ``hub:OWNER/NAME@REVISION:FILES``, or the rows
            themselves; `assay.objective.Preference` has their three forms. A file is read when the run begins and when it is
            resumed, and must stay as it is until the run has ended.
        steps: optimiser steps.
        batch: rows per step: pairs, or judged answers, or ranked lists. They are walked in a seeded order, anew each epoch.
        objective, learner: what is minimised, and how; the weights that the stage starts from are the reference.

    >>> Prefer(data=[{"prompt": "2+2=", "chosen": "4", "rejected": "5"}], steps=10, batch=1).updates
    1
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    steps: int = 100
    batch: int = 32
    objective: Objective = field(default_factory=dpo)
    learner: LearnerSettings = field(default_factory=LearnerSettings)

    def __post_init__(self) -> None:
        refuse_name(self)
        check_positive(self, "steps", "batch")
        self.settle()

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "preferences"
