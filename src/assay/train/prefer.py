"""The stage of given preferences: judged answers, walked in a seeded order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError
from assay.core.fields import check_positive, later
from assay.core.import_path import filed_as
from assay.core.protocols import Tokenizer
from assay.core.rollout import Ids, ids_of
from assay.core.task import question_text
from assay.objective.methods import dpo
from assay.objective.objective import Objective
from assay.objective.preferences import Preference, preference_batch, shared_prompts
from assay.runtime.settings import LearnerSettings
from assay.train.char_coverage import spelling_of
from assay.train.data import rows_of
from assay.train.given_checks import PREFERRED, check_preferred
from assay.train.method_names import refuse_name
from assay.train.offline_rows import OfflineRows, in_order
from assay.train.stage_rows import StageRows
from assay.train.until import Until

if TYPE_CHECKING:
    from assay.train.run import Run
    from assay.train.wiring import Wiring

__all__ = ["Prefer", "Preferences", "preferences_of"]


@filed_as("assay.train.run:Prefer")
@dataclass(frozen=True, slots=True, kw_only=True)
class Prefer(OfflineRows):
    """A stage on given preferences: answers that people or programs have judged.

    Attributes:
        data: a file of rows (JSON lines, CSV, Parquet), a folder of them, ``hub:OWNER/NAME@REVISION:FILES``, or the rows
            themselves; `assay.objective.Preference` has their three forms. A file is read when the run begins and when it is
            resumed, and must stay as it is until the run has ended.
        steps: optimiser steps.
        batch: rows per step: pairs, or judged answers, or ranked lists. They are walked in a seeded order, anew each epoch.
        objective, learner: what is minimised, and how; the weights that the stage starts from are the reference.
        until: early end, by an evaluation; None runs all steps.

    >>> Prefer(data=[{"prompt": "2+2=", "chosen": "4", "rejected": "5"}], steps=10, batch=1).updates
    1
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    steps: int = 100
    batch: int = 32
    objective: Objective = field(default_factory=dpo)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    until: Until | None = later(None)

    def __post_init__(self) -> None:
        refuse_name(self)
        check_positive(self, "steps", "batch")
        self.settle()

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "preferences"

    def rows(self, run: Run, tokenizer: Tokenizer) -> Preferences:
        """The preferences."""
        return Preferences(run, self, tokenizer)

    def check(self, run: Run) -> None:
        """Looks at the objective and at the rows."""
        check_preferred(self)
        preferences_of(self)

    def check_rows(self, run: Run, tokenizer: Tokenizer, context: int) -> None:
        """Looks at every row's texts and lengths."""
        self.rows(run, tokenizer).check(context)

    def training_texts(self) -> Iterator[tuple[str, str]]:
        """The prompts."""
        for row in preferences_of(self):
            yield row.place, "\n".join(question_text(row.messages))

    def count_rows(self, run: Run) -> StageRows:
        """The preferences, counted: a row for each answer."""
        given = preferences_of(self)
        most = max(len(p.answers) for p in given)
        return StageRows(
            step=self.batch * most, pool=len(given), what="preferences", batch=self.batch, shared=shared_prompts(given)
        )

    def wire(self, wiring: Wiring, objective: Objective) -> Prefer:
        """Under a method for preferences; what remains to be seen of it, `assay.train.given_checks` says."""
        method = wiring.method
        acts = any(PREFERRED in (t.streams or (PREFERRED,)) for t in objective.losses)
        if not acts or method.requires.demonstrations:
            raise ConfigError(
                f"{method.name} does not learn from given preferences (stage Prefer): name it in a stage of reinforcement "
                "learning, as recipe quickstart has one, or name a method for preferences here (dpo, kto, simpo, ...)"
            )
        return replace(self, objective=objective, learner=wiring.learner(self.learner, objective, self.steps))


class Preferences:
    """The preferences of a stage as batches: number ``i`` is a pure function of the run's seed and ``i``.

    Args:
        run, stage: settings.
        tokenizer: of the model.

    Raises:
        ConfigError, DataError: as `preferences_of`.
    """

    def __init__(self, run: Run, stage: Prefer, tokenizer: Tokenizer) -> None:
        self._seed, self._stage, self._tokenizer = run.seed, stage, tokenizer
        self._rows = preferences_of(stage)

    def batch(self, step: int) -> Batch:
        """The preferences of one step, whole: all are walked in a seeded order, anew each epoch."""
        size = self._stage.batch
        rows = in_order("preferences", self._seed, len(self._rows), range(step * size, (step + 1) * size))
        return preference_batch([self._rows[i] for i in rows], self._tokenizer.render, self._answer)

    def check(self, context: int) -> None:
        """Looks at every row.

        Args:
            context: longest row of the model.

        Raises:
            DataError: text that the tokenizer lacks, or more than the context holds; names the row, the field and a fix.
        """
        missing_in = spelling_of(self._tokenizer)
        for row in self._rows:
            try:
                asked = len(self._tokenizer.render(row.messages))
            except DataError as error:
                raise DataError(f"{row.place}, field 'prompt': {error}") from None
            for name, text in zip(row.fields, row.answers, strict=True):
                if missing := missing_in(text):
                    raise DataError(
                        f"{row.place}, field {name!r}: the model's tokenizer lacks {', '.join(map(repr, missing))}, so it would "
                        "learn to write something else: use a model that has them (Scratch.alphabet), or leave the row out"
                    )
                tokens = asked + len(self._answer(text))
                if tokens > context:
                    raise DataError(
                        f"{row.place}, field {name!r}: prompt ({asked} tokens), answer and end are {tokens} tokens, but the "
                        f"model's context holds {context}: shorten the texts, leave the row out, or use a model with more "
                        "positions"
                    )

    def _answer(self, text: str) -> Ids:
        return ids_of([*self._tokenizer.encode(text), self._tokenizer.eos])


def preferences_of(stage: Prefer) -> tuple[Preference, ...]:
    """The rows of a stage, checked as far as they can be without a model.

    Raises:
        ConfigError: no data, or less than a batch of it.
        DataError: a row is wrong, or has fewer answers than the objective compares.
    """
    rows = tuple(Preference.of(row, place) for place, row in rows_of(stage))
    stage.check_batch(rows)
    least = stage.objective.min_group
    for row in rows:
        if len(row.answers) < least:
            raise DataError(
                f"{row.place}: {len(row.answers)} answer where the objective compares at least {least} to a prompt: give pairs "
                "('chosen' and 'rejected'), or use a method that judges each answer by itself, such as kto"
            )
    return rows
