"""The supervised stage on a task family's oracle traces."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from assay.core.batch import Batch, pack_rows
from assay.core.errors import ConfigError, GateError
from assay.core.fields import check_positive, later
from assay.core.import_path import filed_as
from assay.core.protocols import TaskSource, Tokenizer
from assay.core.sample import Sample
from assay.core.seeds import generator
from assay.core.task import Task
from assay.objective.methods import nll
from assay.objective.objective import Objective
from assay.rollout.decode_text import AnswerReader
from assay.runtime.settings import LearnerSettings
from assay.train.demonstration import conversation_row
from assay.train.levels import Levels, arms_of, settle_levels
from assay.train.method_names import refuse_name
from assay.train.offline_rows import OneUpdate, in_order
from assay.train.until import Until

if TYPE_CHECKING:
    from assay.train.run import Run

__all__ = ["Demonstrations", "WarmUp", "trace_row"]


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
        until: early end, by an evaluation; None runs all steps.

    Source: Warm Up Before You Train (arXiv 2505.13718), in part.
    """

    uses_tasks: ClassVar[bool] = True
    evaluates_first: ClassVar[bool] = False

    steps: int = 600
    batch: int = 64
    demonstrations: int = 3000
    noise: float = 0.1
    levels: Levels = ()
    gate: float = 0.0
    objective: Objective = field(default_factory=nll)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    until: Until | None = later(None)

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

    def rows(self, run: Run, tokenizer: Tokenizer) -> Demonstrations:
        """The traces."""
        return Demonstrations(run, self, tokenizer)

    def check_task(self, run: Run, task: Task, tokenizer: Tokenizer, contexts: tuple[int, int]) -> None:
        """Raises ConfigError where there is no trace of the task, or one that is too long."""
        tokens = len(trace_row(run.tasks, task, AnswerReader.of(tokenizer), self.noise, run.seed, task.index).ids)
        if tokens > contexts[0]:
            raise ConfigError(
                f"task {task.id!r} (arm {task.arm!r}, level {task.level}) has an oracle trace of {tokens} tokens with its "
                f"prompt; the model's context holds {contexts[0]}: leave the level out of WarmUp.levels, or use a model with "
                "more positions"
            )

    def gate_levels(self, run: Run) -> Levels:
        """The demonstrated levels of the arms that are evaluated: one that only helps others learn need not pass."""
        evaluated = arms_of(run.tasks, run.evaluation.levels)
        return {arm: levels for arm, levels in arms_of(run.tasks, self.levels).items() if arm in evaluated} or self.levels

    def check_gate(self, found: float | None) -> None:
        """Raises GateError where the accuracy at the end is below the gate."""
        if found is not None and found < self.gate:
            raise GateError(
                f"the warm-up ended at temperature-1 accuracy {found:.3f} on the levels it demonstrated (of the arm where it is "
                f"lowest; events.jsonl has all), below its gate of {self.gate:.3f}: RL from there would see almost no success; "
                f"give it more steps ('assay resume --steps', more than {self.steps}), lower levels or less noise"
            )


class Demonstrations:
    """The traces of a warm-up: number ``i`` is a pure function of the run's seed and ``i``."""

    def __init__(self, run: Run, stage: WarmUp, tokenizer: Tokenizer) -> None:
        self._run, self._stage, self._reader = run, stage, AnswerReader.of(tokenizer)
        arms = arms_of(run.tasks, stage.levels)
        self._cells = [(arm, level) for arm, levels in arms.items() for level in levels]
        self._row = lru_cache(maxsize=None if stage.demonstrations else 1)(self._make)

    def batch(self, step: int) -> Batch:
        """The traces of one step: a pool is walked in a seeded order, anew each epoch; without a pool they are fresh for ever."""
        size, pool = self._stage.batch, self._stage.demonstrations
        wanted = range(step * size, (step + 1) * size)
        rows = in_order("demonstrations", self._run.seed, pool, wanted) if pool else wanted
        return pack_rows(list(enumerate(map(self._row, rows))), {"group": np.arange(size)})

    def _make(self, i: int) -> Sample:
        arm, level = self._cells[i % len(self._cells)]
        task = self._run.tasks.task(arm, level, "train", i // len(self._cells))
        return trace_row(self._run.tasks, task, self._reader, self._stage.noise, self._run.seed, i)


def trace_row(source: TaskSource, task: Task, reader: AnswerReader, noise: float, seed: int, index: int) -> Sample:
    """A training row of one oracle trace: prompt and tool turns are context, assistant turns and their end token carry loss.

    Raises:
        ConfigError: the family has no oracle.
    """
    turns = source.trace(task, noise, generator("trace", seed, task.split, index))
    if turns is None:
        raise ConfigError(
            f"task family {source.name!r} has no oracle traces, so it cannot be demonstrated: leave the WarmUp stage out, or "
            "give rows with an 'answer'"
        )
    return conversation_row(f"trace/{task.id}/{index}", task.public_view().messages, turns, reader)
