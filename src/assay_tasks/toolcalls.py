"""Tools that are called in a chat model's own form: JSON in an assistant's turn, as the templates of common families teach it."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assay.core.canon import plain
from assay.core.errors import ConfigError
from assay.core.protocols import Obs, Step, Tool
from assay.core.rollout import ToolResult
from assay.core.task import Message, World
from assay_tasks.phases import SingleUse

__all__ = ["Asked", "ToolCalls", "calls_of", "schemas_of"]

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
        return [_asked(_json(part)) for part in tagged]
    bare = text.strip()
    mark = next((m for m in _MARKS if bare.startswith(m)), "")
    found = _json(bare.removeprefix(mark))
    entries = cast("list[Any]", found) if isinstance(found, list) else [found]
    if entries and all(_is_call(e) for e in entries):
        asked = [_asked(entry) for entry in entries]
        return asked if mark or known is None or all(call.name in known for call in asked) else []
    return [_asked(found)] if mark else []


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


def _asked(found: Any) -> Asked:
    if not isinstance(found, dict):
        return Asked(wrong="the call is no JSON object")
    call = cast("dict[str, Any]", found)
    name, arguments = call.get("name"), call.get("arguments", call.get("parameters", {}))
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return Asked(wrong="a call has a name, which is text, and arguments, which are an object")
    return Asked(name, cast("dict[str, Any]", arguments))


def schemas_of(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The schemas of tools, for a task's ``public["tools"]``."""
    return [dict(tool.schema) for tool in tools]


class ToolCalls(SingleUse):
    """An environment of tools: each call of a turn is answered by a ``tool`` message, a turn without calls ends the attempt.

    A call that cannot be made is answered with what is wrong, so that the policy can try again: one that is no JSON, an unknown
    tool, arguments that are missing, or break the schema by ``type``, ``enum``, ``required``, ``additionalProperties: false``, at
    any depth of ``properties`` and ``items``. What else a schema says is for the tool to look at.

    Args:
        world: the exposed task.
        tools: that may be called.
        turns: turns with calls that are answered; one more ends the attempt. With the answer they are the 8 that `Run.max_turns`
            allows by default.

    Raises:
        ConfigError: two tools of one name, none, one whose schema has no name, or ``turns`` below 1.
        DataError: started twice, stepped before the start or after the end.

    >>> from asyncio import run
    >>> from assay_tasks.keyvalue import KeyValue, LookUp
    >>> bench = ToolCalls(KeyValue().task("keyvalue", 1, "train", 0).exposed(), [LookUp()])
    >>> _ = run(bench.start())
    >>> step = run(bench.step('<tool_call>{"name": "look_up", "arguments": {"key": "oa"}}</tool_call>'))
    >>> [m.content for m in step.obs.messages]
    ['=80>']
    """

    def __init__(self, world: World, tools: Sequence[Tool], turns: int = 7) -> None:
        super().__init__(world.id)
        for tool in tools:
            if not isinstance(tool.schema.get("name"), str):
                raise ConfigError(
                    f"ToolCalls of task {world.id!r}: the schema of {type(tool).__name__} has no name, only "
                    f"{sorted(tool.schema)}; give {{'name', 'description', 'parameters'}} itself, not what stands around it in "
                    "OpenAI's lists"
                )
        self.tools: Mapping[str, Tool] = {tool.schema["name"]: tool for tool in tools}
        if not tools or len(self.tools) < len(tools) or turns < 1:
            raise ConfigError(
                f"ToolCalls of task {world.id!r}: {len(tools)} tools of {len(self.tools)} names, turns={turns}; give at least "
                "one tool, each by a name of its own, and at least 1 turn"
            )
        self._world, self._left = world, turns

    async def step(self, action: str) -> Step:
        """What the tools answer."""
        self._enter("open", "step")
        asked = calls_of(action, self.tools)
        if not asked or not self._left:
            self._phase = "over"
            return Step(done=True)
        self._left -= 1
        results = tuple([await self._result(call) for call in asked])
        return Step(obs=Obs(tuple(Message("tool", result.content) for result in results)), results=results)

    async def _result(self, call: Asked) -> ToolResult:
        wrong = call.wrong or self._unfit(call.name, call.arguments or {})
        if wrong:
            return ToolResult(content=f"Error: {wrong}.", error=wrong)
        return await self.tools[call.name].call(call.arguments or {}, self._world)

    def _unfit(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Why a tool cannot be called so; empty where it can."""
        if name not in self.tools:
            return f"there is no tool {name!r}, only {', '.join(sorted(self.tools))}"
        return _broken(arguments, self.tools[name].schema.get("parameters"), name)


def _broken(value: Any, schema: Any, whose: str, path: str = "") -> str:
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
        if wrong := _broken(entry, told.get("items"), whose, f"{path}[{i}]"):
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
    return next((wrong for key in value if (wrong := _broken(value[key], known.get(key), whose, inside + key))), "")


def _is_of(value: Any, kind: str) -> bool:
    """Whether a value is of a kind of JSON schema; a kind that is not known fits everything."""
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    return isinstance(value, _KINDS.get(kind, (object,)))
