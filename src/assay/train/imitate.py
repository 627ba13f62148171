"""The stage of given demonstrations, walked in a seeded order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from assay.core.batch import Batch, pack_rows
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.fields import check_positive, later
from assay.core.import_path import filed_as
from assay.core.protocols import Tokenizer
from assay.core.sample import Sample
from assay.core.task import CALLS, question_text
from assay.objective.methods import nll
from assay.objective.objective import Objective
from assay.rollout.decode_text import AnswerReader
from assay.runtime.settings import LearnerSettings
from assay.train.char_coverage import spelling_of
from assay.train.data import rows_of
from assay.train.demonstration import Demonstration
from assay.train.given_checks import check_imitation
from assay.train.method_names import refuse_name
from assay.train.offline_rows import OfflineRows, in_order, short
from assay.train.stage_rows import StageRows, TokenCounts
from assay.train.until import Until

if TYPE_CHECKING:
    from assay.train.run import Run

__all__ = ["Imitate", "Imitations", "demonstrations_of"]


@filed_as("assay.train.run:Imitate")
@dataclass(frozen=True, slots=True, kw_only=True)
class Imitate(OfflineRows):
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
        until: early end, by an evaluation; None runs all steps.

    >>> Imitate(data=[{"prompt": "2+2=", "completion": "4"}], steps=10, batch=1).updates
    1
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    steps: int = 100
    batch: int = 32
    learn: Literal["assistant", "all"] = "assistant"
    objective: Objective = field(default_factory=nll)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    until: Until | None = later(None)

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

    def rows(self, run: Run, tokenizer: Tokenizer) -> Imitations:
        """The demonstrations."""
        return Imitations(run, self, tokenizer)

    def check(self, run: Run) -> None:
        """Looks at the objective and at the rows."""
        check_imitation(self)
        demonstrations_of(self)

    def check_rows(self, run: Run, tokenizer: Tokenizer, context: int) -> TokenCounts:
        """Looks at every row's text and length."""
        return self.rows(run, tokenizer).check(context)

    def training_texts(self) -> Iterator[tuple[str, str]]:
        """Each turn that asks or answers an assistant, by itself: a later one may be an evaluation item too."""
        for row in demonstrations_of(self):
            for text in question_text((*row.opening, *row.turns)):
                yield row.place, text

    def count_rows(self, run: Run) -> StageRows:
        """The demonstrations, counted."""
        return StageRows(step=self.batch, pool=len(demonstrations_of(self)), what="demonstrations", batch=self.batch)


class Imitations:
    """The demonstrations of a stage as batches: number ``i`` is a pure function of the run's seed and ``i``.

    Args:
        run, stage: settings.
        tokenizer: of the model.

    Raises:
        ConfigError, DataError: as `demonstrations_of`.
    """

    def __init__(self, run: Run, stage: Imitate, tokenizer: Tokenizer) -> None:
        self._seed, self._stage, self._tokenizer = run.seed, stage, tokenizer
        self._reader = AnswerReader.of(tokenizer)
        self._rows = demonstrations_of(stage)

    def batch(self, step: int) -> Batch:
        """The demonstrations of one step: all are walked in a seeded order, anew each epoch."""
        size = self._stage.batch
        rows = in_order("imitation", self._seed, len(self._rows), range(step * size, (step + 1) * size))
        return pack_rows(list(enumerate(map(self._row, rows))), {"group": np.arange(size)})

    def check(self, context: int) -> TokenCounts:
        """Looks at every row.

        Args:
            context: longest row of the model.

        Returns:
            How many tokens there are.

        Raises:
            DataError: text that the tokenizer or the chat template lacks, or too long a row; names the row and a fix.
        """
        missing_in = spelling_of(self._tokenizer)
        tokens = learned = 0
        for i, given in enumerate(self._rows):
            imitated = [t for i, t in enumerate(given.turns) if t.role in ("assistant", CALLS) and i not in given.skipped]
            for turn in imitated if self._stage.learn == "assistant" else (*given.opening, *given.turns):
                if missing := missing_in(turn.content):
                    raise DataError(
                        f"{given.place}, the {turn.role}'s {short(turn.content)}: the model's tokenizer lacks "
                        f"{', '.join(map(repr, missing))}, so it would learn to write something else: use a model that has them "
                        "(Scratch.alphabet), or leave the row out"
                    )
            row = self._row(i)
            if len(row.ids) > context:
                raise DataError(
                    f"{given.place}: {len(row.ids)} tokens with what the chat template writes, but the model's context holds "
                    f"{context}: shorten the texts, leave the row out, or use a model with more positions"
                )
            tokens, learned = tokens + len(row.ids), learned + int(row.mask.sum())
        return TokenCounts(tokens, learned)

    def _row(self, i: int) -> Sample:
        given = self._rows[i]
        try:
            return given.row(f"imitation/{i}", self._reader, self._stage.learn == "all")
        except (DataError, ConfigError) as error:  # of the template or the tokenizer
            raise DataError(f"{given.place}: {error}") from None


def demonstrations_of(stage: Imitate) -> tuple[Demonstration, ...]:
    """The rows of a stage, checked as far as they can be without a model.

    Raises:
        ConfigError: no data, or less than a batch of it.
        DataError: a row is wrong.
    """
    rows = tuple(Demonstration.of(row, place) for place, row in rows_of(stage))
    stage.check_batch(rows)
    return rows
