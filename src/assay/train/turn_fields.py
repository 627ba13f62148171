"""The fields of a turn and of a row of demonstrations: text, calls, tools, and switches that say what is learned."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from assay.core.canon import plain
from assay.core.errors import DataError
from assay.core.import_path import filed_as
from assay.core.task import CALLS, TOOLS, Message

__all__ = ["DemonstrationTurn", "check_row", "check_unread", "read_tools", "read_turns", "shorten"]

_ROLES = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "human": "user",
    "gpt": "assistant",
    "function": "tool",
    TOOLS: TOOLS,
    CALLS: CALLS,
}
"""Roles by what rows call them; the last two are those of the rows that a teacher's rollouts become."""
_NAMES = (("role", "from"), ("content", "value"))
_SWITCHES = ("weight", "train", "loss_mask", "trainable")
"""What tools call the field by which a turn is learned from, or only read."""
_UNREAD = {
    "reasoning_content": "write the thought into the content, between the tags that Chat.thinking names",
    "thinking": "write the thought into the content, between the tags that Chat.thinking names",
}
"""Fields that say something of the conversation which would be lost, and where else to say it."""


@filed_as("assay.train.turn_fields:Turn")
class DemonstrationTurn(NamedTuple):
    """A turn, and what its row says of learning from it; None where it says nothing."""

    message: Message
    learned: bool | None


def read_turns(row: Mapping[str, Any], name: str, place: str) -> tuple[DemonstrationTurn, ...]:
    """The turns in a field of a row.

    Raises:
        DataError: it is no list of turns, or a turn says what would be lost or contradicts itself; names the turn and a fix.

    >>> row = {"messages": [{"role": "user", "content": "2+2="}, {"role": "assistant", "content": "5", "weight": 0}]}
    >>> [(turn.message.content, turn.learned) for turn in read_turns(row, "messages", "here")]
    [('2+2=', None), ('5', False)]
    """
    value: Any = row[name]
    if not isinstance(value, list | tuple) or not value:
        raise DataError(f"{place}, field {name!r}: it is {shorten(row[name])}; give a text, or a list of turns")
    pending: list[str] = []
    made: list[DemonstrationTurn] = []
    for at, turn in enumerate(cast("Sequence[Any]", value), 1):
        made.append(_turn(turn, f"{place}, field {name!r}, turn {at}", pending))
    return tuple(made)


def read_tools(row: Mapping[str, Any], place: str) -> tuple[Message, ...]:
    """What a row's ``tools`` declare: a list of schemas, or such a list as JSON; nothing where there are none.

    Raises:
        DataError: it is neither.
    """
    value: Any = row.get("tools")
    if isinstance(value, str) and value.strip():
        value = _from_json(value, f"{place}, field 'tools'")
    if not value:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(entry, Mapping) for entry in cast("Sequence[Any]", value)):
        shown = shorten(row["tools"])
        raise DataError(f"{place}, field 'tools': {shown} is no list of schemas; give {{'name', 'parameters'}} of each")
    return (Message(TOOLS, json.dumps(plain(value), ensure_ascii=False)),)


def check_unread(fields: Mapping[str, Any], place: str) -> None:
    """Raises DataError where a field says something that would be lost."""
    for name, instead in _UNREAD.items():
        if fields.get(name):
            raise DataError(f"{place}, field {name!r}: it would not be learned from; {instead}, and leave the field out")


def check_row(row: Mapping[str, Any], place: str) -> None:
    """Raises DataError where a field of a row, not of a turn, says something that would be lost."""
    check_unread(row, place)
    for name in _SWITCHES:
        value = row.get(name)
        if isinstance(value, bool | int | float) and value != 1:
            raise DataError(
                f"{place}, field {name!r}: {value!r} of a whole row would not be heeded; leave the row out, or write the field "
                "into the turns that it means"
            )


