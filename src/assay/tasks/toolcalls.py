"""Tools that are called in a chat model's own form: JSON in an assistant's turn, as the templates of common families teach it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Obs, Step, Tool
from assay.core.rollout import ToolResult
from assay.core.task import Message, World

__all__ = ["Asked", "ToolCalls", "calls_of", "schemas_of"]

_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_MARKS = ("[TOOL_CALLS]", "<|python_tag|>")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,), "object": (dict,),
    "null": (type(None),),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """One call in a turn: the tool's name and arguments, or what is wrong with its form."""

    name: str = ""
    arguments: Mapping[str, Any] | None = None
    wrong: str = ""


def calls_of(text: str) -> list[Asked]:
    r"""The calls of an assistant's turn; none where it is an answer.

    Read are JSON objects between ``<tool_call>`` and ``</tool_call>`` (Qwen, Hermes), and turns that are nothing but an object
    with a name and ``parameters`` (Llama) or a list of objects (Mistral), with their mark or without. ``arguments`` and
    ``parameters`` mean the same.

    >>> calls_of('I add.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>')
    [Asked(name='add', arguments={'a': 1}, wrong='')]
    >>> calls_of('{"name": "add", "parameters": {}}')[0].name, calls_of("It is 3."), calls_of('{"a": 1}')
    ('add', [], [])
    >>> calls_of("<tool_call>add 1</tool_call>")[0].wrong
    'the call is no JSON object'
    """
    tagged = _TAGGED.findall(text)
    if tagged:
        return [_asked(_json(part)) for part in tagged]
    bare = text.strip()
    mark = next((m for m in _MARKS if bare.startswith(m)), "")
    found = _json(bare.removeprefix(mark))
    if isinstance(found, list) and found and all(_is_call(e) for e in cast("list[Any]", found)):
        return [_asked(entry) for entry in cast("list[Any]", found)]
    if _is_call(found):
        return [_asked(found)]
    return [_asked(found)] if mark else []


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


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


class ToolCalls:
    """An environment of tools: each call of a turn is answered by a ``tool`` message, a turn without calls ends the attempt.

    A call that cannot be made is answered with what is wrong, so that the policy can try again: one that is no JSON, an unknown
    tool, arguments that are missing, unknown or of another kind than the tool's schema says.

    Args:
        world: the exposed task.
        tools: that may be called.
        turns: turns with calls that are answered; one more ends the attempt.

    Raises:
        ConfigError: two tools of one name, none, or ``turns`` below 1.
        DataError: started twice, stepped before the start or after the end.

    >>> from asyncio import run
    >>> from assay.tasks.keyvalue import KeyValue, LookUp
    >>> bench = ToolCalls(KeyValue().task("keyvalue", 1, "train", 0).exposed(), [LookUp()])
    >>> _ = run(bench.start())
    >>> step = run(bench.step('<tool_call>{"name": "look_up", "arguments": {"key": "oa"}}</tool_call>'))
    >>> [m.content for m in step.obs.messages]
    ['=80>']
    """

    def __init__(self, world: World, tools: Sequence[Tool], turns: int = 8) -> None:
        self.tools: Mapping[str, Tool] = {str(tool.schema["name"]): tool for tool in tools}
        if not tools or len(self.tools) < len(tools) or turns < 1:
            raise ConfigError(
                f"ToolCalls of task {world.id!r}: {len(tools)} tools of {len(self.tools)} names, turns={turns}; give at least "
                "one tool, each by a name of its own, and at least 1 turn"
            )
        self._world, self._left, self._phase = world, turns, "new"

    async def start(self) -> Obs:
        """Nothing to show beyond the prompt."""
        self._enter("new", "start")
        self._phase = "open"
        return Obs()

    async def step(self, action: str) -> Step:
        """What the tools answer."""
        self._enter("open", "step")
        asked = calls_of(action)
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
        schema: Mapping[str, Any] = self.tools[name].schema.get("parameters", {})
        known: Mapping[str, Any] = schema.get("properties", {})
        missing = [key for key in schema.get("required", ()) if key not in arguments]
        if missing:
            return f"{name} needs the argument {missing[0]!r}"
        odd = [key for key in arguments if key not in known]
        if odd and schema.get("additionalProperties", True) is False:
            return f"{name} has no argument {odd[0]!r}"
        for key, value in arguments.items():
            kinds: Any = known.get(key, {}).get("type", ())
            named = [kinds] if isinstance(kinds, str) else list(kinds)
            if named and not any(_is_of(value, kind) for kind in named):
                return f"the argument {key!r} of {name} is no {' or '.join(named)}"
        return ""

    def _enter(self, phase: str, verb: str) -> None:
        if self._phase != phase:
            raise DataError(
                f"environment of task {self._world.id!r}: {verb} while it is {self._phase}; environments are single use"
            )


def _is_of(value: Any, kind: str) -> bool:
    """Whether a value is of a kind of JSON schema; a kind that is not known fits everything."""
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    return isinstance(value, _KINDS.get(kind, (object,)))
