"""Rows that a user owns, mixed into the steps of reinforcement learning: a source of them, and the checks before a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.fields import check_positive
from assay.core.protocols import Tokenizer
from assay.core.sample import STREAMS
from assay.objective.loss.base import LossTerm
from assay.objective.objective import Objective
from assay.objective.preferences import Preference
from assay.rollout.decode_text import AnswerReader
from assay.train.char_coverage import spelling_of
from assay.train.data import rows_of
from assay.train.offline_rows import settle_data, short
from assay.train.rewarded_rows import ROW_STREAMS, RewardedRow

if TYPE_CHECKING:
    from assay.train.reinforce import Reinforce

__all__ = [
    "RowSource",
    "check_source_rows",
    "check_sources",
    "preferences_in",
    "reads_engine",
    "reads_reward",
    "rows_in",
    "streams_in",
]

_PREFERENCE = "preference"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """Rows of a user's own, learned from beside the rollouts of each step of a `Reinforce` stage.

    Attributes:
        data: a file of rows (JSON lines, CSV, Parquet), a folder of them, ``hub:OWNER/NAME@REVISION:FILES``, or the rows
            themselves, in the forms of `RewardedRow`; of the stream ``preference`` in those of `assay.objective.Preference`. A
            file must stay as it is until the run has ended.
        stream: as what the rows are learned from where a row says nothing itself: ``expert``, demonstrations; ``offline``,
            answers with rewards; ``replay``, rollouts of an earlier run with their log-probabilities; ``preference``.
        match: ``prompt``: an answer joins the group of the step's task that asks the same, and shares its baseline; the task's
            verifier grades it unless the row has a reward. ``own``: rows are walked in a seeded order, those of one question as
            a group of their own.
        rows: with ``prompt`` answers that join a group at most, in their order in the data; with ``own`` questions per step.
        weight: factor of the loss of all its rows, beside their own ``weight``.

    Raises:
        ConfigError, UnknownNameError: a value out of range, or preferences that are to join groups.

    >>> RowSource(data=[{"prompt": "2+2=", "answer": "4"}]).stream
    'expert'
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    stream: str = "expert"
    match: Literal["prompt", "own"] = "prompt"
    rows: int = 1
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self, "rows")
        settle_data(self)
        if self.stream not in (*ROW_STREAMS, _PREFERENCE):
            raise UnknownNameError("RowSource.stream", self.stream, (*ROW_STREAMS, _PREFERENCE))
        if self.match not in ("prompt", "own"):
            raise UnknownNameError("RowSource.match", self.match, ("prompt", "own"))
        if self.stream == _PREFERENCE and self.match == "prompt":
            raise ConfigError("RowSource(stream='preference', match='prompt'): pairs are groups by themselves; use match='own'")
        if not 0 < self.weight < float("inf"):
            raise ConfigError(f"RowSource.weight={self.weight}: a factor of the loss; use a number above 0")

    @property
    def files(self) -> tuple[str, ...]:
        """The data, where that is a name."""
        return (self.data,) if isinstance(self.data, str) and self.data else ()

    def texts(self) -> Iterator[tuple[str, str]]:
        """Place and text of each question, in which an evaluation item might be found."""
        if self.stream == _PREFERENCE:
            from assay.core.task import question_text

            yield from ((p.place, "\n".join(question_text(p.messages))) for p in preferences_in(self))
        else:
            yield from ((row.place, row.question) for row in rows_in(self))


def rows_in(source: RowSource) -> tuple[RewardedRow, ...]:
    """The rows of a source of single answers, each with its stream.

    Raises:
        ConfigError: no data.
        DataError: a row is wrong; names it.
    """
    rows = rows_of(source)
    kept = _Identical(rows if isinstance(source.data, str) else source.data)
    return _parse_rows(kept, source.stream, source.weight, rows=_Identical(rows))


class _Identical:
    """A value that is the same as itself alone, so that rows are parsed once without being hashed."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identical) and self.value is other.value


_PARSED: dict[tuple[_Identical, str, float], tuple[RewardedRow, ...]] = {}
"""Rows of the sources that were asked for last; they are asked for several times before a run begins."""


def _parse_rows(kept: _Identical, stream: str, weight: float, rows: _Identical) -> tuple[RewardedRow, ...]:
    key = (kept, stream, weight)
    if key not in _PARSED:
        found = (RewardedRow.of(row, place) for place, row in rows.value)
        made = tuple(replace(row, stream=row.stream or stream, weight=row.weight * weight) for row in found)
        while len(_PARSED) >= 8:
            del _PARSED[next(iter(_PARSED))]
        _PARSED[key] = made
    return _PARSED[key]


def preferences_in(source: RowSource) -> tuple[Preference, ...]:
    """The rows of a source of preferences; raises as `rows_in`."""
    return tuple(Preference.of(row, place) for place, row in rows_of(source))


def streams_in(source: RowSource) -> tuple[str, ...]:
    """The streams that its rows are of."""
    return (_PREFERENCE,) if source.stream == _PREFERENCE else tuple(dict.fromkeys(row.stream for row in rows_in(source)))


# ---- what an objective reads of a stream ---------------------------------------------------------------------------------


def _acting(objective: Objective, stream: str) -> list[LossTerm]:
    return [t for t in objective.losses if not t.streams or stream in t.streams]


def reads_reward(objective: Objective, stream: str) -> str:
    """What reads the rewards of a stream's rows, for messages; empty where nothing does."""
    if objective.uses_reward and stream in objective.scalarise.streams:
        return "the statistics of the objective"
    return next((f"{type(t).__name__} ({t.name!r})" for t in _acting(objective, stream) if t.reward), "")


