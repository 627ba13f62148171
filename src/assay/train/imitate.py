"""The rows of the stage of given demonstrations, in a seeded order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core.batch import Batch, pack_rows
from assay.core.errors import ConfigError, DataError, PlanError
from assay.core.protocols import Tokenizer
from assay.core.sample import Sample
from assay.core.task import CALLS
from assay.rollout.saying import Reader
from assay.train.data import rows_of
from assay.train.demonstration import Demonstration
from assay.train.given import in_order
from assay.train.prefer import check_given
from assay.train.run import Run
from assay.train.spelling import spelling_of
from assay.train.stages import Imitate

__all__ = ["Imitations", "Tokens", "check_objective", "demonstrations_of"]

STREAM = "expert"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Of all rows, each once: all tokens, and those that carry loss."""

    rows: int
    learned: int


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
        self._reader = Reader.of(tokenizer)
        self._rows = demonstrations_of(stage)

    def batch(self, step: int) -> Batch:
        """The demonstrations of one step: all are walked in a seeded order, anew each epoch."""
        size = self._stage.batch
        rows = in_order("imitation", self._seed, len(self._rows), range(step * size, (step + 1) * size))
        return pack_rows(list(enumerate(map(self._row, rows))), {"group": np.arange(size)})

    def check(self, context: int) -> Tokens:
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
                        f"{given.place}, the {turn.role}'s {_short(turn.content)}: the model's tokenizer lacks "
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
        return Tokens(tokens, learned)

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
    if stage.batch > len(rows):
        raise ConfigError(f"Imitate.batch={stage.batch}, but the data has {len(rows)} rows; use at most {len(rows)}")
    return rows


def check_objective(stage: Imitate) -> None:
    """Looks for what a stage of demonstrations cannot give to an objective.

    Raises:
        PlanError: a part reads rewards, acts on no demonstration, or needs a column that only sampled attempts bring.
    """
    objective = stage.objective
    for term in objective.losses:
        if term.reward:
            raise PlanError(
                f"Imitate: {type(term).__name__} ({term.name!r}) reads rewards, and demonstrations have none: use nll(), or "
                "judge attempts in a Reinforce stage, answers in a Prefer stage"
            )
    check_given(stage, STREAM, "nll()")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
