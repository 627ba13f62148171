"""Stages of one update per step, by a batch that nobody samples: of rows that are given, or that the stage makes itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import numpy as np

from assay.core.batch import Batch
from assay.core.canon import FrozenMap, check_row_text
from assay.core.errors import ConfigError, a_kind
from assay.core.protocols import Tokenizer
from assay.core.seeds import generator
from assay.core.timing import StepTimer, span
from assay.objective.objective import Objective
from assay.train.given_checks import DEMONSTRATED
from assay.train.runner import BaseRunner, StageRunner, StepResult
from assay.train.stage import Stage
from assay.train.stage_rows import StageRows

if TYPE_CHECKING:
    from assay.train.run import Run
    from assay.train.session import Parts
    from assay.train.wiring import Wiring

__all__ = ["HasRows", "OfflineRows", "OfflineStep", "OneUpdate", "RowsRunner", "in_order", "settle_data", "short"]


class HasRows(Protocol):
    """A part with rows that a person gives: a name of a file or data set, or the rows themselves."""

    @property
    def data(self) -> str | tuple[Mapping[str, Any], ...]:
        """The rows."""
        ...


class OfflineStep(Protocol):
    """The rows of a stage."""

    def batch(self, step: int) -> Batch:
        """The batch of a step of the stage, counted from 0: a pure function of the run's seed and that number."""
        ...


@dataclass
class RowsRunner(BaseRunner):
    """Makes one optimiser step of each batch. It has no state: which rows come is told by the number of the step."""

    rows: OfflineStep

    async def step(self) -> StepResult:
        """One optimiser step."""
        p = self.parts
        with StepTimer() as timer:
            batch = p.annotate(self.rows.batch(p.stage_step))
            with span("credit"):
                batch = p.program.credit(batch)
            with span("update"):
                stats = p.learner.step(batch, p.plan, p.program)
            p.untrained = stats.untrained
            trained = {"tokens/trained": float(batch.counts.tokens)}
            return StepResult(metrics={**p.program.metrics(), **stats.metrics, **trained, **timer.seconds()})


class OneUpdate(Stage, Protocol):
    """A stage whose steps are one update each; of it ``rows`` is left to say, and `count_rows` where that is not a batch."""

    __slots__ = ()
    batch: int

    def rows(self, run: Run, tokenizer: Tokenizer) -> OfflineStep:
        """What it learns from."""
        ...

    def open(self, parts: Parts) -> StageRunner:
        """The stage at work."""
        return RowsRunner(parts, self.rows(parts.run, parts.tokenizer))

    def count_rows(self, run: Run) -> StageRows:
        """A batch for each step."""
        return StageRows(step=self.batch)

    def shrink(self, groups: int, size: int) -> Self:
        """With smaller batches."""
        return replace(self, batch=min(self.batch, groups * size))

    def wire(self, wiring: Wiring, objective: Objective) -> Stage:
        """Under a method that learns from demonstrations."""
        method = wiring.method
        imitates = all(not t.streams or DEMONSTRATED in t.streams for t in objective.losses)
        if objective.uses_reward or not imitates or wiring.teachers(objective):
            raise ConfigError(
                f"{method.name} learns from sampled rollouts, and the stage is {type(self).__name__}, of demonstrations: name it "
                "in a stage of reinforcement learning, as recipe quickstart has one, or name nll here"
            )
        return replace(self, objective=objective, learner=wiring.learner(self.learner, objective, self.steps))


class OfflineRows(OneUpdate, Protocol):
    """A stage that learns from rows that a person gives; the run's tasks are for evaluation alone."""

    __slots__ = ()
    data: str | tuple[Mapping[str, Any], ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The data, where that is a name."""
        return (self.data,) if isinstance(self.data, str) and self.data else ()

    def settle(self) -> None:
        """Makes a path text, and rows frozen ones.

        Raises:
            ConfigError: something else among the rows.
            DataError: a text that cannot be written.
        """
        settle_data(self)

    def check_batch(self, rows: Sequence[object]) -> None:
        """Raises ConfigError where there is less than a batch of rows."""
        if self.batch > len(rows):
            name = type(self).__name__
            raise ConfigError(f"{name}.batch={self.batch}, but the data has {len(rows)} rows; use at most {len(rows)}")


def settle_data(part: HasRows) -> None:
    """Makes the path in a frozen part's ``data`` text, and rows there frozen ones.

    Raises:
        ConfigError: something else among the rows.
        DataError: a text that cannot be written.
    """
    given: Any = part.data
    if isinstance(given, str | Path):
        object.__setattr__(part, "data", str(given))
        return
    rows: list[Any] = list(given) if isinstance(given, list | tuple) else [given]  # pyright: ignore[reportUnknownArgumentType]
    for i, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise ConfigError(
                f"{type(part).__name__}.data, row {i} is {a_kind(row)}; name a file of rows, or give a list of dicts"
            )
        check_row_text(cast("Mapping[str, Any]", row), f"{type(part).__name__}.data, row {i}")
    object.__setattr__(part, "data", tuple(map(FrozenMap, rows)))


def in_order(stream: str, seed: int, pool: int, wanted: range) -> list[int]:
    """Which of ``pool`` rows stand at the places ``wanted`` of an endless walk: a seeded order, anew each epoch.

    >>> sorted(in_order("rows", 0, 3, range(3, 6)))
    [0, 1, 2]
    """
    return [int(_order(stream, seed, i // pool, pool)[i % pool]) for i in wanted]


@lru_cache(maxsize=4)
def _order(stream: str, seed: int, epoch: int, pool: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return generator(stream, seed, "epoch", epoch).permutation(pool)


def short(text: str) -> str:
    """A text as a message shows it."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