def reads_engine(objective: Objective, stream: str) -> str:
    """What compares the rows of a stream with who wrote them, for messages; empty where nothing does."""
    for term in _acting(objective, stream):
        old = stream == "replay" and "old" in term.anchors  # the old policy of a replayed rollout is its sampler
        if old or "engine" in term.anchors or "logp_engine" in term.needs:
            return f"{type(term).__name__} ({term.name!r})"
    return ""


# ---- before a run -----------------------------------------------------------------------------------------------------------


def check_sources(stage: Reinforce) -> None:
    """Looks at the rows of a stage's sources as far as no model is needed.

    Raises:
        ConfigError: nothing in the objective learns from a stream of theirs, or nothing corrects for who sampled replayed rows.
        DataError: a row lacks what the objective reads of it; names it and a fix.
    """
    for number, source in enumerate(stage.sources):
        place = f"Reinforce.sources[{number}]"
        for stream in streams_in(source):
            _check_stream(stage.objective, stream, place)
        if source.stream == _PREFERENCE:
            if source.rows > len(preferences_in(source)):
                raise ConfigError(f"{place}.rows={source.rows}, and there are {len(preferences_in(source))} preferences")
            continue
        rows = rows_in(source)
        questions = len({row.question for row in rows})
        if source.match == "own" and source.rows > questions:
            raise ConfigError(
                f"{place}.rows={source.rows} questions a step, and the data has {questions}; use at most {questions}"
            )
        _check_fields(stage.objective, source, rows)


def _check_stream(objective: Objective, stream: str, place: str) -> None:
    acting = _acting(objective, stream)
    if not acting:
        known = sorted({s for t in objective.losses for s in t.streams})
        raise ConfigError(
            f"{place}: its rows are of the stream {stream!r}, and no term of the objective learns from that (they learn from "
            f"{', '.join(known)}): use a method that does (expert: visurf, rl_plus; offline: a_lol, dph_rl), add the stream to a "
            f"term's streams, or name another stream of {', '.join(STREAMS[1:])}"
        )
    rewarded = [t for t in acting if t.reward and t.terminal]
    if stream == "replay" and rewarded and not reads_engine(objective, stream):
        raise ConfigError(
            f"{place}: replayed rows were sampled by other weights, and {type(rewarded[0]).__name__} ({rewarded[0].name!r}) has "
            "no ratio to correct for it; use a method with one (grpo, dapo, ...), or name the rows expert or offline where the "
            "method learns from these as they are"
        )


def _check_fields(objective: Objective, source: RowSource, rows: Sequence[RewardedRow]) -> None:
    for row in rows:
        if row.reward is None and source.match == "own" and (reader := reads_reward(objective, row.stream)):
            raise DataError(
                f"{row.place} has no 'reward', which {reader} reads of the stream {row.stream!r}: give it, or have the task's "
                "verifier grade the row, with match='prompt'"
            )
        if row.reward is not None and objective.uses_reward and objective.scalarise.combines:
            raise DataError(
                f"{row.place}, field 'reward': the objective makes its reward of several components, and this is one number; "
                "leave the field out and have the verifier grade the row (match='prompt'), or use an objective without weights"
            )
        if row.logprobs is None and (reader := reads_engine(objective, row.stream)):
            raise DataError(
                f"{row.place} has no 'logprobs', and {reader} compares the rows of the stream {row.stream!r} with who wrote "
                "them: give the writer's log-probability of each token of the answer, or use a method that asks for none "
                "(visurf, rl_plus, a_lol, nll, ...)"
            )


def check_source_rows(sources: Sequence[RowSource], tokenizer: Tokenizer, context: int) -> None:
    """Looks at every row's text and length.

    Raises:
        DataError: text that the tokenizer or the chat template lacks, or too long a row; names it and a fix.
    """
    missing_in, reader = spelling_of(tokenizer), AnswerReader.of(tokenizer)
    for place, texts, length in chain.from_iterable(_lengths(source, tokenizer, reader) for source in sources):
        for text in texts:
            if missing := missing_in(text):
                raise DataError(
                    f"{place}, the answer {short(text)}: the model's tokenizer lacks {', '.join(map(repr, missing))}, so it "
                    "would learn to write something else: use a model that has them (Scratch.alphabet), or leave the row out"
                )
        if (tokens := length()) > context:
            raise DataError(
                f"{place}: {tokens} tokens, but the model's context holds {context}: shorten the texts, leave the row out, "
                "or use a model with more positions"
            )


def _lengths(
    source: RowSource, tokenizer: Tokenizer, reader: AnswerReader
) -> Iterator[tuple[str, tuple[str, ...], Callable[[], int]]]:
    """Of each row its place, its answers, and what counts its tokens."""
    if source.stream == _PREFERENCE:
        for p in preferences_in(source):
            yield p.place, p.answers, partial(_preference_tokens, p, tokenizer)
        return
    for row in rows_in(source):
        said = tuple(t.content for t in row.demonstration.turns if t.role == "assistant")
        yield row.place, said, partial(_row_tokens, row, reader)


def _preference_tokens(row: Preference, tokenizer: Tokenizer) -> int:
    return len(tokenizer.render(row.messages)) + max(len(tokenizer.encode(text)) for text in row.answers) + 1


def _row_tokens(row: RewardedRow, reader: AnswerReader) -> int:
    return len(row.sample(reader).ids)
