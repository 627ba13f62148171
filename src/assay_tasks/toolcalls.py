"""Tools that are called in a chat model's own form: JSON in an assistant's turn, as the templates of common families teach it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from assay.core.errors import ConfigError
from assay.core.protocols import Obs, Step, Tool
from assay.core.rollout import ToolResult
from assay.core.task import Message, TaskView
from assay.rollout.function_tool import tool_from
from assay.rollout.tool_calls import Asked, calls_of, fault_of
from assay_tasks.phases import SingleUse

__all__ = ["Asked", "ToolCalls", "calls_of", "schemas_of"]


def schemas_of(tools: Iterable[Tool | Callable[..., Any]]) -> list[dict[str, Any]]:
    """The schemas of tools, for a task's ``public["tools"]``; a plain function is a tool as in a stage (`FunctionTool`)."""
    return [dict(tool.schema) for tool in _as_tools(tools)]


def _as_tools(tools: Iterable[Tool | Callable[..., Any]]) -> list[Tool]:
    return [cast("Tool", tool) if hasattr(tool, "schema") else tool_from(tool, "ToolCalls.tools") for tool in tools]


class ToolCalls(SingleUse):
    """An environment of tools: each call of a turn is answered by a ``tool`` message, a turn without calls ends the rollout.

    A call that cannot be made is answered with what is wrong, so that the policy can try again: one that is no JSON, an unknown
    tool, arguments that are missing, or break the schema by ``type``, ``enum``, ``required``, ``additionalProperties: false``, at
    any depth of ``properties`` and ``items``. What else a schema says is for the tool to look at.

    Args:
        world: the task view.
        tools: that may be called.
        turns: turns with calls that are answered; one more ends the rollout. With the answer they are the 8 that `Run.max_turns`
            allows by default.

    Raises:
        ConfigError: two tools of one name, none, one whose schema has no name, or ``turns`` below 1.
        DataError: started twice, stepped before the start or after the end.

    Carries: VerlTool (arXiv 2509.01055), in part.

    >>> from asyncio import run
    >>> from assay_tasks.keyvalue import KeyValue, LookUp
    >>> bench = ToolCalls(KeyValue().task("keyvalue", 1, "train", 0).public_view(), [LookUp()])
    >>> _ = run(bench.start())
    >>> step = run(bench.step('<tool_call>{"name": "look_up", "arguments": {"key": "oa"}}</tool_call>'))
    >>> [m.content for m in step.obs.messages]
    ['=80>']
    """

    def __init__(self, world: TaskView, tools: Sequence[Tool | Callable[..., Any]], turns: int = 7) -> None:
        super().__init__(world.id)
        tools = _as_tools(tools)
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
        wrong = fault_of(call, self.tools)
        if wrong:
            return ToolResult(content=f"Error: {wrong}.", error=wrong)
        return await self.tools[call.name].call(call.arguments or {}, self._world)
