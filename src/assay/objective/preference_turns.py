"""Prompts and answers of preferences: texts, or conversations whose last turn is the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.task import Message

__all__ = ["Answer", "answer_of", "list_entries", "prompt_of", "shorten", "field_text"]

Answer = tuple[tuple[Message, ...], str]
"""The turns in front of an answer, none of a bare text, and the answer."""

_ROLES = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "human": "user",
    "gpt": "assistant",
}
_LOST = ("tool_calls", "function_call", "reasoning_content", "thinking")
"""Fields of a turn that say what would be lost."""
_LOST_OF_ROW = ("tools", "images")


def answer_of(row: Mapping[str, Any], name: str, place: str) -> Answer:
    """An answer: a text, or a list of turns that ends with the assistant's.

    Raises:
        DataError: it is neither, or empty; names the place, the field and a fix.

    >>> answer_of({"chosen": [{"role": "user", "content": "2+2="}, {"role": "assistant", "content": "4"}]}, "chosen", "here")
    ((Message(role='user', content='2+2='),), '4')
    """
    value = row.get(name)
    turns = [_turn(turn, f"{place}, field {name!r}") for turn in list_entries(value)]
    if turns and turns[-1].role != "assistant":
        raise DataError(
            f"{place}, field {name!r}: the last turn is of role {turns[-1].role!r}; an answer ends with the assistant's"
        )
    text = turns[-1].content if turns else value
    if not isinstance(text, str):
        raise DataError(f"{place}, field {name!r}: {field_text(row, name)}; give a text")
    if not text:
        raise DataError(f"{place}, field {name!r}: an empty text; give an answer of at least one character, or leave the row out")
    return tuple(turns[:-1]), text


def prompt_of(row: Mapping[str, Any], answers: Mapping[str, Answer], place: str) -> tuple[Message, ...]:
    """The conversation that is answered: ``prompt``, a text or turns, with ``system`` in front of it; or what the answers' own
    turns say, which may also hold it whole.

    Args:
        row: with its other fields.
        answers: by their fields.
        place: of the row, for errors.

    Raises:
        DataError: there is none, the answers go on from different conversations, or from another one than the prompt, or the row
            says what would be lost.
    """
    for name in _LOST_OF_ROW:
        if row.get(name):
            raise DataError(f"{place}, field {name!r}: it would not be learned from; leave the row out, or the field")
    before = _common(answers, place)
    if row.get("prompt") is None and before:
        asked = before
    else:
        asked = _merge_conversations(_prompt(row, place), before, place)
    if asked[-1].role == "assistant":
        raise DataError(f"{place}, field 'prompt': the last turn is the assistant's, but answers follow; leave it out")
    return _with_system(row, asked, place)


def list_entries(value: Any) -> Sequence[Any]:
    """The entries of a list; none of anything else."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def field_text(row: Mapping[str, Any], name: str) -> str:
    """What a row says of a field that is wrong."""
    return "missing" if row.get(name) is None else f"it is {shorten(row[name])}"


def shorten(value: object) -> str:
    """A value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _common(answers: Mapping[str, Answer], place: str) -> tuple[Message, ...]:
    """The turns in front of the answers: of all alike, those of bare texts aside."""
    found = [(name, before) for name, (before, _) in answers.items() if before]
    for name, before in found[1:]:
        if before != found[0][1]:
            pairs = enumerate(zip(before, found[0][1], strict=False), 1)
            at = next((i for i, (one, other) in pairs if one != other), min(len(before), len(found[0][1])) + 1)
            raise DataError(
                f"{place}, field {name!r}: its conversation is not that of {found[0][0]!r} at turn {at}, before the answer; "
                "the last turn alone may differ"
            )
    return found[0][1] if found else ()


def _merge_conversations(asked: tuple[Message, ...], before: tuple[Message, ...], place: str) -> tuple[Message, ...]:
    """The longer of two tellings of one conversation, of which the shorter is the beginning or the end."""
    long, short = (asked, before) if len(asked) >= len(before) else (before, asked)
    words, part = ([(m.role, m.content.strip()) for m in turns] for turns in (long, short))
    if part and part not in (words[: len(part)], words[-len(part) :]):
        raise DataError(
            f"{place}, field 'prompt': it is {shorten(asked[-1].content)}, but the turns in front of the answers say otherwise: "
            f"{shorten(before[-1].content)}; leave one of them out"
        )
    return long


def _prompt(row: Mapping[str, Any], place: str) -> tuple[Message, ...]:
    prompt = row.get("prompt")
    turns = tuple(_turn(turn, f"{place}, field 'prompt'") for turn in list_entries(prompt))
    if turns:
        return turns
    if not isinstance(prompt, str) or not prompt:
        raise DataError(f"{place}, field 'prompt': {field_text(row, 'prompt')}; give a text, or a list of turns")
    return (Message("user", prompt),)


def _with_system(row: Mapping[str, Any], asked: tuple[Message, ...], place: str) -> tuple[Message, ...]:
    system = row.get("system")
    if not isinstance(system, str) or not system:
        return asked
    if asked[0].role != "system":
        return (Message("system", system), *asked)
    if asked[0].content.strip() != system.strip():
        raise DataError(f"{place}, field 'system': the conversation has another system turn; leave one of them out")
    return asked


def _turn(turn: Any, place: str) -> Message:
    shown = shorten(turn)
    fields = cast("Mapping[str, Any]", turn if isinstance(turn, Mapping) else {})
    for name in _LOST:
        if fields.get(name):
            raise DataError(
                f"{place}: {name!r} of a turn would not be learned from; write it into the content, or leave the row out"
            )
    role, content = (fields.get(x) if fields.get(x) is not None else fields.get(y) for x, y in _NAMES)
    if isinstance(role, str) and role in _ROLES and isinstance(content, str):
        return Message(_ROLES[role], content)
    raise DataError(f"{place}: {shown} is no turn; give {{'role': one of {', '.join(list(_ROLES)[:4])}, 'content': text}}")


_NAMES = (("role", "from"), ("content", "value"))
