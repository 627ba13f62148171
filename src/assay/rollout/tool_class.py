"""Classes as tools: each rollout has an instance of its own, whose public methods the policy may call."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from assay.core.errors import ConfigError
from assay.core.import_path import load_part
from assay.core.protocols import Tool
from assay.core.rollout import ToolResult
from assay.core.task import TaskView
from assay.core.util.event_loop import run_in_thread
from assay.rollout.function_tool import call_function, schema_of, tool_from
from assay.rollout.tool_limits import limits_of

__all__ = ["EpisodeTool", "EpisodeTools", "MethodTool", "ToolClass", "ToolSet", "tools_from"]


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
        found = load_part(self.name, "ToolClass.name")
        if not isinstance(found, type):
            raise ConfigError(f"ToolClass.name={self.name!r} is a function; name it in PlayerSpec.tools as it is")
        return found


class ToolSet(ABC):
    """Settings that stand for several tools, such as a server of them: a frozen dataclass, which a run's file can hold."""

    @abstractmethod
    def all_tools(self) -> Sequence[Tool]:
        """Its tools."""


class EpisodeTool(ABC):
    """A tool of something that a rollout has for itself, or that several tools have in common: an instance, a connection."""

    @property
    @abstractmethod
    def owner(self) -> Hashable:
        """What names the thing: tools of one owner have it in common."""

    @property
    def in_turn(self) -> bool:
        """Whether calls of one owner come one after the other, in the order in which the policy wrote them."""
        return True

    @property
    @abstractmethod
    def schema(self) -> Mapping[str, Any]:
        """Name, description, and JSON schema of the arguments."""

    @abstractmethod
    def make(self, task: TaskView | None) -> Any:
        """The thing, made in a thread at a rollout's first call; its ``close()``, plain or async, is called at the end."""

    @abstractmethod
    async def call_on(self, thing: Any, args: Mapping[str, Any]) -> ToolResult:
        """One call; raises as `FunctionTool.call`."""

    async def call(self, args: Mapping[str, Any], scope: TaskView | None) -> ToolResult:
        """One call of a rollout that makes no other: what a check of a tool asks."""
        tools = EpisodeTools(scope)
        try:
            return await tools.call(self, args)
        finally:
            await tools.close()


@dataclass(frozen=True, slots=True)
class MethodTool(EpisodeTool):
    """A public method of a class of tools; implements `assay.core.protocols.Tool`.

    Attributes:
        kit: the class. It is made without arguments, or with the task view where its ``__init__`` has a parameter ``task``.
        name: of the method.
    """

    kit: type
    name: str

    @property
    def owner(self) -> Hashable:
        """The class."""
        return self.kit

    @property
    def schema(self) -> Mapping[str, Any]:
        """Name, description, and JSON schema of the arguments."""
        return schema_of(getattr(self.kit, self.name))

    def make(self, task: TaskView | None) -> Any:
        """An instance."""
        kit = cast("Any", self.kit)
        return kit(task=task) if "task" in inspect.signature(kit).parameters else kit()

    async def call_on(self, thing: Any, args: Mapping[str, Any]) -> ToolResult:
        """What the method answers within its limits, those of the class where it has none of its own."""
        bound = getattr(thing, self.name)
        return await call_function(bound, args, limits_of(bound, limits_of(self.kit)))


@dataclass(slots=True, eq=False)
class EpisodeTools:
    """What the tools of one rollout keep, made at their first call.

    Attributes:
        task: what they may know.
    """

    task: TaskView | None
    _things: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any])
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def call(self, tool: EpisodeTool, args: Mapping[str, Any]) -> ToolResult:
        """What a tool answers.

        Raises:
            ConnectionError, TimeoutError, MemoryError, EngineError, SandboxError, StorageError: it raised it.
        """
        async with self._lock:
            if tool.owner not in self._things:
                self._things[tool.owner] = await run_in_thread(partial(tool.make, self.task))
        return await tool.call_on(self._things[tool.owner], args)

    async def close(self) -> None:
        """Calls ``close()`` of each thing that has one, plain or async."""
        things, self._things = list(self._things.values()), {}
        for thing in things:
            close = getattr(thing, "close", None)
            if inspect.iscoroutinefunction(close):
                await close()
            elif close is not None:
                await run_in_thread(close)


def tools_from(value: Any, place: str) -> Sequence[Tool]:
    """The tools of what a user names: a function, a class whose public methods are tools, a `ToolSet`, an object that is a
    `Tool` already, or the import path of one.

    Raises:
        ConfigError: none of these, or nothing that a model could call; names ``place``.
        UnknownNameError: the module has no such name.
    """
    found: Any = load_part(value, place) if isinstance(value, str) else value
    if isinstance(found, ToolClass):
        found = found.kit
    if isinstance(found, ToolSet):
        return found.all_tools()
    if not isinstance(found, type):
        return (cast("Tool", found),) if hasattr(found, "schema") else (tool_from(found, place),)
    kit = cast("type[Any]", found)
    names = [name for name, _ in inspect.getmembers(kit, inspect.isfunction) if name[0] != "_" and name != "close"]
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
