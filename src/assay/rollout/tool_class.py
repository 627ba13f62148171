"""Classes as tools: each rollout has an instance of its own, whose public methods the policy may call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from assay.core.errors import ConfigError
from assay.core.import_path import load_function_or_class
from assay.core.protocols import Tool
from assay.core.rollout import ToolResult
from assay.core.task import TaskView
from assay.core.util.event_loop import run_in_thread
from assay.rollout.function_tool import FunctionTool, call_function, schema_of, tool_from
from assay.rollout.tool_limits import limits_of

__all__ = ["EpisodeTools", "MethodTool", "ToolClass", "tools_from"]


@dataclass(frozen=True, slots=True)
class ToolClass:
    """A class of tools as a run's file names it.

    Attributes:
        name: its import path, ``module:Class``.

    Raises:
        ConfigError: no class is there.
        UnknownNameError: the module has no such name.

    >>> ToolClass("assay.agents.tools:PythonInterpreter").kit.__name__
    'PythonInterpreter'
    """

    name: str

    def __post_init__(self) -> None:
        _ = self.kit

    @property
    def kit(self) -> type:
        """The class."""
        found = load_function_or_class(self.name, "ToolClass.name")
        if not isinstance(found, type):
            raise ConfigError(f"ToolClass.name={self.name!r} is a function; name it in PlayerSpec.tools as it is")
        return found


@dataclass(frozen=True, slots=True)
class MethodTool:
    """A public method of a class of tools, before there is an instance; implements `assay.core.protocols.Tool`.

    Attributes:
        kit: the class. It is made without arguments, or with the task view where its ``__init__`` has a parameter ``task``.
        name: of the method.
    """

    kit: type
    name: str

    @property
    def schema(self) -> Mapping[str, Any]:
        """Name, description, and JSON schema of the arguments."""
        return schema_of(getattr(self.kit, self.name))

    async def call(self, args: Mapping[str, Any], scope: TaskView | None) -> ToolResult:
        """One call on an instance that nobody else has: what a check of a tool asks. Rollouts use `EpisodeTools`."""
        tools = EpisodeTools(scope)
        try:
            return await tools.call(self, args)
        finally:
            await tools.close()


@dataclass(slots=True, eq=False)
class EpisodeTools:
    """The instances of one rollout, made at their first call.

    Calls of one instance come one after the other, in the order in which the policy wrote them.

    Attributes:
        task: what they may know.
    """

    task: TaskView | None
    _instances: dict[type, Any] = field(default_factory=dict[type, Any])

    async def call(self, method: MethodTool, args: Mapping[str, Any]) -> ToolResult:
        """What a method answers.

        Raises:
            ConnectionError, TimeoutError, MemoryError, EngineError, SandboxError, StorageError: it raised it.
        """
        if method.kit not in self._instances:
            self._instances[method.kit] = await run_in_thread(self._maker(method.kit))
        bound = getattr(self._instances[method.kit], method.name)
        return await call_function(bound, args, limits_of(bound, limits_of(method.kit)))

    async def close(self) -> None:
        """Calls ``close()`` of each instance that has one, plain or async."""
        for instance in self._instances.values():
            close = getattr(instance, "close", None)
            if close is not None:
                done: Any = await close() if inspect.iscoroutinefunction(close) else await run_in_thread(close)
                del done
        self._instances.clear()

    def _maker(self, kit: type) -> Callable[[], Any]:
        return (lambda: kit(task=self.task)) if "task" in inspect.signature(kit).parameters else kit


def tools_from(value: Any, place: str) -> Sequence[FunctionTool | MethodTool | Tool]:
    """The tools of what a user names: a function, a class whose public methods are tools, an object that is a `Tool` already, or
    the import path of one.

    Raises:
        ConfigError: none of these, or nothing that a model could call; names ``place``.
        UnknownNameError: the module has no such name.
    """
    if isinstance(value, ToolClass):
        return tools_from(value.kit, place)
    found: Any = load_function_or_class(value, place) if isinstance(value, str) else value
    if not isinstance(found, type):
        return (cast("Tool", found),) if hasattr(found, "schema") else (tool_from(found, place),)
    kit = cast("type[Any]", found)
    names = [name for name, member in inspect.getmembers(kit, inspect.isfunction) if name[0] != "_" and name != "close"]
    made = [MethodTool(kit, name) for name in names]
    if not made:
        raise ConfigError(
            f"{place}={kit!r} is no function; give one, or its import path 'module:function', or a class with public methods"
        )
    needed = [p for p in inspect.signature(kit).parameters.values() if p.default is p.empty and p.name != "task"]
    if needed:
        raise ConfigError(f"{place}={kit.__name__} needs {needed[0].name!r} to be made; give it a default, or only 'task'")
    for each in made:
        _ = each.schema
    return made
