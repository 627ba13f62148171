"""Tools in conversations, as chat templates take them: what is declared, and assistant's turns that are calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.task import CALLS, TOOLS, Message

__all__ = ["as_dicts", "canonical", "declared_tools", "mark_content", "named_in", "rename_tools", "with_words"]


def declared_tools(messages: Sequence[Message], where: str) -> tuple[str, list[Message]]:
    """The tools that a conversation opens with, as JSON in one way of writing, empty for none; and the rest of it.

    Raises:
        DataError: they stand elsewhere than in front, or are no list of schemas with names.

    >>> declared_tools([Message("tools", '[{"name": "add"}]'), Message("user", "1+1?")], "here")[0]
    '[{"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object", "properties": {}}}}]'
    """
    told = list(messages)
    text = told.pop(0).content if told and told[0].role == TOOLS else ""
    if any(m.role == TOOLS for m in told):
        raise DataError(f"{where}: tools are declared once, before all other messages of a conversation")
    return (canonical(text) if text else ""), told


def canonical(text: str) -> str:
    """Schemas as OpenAI's list of functions, from such a list or from bare ones; raises like `declared_tools`."""
    found = _parse_list(text, "tools")
    out: list[dict[str, Any]] = []
    for entry in found:
        inner: Any = entry.get("function", entry) if entry.get("type", "function") == "function" else None
        schema = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
        if not isinstance(schema.get("name"), str) or not schema["name"]:
            raise DataError(f"tools: {json.dumps(entry)[:80]} has no name; give {{'name', 'description', 'parameters'}} of each")
        told: dict[str, Any] = {"name": "", "description": "", "parameters": {"type": "object", "properties": {}}}
        out.append({"type": "function", "function": told | schema})
    return json.dumps(out, ensure_ascii=False)


def named_in(tools: str) -> list[str]:
    """Names of declared tools."""
    return [entry["function"]["name"] for entry in json.loads(tools)]


def rename_tools(tools: str) -> tuple[str, dict[str, str]]:
    """Declared tools under names that occur nowhere else, and these names by the tools' own.

    >>> rename_tools('[{"function": {"name": "user"}}]')
    ('[{"function": {"name": "TOOL0NAME"}}]', {'user': 'TOOL0NAME'})
    """
    entries: list[dict[str, Any]] = json.loads(tools)
    names = {entry["function"]["name"]: f"TOOL{i}NAME" for i, entry in enumerate(entries)}
    for entry in entries:
        entry["function"]["name"] = names[entry["function"]["name"]]
    return json.dumps(entries, ensure_ascii=False), names


def _parse_list(text: str, what: str) -> list[dict[str, Any]]:
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise DataError(f"a message of role {what!r} is no JSON ({error}): {text[:60]!r}") from None
    entries = cast("list[Any]", found) if isinstance(found, list) else []
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"a message of role {what!r} is a JSON list of objects, not {text[:60]!r}")
    return cast("list[dict[str, Any]]", entries)


def as_dicts(roles: Sequence[str], contents: Sequence[str], ids: bool = False, called: bool = False) -> list[dict[str, Any]]:
    """Messages as a template walks them; calls become ``tool_calls`` of an assistant's turn.

    Args:
        roles: of the messages.
        contents: their texts; of calls a JSON list of ``{"name", "arguments"}``, or an object of such ``tool_calls`` with the
            ``content`` in front of them.
        ids: calls and answers are numbered, for templates that want that.
        called: an assistant's turn before an answer is given as a call: for templates that want that, where only what follows
            the turn is read.

    Raises:
        DataError: calls that are none.

    >>> as_dicts(("tool_calls",), ('[{"name": "add", "arguments": {"a": 1}}]',))[0]["tool_calls"][0]["function"]
    {'name': 'add', 'arguments': {'a': 1}}
    """
    out: list[dict[str, Any]] = []
    asked = answered = 0
    for i, (role, content) in enumerate(zip(roles, contents, strict=True)):
        calls, words = list[dict[str, Any]](), ""
        if role == CALLS:
            words, called_here = with_words(content)
            calls = list(map(_call, called_here))
        elif called and role == "assistant" and list(roles[i + 1 : i + 2]) == ["tool"]:
            calls = [{"name": content, "arguments": dict[str, Any]()}]
        if calls:
            numbers = range(asked, asked + len(calls))
            asked += len(calls)
            bare = [{"type": "function", "function": call} for call in calls]
            given = [{**e, "id": _number(n)} for e, n in zip(bare, numbers, strict=True)] if ids else bare
            out.append({"role": "assistant", "content": words, "tool_calls": given})
            continue
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "tool" and ids:
            message["tool_call_id"] = _number(answered)
            answered += 1
        out.append(message)
    return out


def with_words(content: str) -> tuple[str, list[dict[str, Any]]]:
    """The text in front of calls, and the calls."""
    try:
        found: Any = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return "", _parse_list(content, CALLS)
    told = cast("dict[str, Any]", found)
    words: Any = told.get("content")
    return (words if isinstance(words, str) else ""), _parse_list(json.dumps(told.get("tool_calls"), ensure_ascii=False), CALLS)


def _number(n: int) -> str:
    return f"call{n:05d}"  # nine letters and digits, as templates of Mistral want it


def _call(entry: Mapping[str, Any]) -> dict[str, Any]:
    name, arguments = entry.get("name"), entry.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise DataError(f"tool_calls: {json.dumps(entry)[:80]} is no call; give {{'name': text, 'arguments': object}} of each")
    return {"name": name, "arguments": arguments}


def mark_content(role: str, mark: str) -> str:
    """A content of a role in which a mark stands."""
    return json.dumps([{"name": mark, "arguments": {}}]) if role == CALLS else mark