def shorten(value: object) -> str:
    """A value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _turn(turn: Any, place: str, pending: list[str]) -> DemonstrationTurn:
    """A turn; ``pending`` are the ids of calls that no tool has answered, and is kept up to date."""
    fields = cast("Mapping[str, Any]", turn if isinstance(turn, Mapping) else {})
    check_unread(fields, place)
    role, content = (fields.get(x) if fields.get(x) is not None else fields.get(y) for x, y in _NAMES)
    if isinstance(role, str) and role in _ROLES:
        calls = _calls(fields, place)
        if calls:
            message = _calling(_ROLES[role], calls, content, place)
            pending[:] = [str(call["id"]) for call in calls if call.get("id")]
        elif isinstance(content, str):
            message = Message(_ROLES[role], content)
        else:
            raise _no_turn(turn, place)
        if message.role == "tool":
            _check_answer(fields, place, pending)
        return DemonstrationTurn(message, _learns_turn(fields, message.role, place))
    raise _no_turn(turn, place)


def _no_turn(turn: Any, place: str) -> DataError:
    roles = ", ".join(list(_ROLES)[:4])
    return DataError(f"{place}: {shorten(turn)} is no turn; give {{'role': one of {roles}, 'content': text}}")


# ---- calls -------------------------------------------------------------------------------------------------------------------


def _calls(fields: Mapping[str, Any], place: str) -> list[Mapping[str, Any]]:
    """The calls of a turn: ``tool_calls``, or ``function_call`` for a single one; either may be JSON."""
    value, name = fields.get("tool_calls"), "tool_calls"
    if not value and fields.get("function_call"):
        value, name = fields["function_call"], "function_call"
    if isinstance(value, str) and value.strip():
        value = _from_json(value, f"{place}, field {name!r}")
    if not value:
        return []
    entries = cast("Sequence[Any]", value if isinstance(value, list | tuple) else [value])
    return [_call(entry, f"{place}, field {name!r}") for entry in entries]


def _call(entry: Any, place: str) -> Mapping[str, Any]:
    """``{"name", "arguments"}`` with the call's ``id``, from OpenAI's form or a bare one."""
    shown = shorten(entry)
    outer = cast("Mapping[str, Any]", entry if isinstance(entry, Mapping) else {})
    given: Any = outer.get("function", outer)
    inner = cast("Mapping[str, Any]", given if isinstance(given, Mapping) else {})
    name, arguments = inner.get("name"), inner.get("arguments")
    if isinstance(arguments, str):
        arguments = _from_json(arguments, f"{place}, 'arguments'") if arguments.strip() else None
    told: Any = dict[str, Any]() if arguments is None else arguments
    if not isinstance(name, str) or not name or not isinstance(told, Mapping):
        raise DataError(f"{place}: {shown} is no call; give {{'name': text, 'arguments': object}}")
    return {"name": name, "arguments": cast("Mapping[str, Any]", told), "id": outer.get("id")}


def _calling(role: str, calls: Sequence[Mapping[str, Any]], content: Any, place: str) -> Message:
    """An assistant's turn of calls, with the words in front of them."""
    if role != "assistant":
        raise DataError(f"{place}: a turn of role {role!r} has calls; only the assistant's may")
    if content is not None and not isinstance(content, str):
        raise DataError(f"{place}, field 'content': it is {shorten(content)}; give a text, or leave it out")
    bare = [{"name": call["name"], "arguments": call["arguments"]} for call in calls]
    told: Any = {"content": content, "tool_calls": bare} if content else bare
    return Message(CALLS, json.dumps(plain(told), ensure_ascii=False))


def _check_answer(fields: Mapping[str, Any], place: str, pending: list[str]) -> None:
    """That a tool's answer is that to the first call that has none: templates that number them count."""
    number = fields.get("tool_call_id")
    if pending and isinstance(number, str) and number:
        if number != pending[0]:
            raise DataError(
                f"{place}, field 'tool_call_id': {number!r} answers another call than {pending[0]!r}, which comes first; give "
                "the answers in the order of the calls"
            )
        pending.pop(0)


def _from_json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{place}: {shorten(text)} is no JSON ({error}); give an object, a list, or their JSON") from None


# ---- switches ----------------------------------------------------------------------------------------------------------------


def _learns_turn(fields: Mapping[str, Any], role: str, place: str) -> bool | None:
    """What a turn's switches say: 0 and false, that it is only read; 1 and true, that it is learned from."""
    said: dict[str, bool] = {}
    for name in _SWITCHES:
        value = fields.get(name)
        if value is None:
            continue
        if not isinstance(value, bool | int | float) or value not in (0, 1):
            raise DataError(
                f"{place}, field {name!r}: {shorten(value)} is neither on nor off; give 1 or true for a turn to learn from, "
                "0 or false for one that is only read"
            )
        said[name] = bool(value)
    if len(set(said.values())) > 1:
        raise DataError(f"{place}: {' and '.join(map(repr, said))} contradict each other; keep one")
    learned = next(iter(said.values()), None)
    if learned and role not in ("assistant", CALLS):
        raise DataError(
            f"{place}, field {next(iter(said))!r}: a turn of role {role!r} is not learned from; leave the field out "
            "(Imitate(learn='all') gives loss to every token)"
        )
    return learned
