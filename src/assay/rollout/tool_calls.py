"""Calls of tools in a chat model's own form: JSON in an assistant's turn, read and held to the tools' schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, cast

from assay.core.canon import plain
from assay.core.protocols import Tool

__all__ = ["Asked", "calls_of", "fault_of"]

_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_MARKS = ("[TOOL_CALLS]", "<|python_tag|>")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One call in a turn: the tool's name and arguments, or what is wrong with its form."""

    name: str = ""
    arguments: Mapping[str, Any] | None = None
    wrong: str = ""


def calls_of(text: str, known: Container[str] | None = None) -> list[Asked]:
    r"""The calls of an assistant's turn; none where it is an answer.

    Read are JSON objects between ``<tool_call>`` and ``</tool_call>`` (Qwen, Hermes), and turns that are nothing but an object
    with a name and ``parameters`` (Llama) or a list of objects (Mistral), with their mark or without. ``arguments`` and
    ``parameters`` mean the same. Without tags and mark, a call is one of a tool of the ``known`` names, where these are given: an
    answer may be JSON too.

    >>> calls_of('I add.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>')
    [Asked(name='add', arguments={'a': 1}, wrong='')]
    >>> calls_of('{"name": "add", "parameters": {}}')[0].name, calls_of("It is 3."), calls_of('{"a": 1}')
    ('add', [], [])
    >>> calls_of('{"name": "Ada", "parameters": {}}', known={"add"})
    []
    >>> calls_of("<tool_call>add 1</tool_call>")[0].wrong
    'the call is no JSON object'
    """
    tagged = _TAGGED.findall(text)
    if tagged:
        return [_parse_call(_json(part)) for part in tagged]
    bare = text.strip()
    mark = next((m for m in _MARKS if bare.startswith(m)), "")
    found = _json(bare.removeprefix(mark))
    entries = cast("list[Any]", found) if isinstance(found, list) else [found]
    if entries and all(_is_call(e) for e in entries):
        asked = [_parse_call(entry) for entry in entries]
        return asked if mark or known is None or all(call.name in known for call in asked) else []
    return [_parse_call(found)] if mark else []


def _json(text: str) -> Any:
    """The value of a text; None of one that is no JSON, or that no message could repeat: NaN, 1e999, half a surrogate pair."""
    try:
        found: Any = json.loads(text)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return found


def _is_call(found: Any) -> bool:
    return isinstance(found, dict) and "name" in found and ("arguments" in found or "parameters" in found)


def _parse_call(found: Any) -> Asked:
    if not isinstance(found, dict):
        return Asked(wrong="the call is no JSON object")
    call = cast("dict[str, Any]", found)
    name, arguments = call.get("name"), call.get("arguments", call.get("parameters", {}))
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return Asked(wrong="a call has a name, which is text, and arguments, which are an object")
    return Asked(name, cast("dict[str, Any]", arguments))


def fault_of(call: Asked, tools: Mapping[str, Tool]) -> str:
    """Why a call cannot be made: its form, its name, or arguments that break the tool's schema; empty where it can.

    >>> fault_of(Asked(name="add", arguments={}), {})
    "there is no tool 'add', only "
    """
    if call.wrong:
        return call.wrong
    if call.name not in tools:
        return f"there is no tool {call.name!r}, only {', '.join(sorted(tools))}"
    return _schema_break(call.arguments or {}, tools[call.name].schema.get("parameters"), call.name)


def _schema_break(value: Any, schema: Any, whose: str, path: str = "") -> str:
    """How a value breaks a JSON schema, as far as `ToolCalls` looks; empty where it does not."""
    if not isinstance(schema, Mapping):  # true, or nothing
        return ""
    told = cast("Mapping[str, Any]", schema)
    what = f"the argument {path!r} of {whose}" if path else f"what {whose} is given"
    kinds: Any = told.get("type") or ()
    named = [kinds] if isinstance(kinds, str) else list(kinds)
    if named and not any(_is_of(value, kind) for kind in named):
        return f"{what} is no {' or '.join(named)}"
    allowed = told.get("enum")
    if allowed is not None and not any(type(value) is type(a) and value == a for a in plain(allowed)):
        return f"{what} is none of {', '.join(json.dumps(plain(a)) for a in allowed)}"
    if isinstance(value, dict):
        return _broken_object(cast("dict[str, Any]", value), told, whose, path)
    for i, entry in enumerate(cast("list[Any]", value) if isinstance(value, list) else ()):
        if wrong := _schema_break(entry, told.get("items"), whose, f"{path}[{i}]"):
            return wrong
    return ""


def _broken_object(value: Mapping[str, Any], schema: Mapping[str, Any], whose: str, path: str) -> str:
    known: Mapping[str, Any] = schema.get("properties") or {}
    inside = f"{path}." if path else ""
    missing = [key for key in schema.get("required") or () if key not in value]
    if missing:
        return f"{whose} needs the argument {inside + missing[0]!r}"
    odd = [key for key in value if key not in known]
    if odd and schema.get("additionalProperties", True) is False:
        return f"{whose} has no argument {inside + odd[0]!r}"
    return next((wrong for key in value if (wrong := _schema_break(value[key], known.get(key), whose, inside + key))), "")


def _is_of(value: Any, kind: str) -> bool:
    """Whether a value is of a kind of JSON schema; a kind that is not known fits everything."""
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    return isinstance(value, _KINDS.get(kind, (object,)))
