"""The rows of the supervised stage: a family's oracle traces."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from assay.core.batch import Batch, pack_rows
from assay.core.errors import ConfigError
from assay.core.protocols import TaskSource, Tokenizer
from assay.core.sample import Sample
from assay.core.seeds import generator
from assay.core.task import Task
from assay.rollout.saying import Reader
from assay.train.demonstration import conversation_row
from assay.train.given import in_order
from assay.train.levels import arms_of
from assay.train.run import Run
from assay.train.stages import WarmUp

__all__ = ["Demonstrations", "trace_row"]


class Demonstrations:
    """The traces of a warm-up: number ``i`` is a pure function of the run's seed and ``i``."""

    def __init__(self, run: Run, stage: WarmUp, tokenizer: Tokenizer) -> None:
        self._run, self._stage, self._reader = run, stage, Reader.of(tokenizer)
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


def trace_row(source: TaskSource, task: Task, reader: Reader, noise: float, seed: int, index: int) -> Sample:
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
    return conversation_row(f"trace/{task.id}/{index}", task.exposed().messages, turns, reader)
