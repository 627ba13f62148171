"""A demonstration: a conversation whose assistant is to be imitated, and its training row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, cast

import numpy as np

from assay.core.errors import DataError, nearest
from assay.core.rollout import Ids, ids_of
from assay.core.sample import Sample, supervised
from assay.core.task import TOOLS, Message
from assay.rollout.conversation import followed
from assay.rollout.saying import Reader

__all__ = ["Demonstration", "conversation_row"]

_TURNS = ("messages", "conversations")
_PROMPTS = ("prompt", "question", "problem", "instruction")
_ANSWERS = ("completion", "response", "output", "answer")
_ROLES = {
    "system": "system", "user": "user", "assistant": "assistant", "tool": "tool", "human": "user", "gpt": "assistant",
    TOOLS: TOOLS,
}  # fmt: skip
"""Roles by what rows call them; tools that a task declares open the rows that a teacher's attempts become."""
_NAMES = (("role", "from"), ("content", "value"))
_UNREAD = {
    "tools": "describe the tools in the system turn, in the words in which the environment reads calls",
    "tool_calls": "write the call into the content, in the words in which the environment reads it",
    "reasoning_content": "write the thought into the content, between the tags that Chat.thinking names",
    "thinking": "write the thought into the content, between the tags that Chat.thinking names",
}
"""Fields that say something of the conversation which would be lost, and where else to say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """A conversation to imitate.

    Attributes:
        opening: its first turns, which are only read.
        turns: the others; those of the assistant are imitated. The first and the last are the assistant's.
        place: where it was read, for messages.
    """

    opening: tuple[Message, ...]
    turns: tuple[Message, ...]
    place: str = field(default="demonstration", compare=False)

    @staticmethod
    def of(row: Mapping[str, Any], place: str = "demonstration") -> Demonstration:
        """A row in one of two forms. Turns are lists of ``{"role", "content"}``, or of ``{"from", "value"}``.

        - a conversation: ``messages`` (or ``conversations``) that end with the assistant's turn; every turn of the assistant is
          imitated;
        - a question and its answer: ``prompt`` (``question``, ``problem``, or ``instruction`` with ``input``), a text or turns,
          or ``messages`` that end before the answer; and ``completion`` (``response``, ``output``, ``answer``), a text, or turns
          that begin and end with the assistant's. Turns of the assistant in the prompt are only read.

        Of several names the first counts. Other fields, such as ``id`` or ``source``, are not read.

        Raises:
            DataError: a field is missing or wrong, or a turn says something that would be lost; names the place and a fix.

        >>> Demonstration.of({"prompt": "2+2=", "completion": "4"}).turns
        (Message(role='assistant', content='4'),)
        >>> asked = [{"role": "user", "content": "2+2="}, {"role": "assistant", "content": "4"}]
        >>> Demonstration.of({"messages": asked}) == Demonstration.of({"prompt": "2+2=", "completion": "4"})
        True
        """
        _check_unread(row, place)
        name = _first(row, _TURNS)
        if name:
            talk = _turns(row, name, place)
            start = next((i for i, turn in enumerate(talk) if turn.role == "assistant"), len(talk))
            if talk[-1].role == "assistant":
                return _checked(Demonstration(opening=talk[:start], turns=talk[start:], place=place), name)
            opening = talk
        else:
            name, opening = _asked(row, place)
        answer = _first(row, _ANSWERS)
        if not answer:
            raise DataError(f"{place}{_missing(row, _ANSWERS, 'completion')}, or 'messages' that end with the assistant's turn")
        if opening[-1].role == "assistant":
            raise DataError(f"{place}, field {name!r}: the last turn is the assistant's, but an answer follows; leave it out")
        turns = (Message("assistant", _text(row, answer, place)),) if isinstance(row[answer], str) else _turns(row, answer, place)
        return _checked(Demonstration(opening=opening, turns=turns, place=place), answer)

    def row(self, key: str, reader: Reader, everything: bool = False) -> Sample:
        """The training row; see `conversation_row`."""
        return conversation_row(key, self.opening, self.turns, reader, everything)


def conversation_row(
    key: str, opening: Sequence[Message], turns: Sequence[Message], reader: Reader, everything: bool = False
) -> Sample:
    """A training row of a conversation: assistant turns and the tokens that end them carry loss.

    Each turn's tokens are those that it has when it is said: an answer is encoded by itself, and what follows is written behind
    it. Nothing is tokenised again, so the row is what an attempt that said the same would have been.

    Args:
        key: name of the row.
        opening: turns that are only read.
        turns: the others, the assistant's and those that answer it.
        reader: of the model's tokenizer.
        everything: all tokens but the first carry loss.

    Raises:
        DataError: the chat template cannot write a turn, or the tokenizer a character.
    """
    tokenizer, told = reader.tokenizer, list(opening)
    pieces: list[tuple[Ids, bool]] = [(tokenizer.render(told), False)]
    for said, run in groupby(turns, lambda turn: turn.role == "assistant"):
        these = list(run)
        if said:
            these = [Message("assistant", reader.taught(turn.content, pieces[-1][0])) for turn in these]
            pieces += [(ids_of([*tokenizer.encode(turn.content), tokenizer.eos]), True) for turn in these]
        else:
            pieces.append((followed(tokenizer, told, these).ids, False))
        told += these
    made = supervised(key, pieces)
    return replace(made, mask=np.arange(len(made.ids)) > 0) if everything else made


def _checked(found: Demonstration, name: str) -> Demonstration:
    """What a row says, looked at.

    Raises:
        DataError: nothing is asked, an assistant's turn is empty, or stands behind another one, or is not there where it must.
    """
    place = f"{found.place}, field {name!r}"
    if not found.opening:
        raise DataError(f"{place}: the first turn is the assistant's; begin with what it answers")
    for at, turn in enumerate(found.turns):
        if turn.role == "assistant" and not turn.content:
            raise DataError(f"{place}: an empty turn of the assistant; give it a text, or leave the row out")
        if at and turn.role == found.turns[at - 1].role == "assistant":
            raise DataError(f"{place}: two turns of the assistant behind one another; make them one")
    for at, which in ((0, "first"), (-1, "last")):
        role = found.turns[at].role
        if role != "assistant":
            raise DataError(f"{place}: the {which} turn is of role {role!r}; an answer begins and ends with the assistant's")
    return found


def _asked(row: Mapping[str, Any], place: str) -> tuple[str, tuple[Message, ...]]:
    """The prompt: its field and its turns."""
    name = _first(row, _PROMPTS)
    if not name:
        raise DataError(f"{place}{_missing(row, (*_PROMPTS, *_TURNS), 'prompt')}, or 'messages'")
    if not isinstance(row[name], str):
        return name, _turns(row, name, place)
    text, more = _text(row, name, place), row.get("input") if name == "instruction" else None
    return name, (Message("user", f"{text}\n{more}" if more else text),)


def _check_unread(fields: Mapping[str, Any], place: str) -> None:
    for name, instead in _UNREAD.items():
        if fields.get(name):
            raise DataError(f"{place}, field {name!r}: it would not be learned from; {instead}, and leave the field out")


def _turns(row: Mapping[str, Any], name: str, place: str) -> tuple[Message, ...]:
    value: Any = row[name]
    if not isinstance(value, list | tuple) or not value:
        raise DataError(f"{place}, field {name!r}: it is {_short(row[name])}; give a text, or a list of turns")
    return tuple(_turn(turn, f"{place}, field {name!r}, turn {at}") for at, turn in enumerate(cast("Sequence[Any]", value), 1))


def _turn(turn: Any, place: str) -> Message:
    shown = _short(turn)
    fields = cast("Mapping[str, Any]", turn if isinstance(turn, Mapping) else {})
    _check_unread(fields, place)
    role, content = (fields.get(x) if fields.get(x) is not None else fields.get(y) for x, y in _NAMES)
    if isinstance(role, str) and role in _ROLES and isinstance(content, str):
        return Message(_ROLES[role], content)
    raise DataError(f"{place}: {shown} is no turn; give {{'role': one of {', '.join(list(_ROLES)[:4])}, 'content': text}}")


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


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
