"""The rows of the preference stage: judged answers that were given, in a seeded order."""

from __future__ import annotations

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError, PlanError
from assay.core.protocols import Tokenizer
from assay.core.rollout import Ids, ids_of
from assay.objective.objective import Objective
from assay.objective.preferences import Preference, preference_batch
from assay.train.data import rows_of
from assay.train.given import in_order
from assay.train.run import Run
from assay.train.spelling import spelling_of
from assay.train.stages import GivenRows, Prefer

__all__ = ["Preferences", "check_given", "check_objective", "preferences_of"]

STREAM = "preference"
_OF_ATTEMPTS = ("group", "valid", "length", "truncated", "tokens")
_ELSE = "train by it in a Reinforce stage"


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
    if stage.batch > len(rows):
        raise ConfigError(f"Prefer.batch={stage.batch}, but the data has {len(rows)} rows; use at most {len(rows)}")
    least = stage.objective.min_group
    for row in rows:
        if len(row.answers) < least:
            raise DataError(
                f"{row.place}: {len(row.answers)} answer where the objective compares at least {least} to a prompt: give pairs "
                "('chosen' and 'rejected'), or use a method that judges each answer by itself, such as kto"
            )
    return rows


def check_objective(stage: Prefer) -> None:
    """Looks for what a preference stage cannot give to an objective.

    Raises:
        PlanError: nothing asks which answer is better; a part acts on no preference, or takes statistics of none; it needs a
            column that only sampled attempts bring, or a component that only a verifier gives. Names the part and a fix.
    """
    objective = stage.objective
    if not objective.pays:
        names = " and ".join(type(term).__name__ for term in objective.losses)
        raise PlanError(
            f"Prefer: {names} asks for no rewards, so it would imitate rejected answers as it does chosen ones: use a method for "
            "preferences (dpo, orpo, kto, ...); dpo(nll=1.0) imitates the chosen ones too"
        )
    check_given(stage, STREAM, "a method for preferences (dpo, simpo, kto, ...)")
    if objective.credit and STREAM not in objective.scalarise.streams:
        raise PlanError(
            f"Prefer: {type(objective.credit[0]).__name__} takes statistics of {', '.join(objective.scalarise.streams)}, so of "
            f"none of the stage's rows: add {STREAM!r} to Scalarise.streams, or {_ELSE}"
        )
    _check_attempts(stage, objective)
    _check_reward(stage, objective)


def check_given(stage: GivenRows, stream: str, fitting: str) -> None:
    """Looks for what rows of texts cannot give to an objective.

    Args:
        stage: settings.
        stream: of its rows.
        fitting: names what can be used, for messages.

    Raises:
        PlanError: a term acts on none of the rows, or needs a column that only sampled attempts bring.
    """
    of, objective = type(stage).__name__, stage.objective
    for term in objective.losses:
        if term.streams and stream not in term.streams:
            raise PlanError(
                f"{of}: {type(term).__name__} ({term.name!r}) acts on rows of {', '.join(term.streams)}, but the stage's rows "
                f"are of the stream {stream!r}, so it would do nothing: use {fitting}, add the stream to the term's streams, or "
                f"{_ELSE}"
            )
    brought = objective.plan(stage.updates, stage.learner.offers).columns
    for part in (*objective.credit, *objective.losses):
        for column in part.needs:
            if column in brought and column not in ("ids", "mask"):
                raise PlanError(
                    f"{of}: {type(part).__name__} needs the column {column!r}, which comes with sampled attempts, but the "
                    f"stage's rows are texts: use {fitting}, or {_ELSE}"
                )


def _check_attempts(stage: Prefer, objective: Objective) -> None:
    for part in (*objective.credit, *objective.losses):
        for name in part.attempts:
            if name not in _OF_ATTEMPTS:
                raise PlanError(
                    f"Prefer: {type(part).__name__} reads {name!r} of each attempt, which the stage's rows do not have: leave "
                    f"the part out, or {_ELSE}"
                )


def _check_reward(stage: Prefer, objective: Objective) -> None:
    for name, _ in objective.scalarise.weights:
        if name != "reward":
            raise PlanError(
                f"Prefer: Scalarise.weights names a verifier's component {name!r}, but no verifier judges the stage's rows: "
                f"leave the weights out, or {_ELSE}"
            )
