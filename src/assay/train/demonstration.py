"""A demonstration: a conversation whose assistant is to be imitated, and its training row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np

from assay.core.errors import DataError, nearest
from assay.core.protocols import CallTokenizer, Tokenizer
from assay.core.rollout import Ids, ids_of
from assay.core.sample import Sample, supervised_sample
from assay.core.task import CALLS, TOOLS, Message
from assay.rollout.block import render_following
from assay.rollout.decode_text import AnswerReader
from assay.train.turn_fields import DemonstrationTurn, check_row, read_tools, read_turns

__all__ = ["Demonstration", "conversation_row"]

_TURNS = ("messages", "conversations")
_PROMPTS = ("prompt", "question", "problem", "instruction")
_ANSWERS = ("completion", "response", "output", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """A conversation to imitate.

    Attributes:
        opening: its first turns, which are only read.
        turns: the others; those of the assistant are imitated. The first and the last are the assistant's.
        place: where it was read, for messages.
        skipped: places in ``turns`` of the assistant's turns that are only read, because the row says so.
        muted: fields of the other turns by which the row says that they carry no loss, for messages.
    """

    opening: tuple[Message, ...]
    turns: tuple[Message, ...]
    place: str = field(default="demonstration", compare=False)
    skipped: frozenset[int] = frozenset()
    muted: tuple[str, ...] = field(default=(), compare=False)

    @staticmethod
    def of(row: Mapping[str, Any], place: str = "demonstration") -> Demonstration:
        """A row in one of two forms. Turns are lists of ``{"role", "content"}``, or of ``{"from", "value"}``.

        - a conversation: ``messages`` (or ``conversations``) that end with the assistant's turn; every turn of the assistant is
          imitated;
        - a question and its answer: ``prompt`` (``question``, ``problem``, or ``instruction`` with ``input``), a text or turns,
          or ``messages`` that end before the answer; and ``completion`` (``response``, ``output``, ``answer``), a text, or turns
          that begin and end with the assistant's. Turns of the assistant in the prompt are only read.

        An assistant's turn may have ``tool_calls`` beside its content, as OpenAI writes them, and a row ``tools``, a list of
        schemas: both are written by the model's chat template. A turn of the assistant with ``weight`` 0, or ``train``,
        ``trainable`` or ``loss_mask`` false, is only read.

        Of several names the first counts. Other fields, such as ``id`` or ``source``, are not read.

        Raises:
            DataError: a field is missing or wrong, or a turn says something that would be lost; names the place and a fix.

        >>> Demonstration.of({"prompt": "2+2=", "completion": "4"}).turns
        (Message(role='assistant', content='4'),)
        >>> asked = [{"role": "user", "content": "2+2="}, {"role": "assistant", "content": "4"}]
        >>> Demonstration.of({"messages": asked}) == Demonstration.of({"prompt": "2+2=", "completion": "4"})
        True
        """
        check_row(row, place)
        tools, name = tuple(DemonstrationTurn(message, None) for message in read_tools(row, place)), _first(row, _TURNS)
        if name:
            talk = read_turns(row, name, place)
            start = next((i for i, turn in enumerate(talk) if _says(turn.message)), len(talk))
            if _says(talk[-1].message):
                return _check_demonstration(_make_demonstration((*tools, *talk[:start]), talk[start:], place), name)
            opening = talk
        else:
            name, opening = _prompt_turns(row, place)
        answer = _first(row, _ANSWERS)
        if not answer:
            raise DataError(f"{place}{_missing(row, _ANSWERS, 'completion')}, or 'messages' that end with the assistant's turn")
        if _says(opening[-1].message):
            raise DataError(f"{place}, field {name!r}: the last turn is the assistant's, but an answer follows; leave it out")
        if any(turn.learned for turn in opening):
            raise DataError(
                f"{place}, field {name!r}: turns in front of an answer are only read; give one conversation, 'messages', where "
                "they are to be learned from"
            )
        text = row[answer]
        turns = (
            (DemonstrationTurn(_answer(row, answer, place), None),) if isinstance(text, str) else read_turns(row, answer, place)
        )
        return _check_demonstration(_make_demonstration((*tools, *opening), turns, place), answer)

    def row(self, key: str, reader: AnswerReader, everything: bool = False) -> Sample:
        """The training row; see `conversation_row`.

        Raises:
            DataError: as there; or all tokens are to carry loss, and the row says of a turn that it has none.
        """
        if everything and self.muted:
            raise DataError(
                f"{self.place}: {self.muted[0]} says that it carries no loss, but Imitate(learn='all') gives loss to all turns "
                "but the assistant's that are switched off; leave the field out, or use learn='assistant'"
            )
        return conversation_row(key, self.opening, self.turns, reader, everything, self.skipped)


def conversation_row(
    key: str,
    opening: Sequence[Message],
    turns: Sequence[Message],
    reader: AnswerReader,
    everything: bool = False,
    skipped: Collection[int] = (),
) -> Sample:
    """A training row of a conversation: assistant turns and the tokens that end them carry loss.

    Each turn's tokens are those that it has when it is said: an answer is encoded by itself, and what follows is written behind
    it. Nothing is tokenised again, so the row is what a rollout that said the same would have been.

    Args:
        key: name of the row.
        opening: turns that are only read.
        turns: the others, the assistant's and those that answer it.
        reader: of the model's tokenizer.
        everything: all tokens but the first carry loss, those of ``skipped`` turns aside.
        skipped: places in ``turns`` of assistant's turns that carry no loss.

    Raises:
        DataError: the chat template cannot write a turn, or the tokenizer a character.
        ConfigError: the template writes no calls, or what was said otherwise once more follows.
    """
    tokenizer, told = reader.tokenizer, list(opening)
    pieces: list[tuple[Ids, bool]] = [(tokenizer.render(told), False)]
    silent = [not everything]
    for said, run in groupby(enumerate(turns), lambda turn: _says(turn[1])):
        these = list(run)
        if not said:
            heard = [turn for _, turn in these]
            pieces.append((render_following(tokenizer, told, heard).ids, False))
            silent.append(not everything)
            told += heard
            continue
        before = pieces[-1][0]
        for at, turn in these:
            turn = turn if turn.role == CALLS else Message("assistant", reader.format_answer(turn.content, before))
            pieces.append((_turn_ids(tokenizer, told, turn), at not in skipped))
            silent.append(at in skipped)
            told.append(turn)
    made = supervised_sample(key, pieces)
    if not everything:
        return made
    mask = ~np.repeat(silent, [len(ids) for ids, _ in pieces])
    return replace(made, mask=mask & (np.arange(len(mask)) > 0))


def _turn_ids(tokenizer: Tokenizer, told: Sequence[Message], turn: Message) -> Ids:
    """The ids of an assistant's turn, with those that end it."""
    if turn.role != CALLS:
        return ids_of([*tokenizer.encode(turn.content), tokenizer.eos])
    if not isinstance(tokenizer, CallTokenizer):
        raise DataError("this tokenizer writes no calls of tools; write them into the content, as the environment reads them")
    return tokenizer.render_turn(told, turn)


