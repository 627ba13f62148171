"""A row that a person owns, as RL takes it: a conversation with its reward, its writer's log-probabilities and its weight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.rollout import Call, Completion, Rollout, Sampling, Span, Stop, ids_of
from assay.core.sample import Sample
from assay.core.task import Context, question_text
from assay.rollout.decode_text import AnswerReader, with_stop
from assay.train.demonstration import Demonstration

__all__ = ["ROW_STREAMS", "RewardedRow"]

ROW_STREAMS = ("expert", "offline", "replay")
"""Streams that rows of one answer can be of; those of preferences have a form of their own."""

_OWN = ("reward", "logprobs", "weight", "stream")
_OTHER_NAMES = {"log_probs": "logprobs", "logps": "logprobs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardedRow:
    """A conversation with what somebody knows of it.

    Attributes:
        demonstration: what was asked and answered.
        reward: what the answer is worth; None where nobody says.
        logprobs: log-probability of each token of the answer, its end token included, under the policy that wrote it; None where
            nobody knows.
        weight: factor of the row's loss.
        stream: as which the row is learned from; empty: as its source says.
        place: where it was read, for messages.
    """

    demonstration: Demonstration
    reward: float | None = None
    logprobs: tuple[float, ...] | None = None
    weight: float = 1.0
    stream: str = ""
    place: str = "row"

    @staticmethod
    def of(row: Mapping[str, Any], place: str = "row") -> RewardedRow:
        """A row in one of the forms of `Demonstration`, with up to four fields more: ``reward``, a number (or true, false);
        ``logprobs``, a list of numbers; ``weight``, a number above 0; ``stream``, one of `ROW_STREAMS`.

        Raises:
            DataError: a field is missing or wrong; names the place and a fix.

        >>> found = RewardedRow.of({"prompt": "2+2=", "answer": "4", "reward": 1, "stream": "offline"})
        >>> found.reward, found.weight, found.stream
        (1.0, 1.0, 'offline')
        """
        for name in row:
            meant = "" if name in _OWN else _meant_field(name)
            if meant and meant not in row:
                raise DataError(f"{place}, field {name!r}: did you mean {meant!r}? Call it so, or something that is less like it")
        logprobs, reward, weight = row.get("logprobs"), row.get("reward"), row.get("weight")
        stream = row.get("stream")
        if stream is not None and stream not in ROW_STREAMS:
            raise UnknownNameError(f"{place}, field 'stream':", str(stream), ROW_STREAMS)
        if weight is not None and not _number(weight, place, "weight") > 0:
            raise DataError(f"{place}, field 'weight': {weight!r} would learn nothing, or the opposite; leave the row out")
        return RewardedRow(
            demonstration=Demonstration.of({k: v for k, v in row.items() if k not in _OWN}, place),
            reward=None if reward is None else _number(reward, place, "reward"),
            logprobs=None if logprobs is None else _logprobs(logprobs, place),
            weight=1.0 if weight is None else _number(weight, place, "weight"),
            stream=stream or "",
            place=place,
        )

    @property
    def question(self) -> str:
        """What is asked, as `assay.core.task.question_text`: rows of one question are answers to one prompt."""
        return "\n".join(question_text(self.demonstration.opening))

    def sample(self, reader: AnswerReader) -> Sample:
        """The row's tokens; those of the answer carry loss.

        Raises:
            DataError: the template or the tokenizer cannot write it, or there is another number of ``logprobs`` than of tokens of
                the answer.
        """
        try:
            made = self.demonstration.row(self.place, reader)
        except (DataError, ConfigError) as error:
            raise DataError(f"{self.place}: {error}") from None
        said = int(made.mask.sum())
        if self.logprobs is not None and len(self.logprobs) != said:
            raise DataError(
                f"{self.place}, field 'logprobs': {len(self.logprobs)} numbers, and the answer has {said} tokens, the one that "
                "ends it included, under this model's tokenizer; give one each, or leave the field out"
            )
        return made

    def rollout(self, id: str, context: Context, reader: AnswerReader, version: int) -> Rollout:
        """The row as a rollout in a context, with a call for each turn of the assistant; where nobody knows the writer's
        log-probabilities they are NaN, so that an objective that reads them fails instead of learning from invented ones.

        Args:
            id: of the rollout.
            context: whose conversation is shown in the place of the row's own opening.
            reader: of the model's tokenizer.
            version: of weights that the tokens count as sampled by.
        """
        shown = replace(self, demonstration=replace(self.demonstration, opening=context.messages))
        made = shown.sample(reader)
        logp = np.full(len(made.ids), np.nan, np.float32)
        if self.logprobs is not None:
            logp[made.mask] = self.logprobs
        sampling = with_stop(Sampling(max_new_tokens=max(1, len(made.ids))), reader.tokenizer)
        calls: list[Call] = []
        for number, (start, end) in enumerate(_runs(made.mask)):
            completion = Completion(
                ids=ids_of(made.ids[start:end]),
                logp_engine=logp[start:end],
                spans=(Span(version, 0, end - start),),
                stop=Stop.DONE,
                sampling=sampling,
            )
            prefix = ids_of(made.ids[:start])
            thought, text = reader.read(prefix, completion.ids, completion)
            parent = number - 1 if number else None
            calls.append(Call(id=number, parent=parent, prefix=prefix, completion=completion, text=text, thought=thought))
        return Rollout(id=id, context=context, calls=tuple(calls), stop=Stop.DONE, seed=0)

    def offline_sample(self, reader: AnswerReader, stream: str) -> Sample:
        """The row for a batch that nobody samples: as `sample`, with ``logp_engine`` where the row tells it."""
        made = self.sample(reader)
        if self.logprobs is None:
            return replace(made, stream=stream)
        logp = np.zeros(len(made.ids), np.float32)
        logp[made.mask] = self.logprobs
        return replace(made, stream=stream, columns={"logp_engine": TokenColumn("logp_engine", logp, "user")})


def _meant_field(name: str) -> str:
    """Which field a name is a slip of; empty for none. Rows have fields of their own, so it must be very like one."""
    likest = max(_OWN, key=lambda own: SequenceMatcher(None, name, own).ratio())
    return _OTHER_NAMES.get(name) or (likest if SequenceMatcher(None, name, likest).ratio() > 0.82 else "")


def _number(value: Any, place: str, name: str) -> float:
    if not isinstance(value, bool | int | float) or not math.isfinite(value):
        raise DataError(f"{place}, field {name!r}: {value!r} is no finite number; give one, or leave the field out")
    return float(value)


def _logprobs(value: Any, place: str) -> tuple[float, ...]:
    given = cast("Sequence[Any]", value if isinstance(value, list | tuple) else ())
    if not given:
        raise DataError(f"{place}, field 'logprobs': give a list with a number for each token of the answer, or leave it out")
    for at, number in enumerate(given):
        if _number(number, f"{place}, token {at + 1}", "logprobs") > 1e-6:
            raise DataError(
                f"{place}, field 'logprobs', token {at + 1}: {number!r} is no log-probability, which is at most 0; are these "
                "probabilities? Take their logarithms"
            )
    return tuple(float(number) for number in given)


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where the runs of True begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