def _says(message: Message) -> bool:
    """Whether a turn is the assistant's."""
    return message.role in ("assistant", CALLS)


def _make_demonstration(opening: Sequence[DemonstrationTurn], turns: Sequence[DemonstrationTurn], place: str) -> Demonstration:
    silent = [turn.message.role for turn in (*opening, *turns) if turn.learned is False and not _says(turn.message)]
    return Demonstration(
        opening=tuple(turn.message for turn in opening),
        turns=tuple(turn.message for turn in turns),
        place=place,
        skipped=frozenset(i for i, turn in enumerate(turns) if turn.learned is False and _says(turn.message)),
        muted=tuple(f"a field of the {role}'s turn" for role in silent),
    )


def _check_demonstration(found: Demonstration, name: str) -> Demonstration:
    """What a row says, looked at.

    Raises:
        DataError: nothing is asked, an assistant's turn is empty, or stands behind another one, or is not there where it must, or
            none is learned from.
    """
    place = f"{found.place}, field {name!r}"
    if not any(turn.role != TOOLS for turn in found.opening):
        raise DataError(f"{place}: the first turn is the assistant's; begin with what it answers")
    for at, turn in enumerate(found.turns):
        if _says(turn) and not turn.content:
            raise DataError(f"{place}: an empty turn of the assistant; give it a text, or leave the row out")
        if at and _says(turn) and _says(found.turns[at - 1]):
            raise DataError(f"{place}: two turns of the assistant behind one another; make them one")
    for at, which in ((0, "first"), (-1, "last")):
        if not _says(found.turns[at]):
            role = found.turns[at].role
            raise DataError(f"{place}: the {which} turn is of role {role!r}; an answer begins and ends with the assistant's")
    if len(found.skipped) == sum(map(_says, found.turns)):
        raise DataError(f"{place}: every turn of the assistant is switched off, so nothing is learned from; leave the row out")
    return found


def _prompt_turns(row: Mapping[str, Any], place: str) -> tuple[str, tuple[DemonstrationTurn, ...]]:
    """The prompt: its field and its turns."""
    name = _first(row, _PROMPTS)
    if not name:
        raise DataError(f"{place}{_missing(row, (*_PROMPTS, *_TURNS), 'prompt')}, or 'messages'")
    if not isinstance(row[name], str):
        return name, read_turns(row, name, place)
    text, more = _text(row, name, place), row.get("input") if name == "instruction" else None
    return name, (DemonstrationTurn(Message("user", f"{text}\n{more}" if more else text), None),)


def _answer(row: Mapping[str, Any], name: str, place: str) -> Message:
    return Message("assistant", _text(row, name, place))


def _text(row: Mapping[str, Any], name: str, place: str) -> str:
    if not row[name]:
        raise DataError(f"{place}, field {name!r}: an empty text; give at least one character, or leave the row out")
    return row[name]


def _first(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """Which of the fields the row has; tables have nothing in some. Empty for none."""
    return next((name for name in names if row.get(name) is not None), "")


def _missing(row: Mapping[str, Any], names: Sequence[str], usual: str) -> str:
    """What to say of a row without any of the fields."""
    slip = next((found for name in row if name not in names and (found := nearest(name, names))), "")
    said = next((name for name in row if slip and name not in names and nearest(name, names) == slip), "")
    if said:
        return f", field {said!r}: did you mean {slip!r}? A row has {usual!r}"
    return f": none of {', '.join(map(repr, names))} among its fields {sorted(row)}; give {usual!r}"
