"""Python functions as tools: the docstring is the description, the annotations are the schema of the arguments."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from assay.core.canon import plain
from assay.core.errors import ConfigError, EngineError, SandboxError, StorageError
from assay.core.import_path import load_function
from assay.core.rollout import ToolResult
from assay.core.task import TaskView
from assay.core.util.event_loop import run_in_thread
from assay.rollout.tool_limits import ToolLimits, cut_text, limits_of

__all__ = ["FunctionTool", "call_function", "schema_of", "tool_from"]

_INFRASTRUCTURE = (ConnectionError, TimeoutError, MemoryError, EngineError, SandboxError, StorageError)
"""Errors that say nothing of the call: the rollout is played again, and then masked, instead of answered."""
_SCALARS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_SECTION = re.compile(r"^(Args|Arguments|Returns|Raises|Yields|Example|Examples):\s*$|^>>> ", re.MULTILINE)
_ARGUMENT = re.compile(r"^ {4}(\w+)(?: \([^)]*\))?: (.+(?:\n {5,}.+)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function that a policy can call; implements `assay.core.protocols.Tool`.

    The function's name and docstring are what the model reads, with its parameters by their annotations: ``str``, ``int``,
    ``float``, ``bool``, ``None``, ``list[...]``, ``dict[str, ...]``, ``Literal[...]`` and unions of these. A parameter is
    described in the docstring's ``Args:``, or by ``Annotated[int, "what it is"]``. What it returns is the answer: text as it is,
    a `ToolResult` with its cost, other values as JSON.

    An exception is answered too, by its type and message, so that the policy can try again. Errors of the infrastructure
    (``ConnectionError``, ``TimeoutError``, ``MemoryError`` and the like) are raised instead: they say nothing of the call. A
    plain function runs in a thread of its own, an ``async`` one on the event loop.

    Attributes:
        function: what is called, with keyword arguments.

    Raises:
        ConfigError: no name or docstring, or a parameter without an annotation, or with one that no JSON schema can say.

    >>> import asyncio
    >>> def add(a: int, b: int = 1) -> int:
    ...     "The sum of two numbers."
    ...     return a + b
    >>> FunctionTool(add).schema["parameters"]["required"], asyncio.run(FunctionTool(add).call({"a": 2}, None)).content
    (['a'], '3')
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        schema_of(self.function)

    @property
    def schema(self) -> Mapping[str, Any]:
        """Name, description, and JSON schema of the arguments."""
        return schema_of(self.function)

    async def call(self, args: Mapping[str, Any], scope: TaskView | None) -> ToolResult:
        """What the function answers; it never sees the task.

        Raises:
            ConnectionError, TimeoutError, MemoryError, EngineError, SandboxError, StorageError: the function raised it.
        """
        return await call_function(self.function, args, limits_of(self.function))


async def call_function(function: Callable[..., Any], args: Mapping[str, Any], limits: ToolLimits) -> ToolResult:
    """What a function answers within its limits. It gets a copy of the arguments, so that what it does to them changes no record.

    A plain function that exceeds its deadline goes on in its thread, and nobody hears its answer.

    Raises:
        ConnectionError, TimeoutError, MemoryError, EngineError, SandboxError, StorageError: the function raised it.
    """
    begun, given = perf_counter(), {name: plain(value) for name, value in args.items()}
    limit = asyncio.timeout(limits.deadline)

    def result(content: str, error: str | None = None, timed_out: bool = False) -> ToolResult:
        shown, cut = cut_text(content, limits.characters)
        seconds = perf_counter() - begun
        return ToolResult(content=shown, error=error, duration=seconds, cost=limits.cost, timed_out=timed_out, cut=cut)

    try:
        async with limit:
            value = await _value(function, given)
        if isinstance(value, ToolResult):
            return replace(result(value.content, value.error), cost=limits.cost + value.cost)
        content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except _INFRASTRUCTURE:
        if not limit.expired():
            raise
        error = f"no answer within {limits.deadline:g} s"
        return result(f"Error: {error}.", error, timed_out=True)
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
        return result(f"Error: {error}", error)
    return result(content)


async def _value(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**given)
    value = await run_in_thread(functools.partial(function, **given))
    return await value if inspect.isawaitable(value) else value


def tool_from(value: Any, place: str) -> FunctionTool:
    """A tool from what a user names: a function, or its import path ``module:function``.

    Raises:
        ConfigError: neither, or no function that a model could call; names ``place``.
        UnknownNameError: the module has no such name.
    """
    found = load_function(value, place) if isinstance(value, str) else value
    if not callable(found) or isinstance(found, type):
        raise ConfigError(f"{place}={value!r} is no function; give one, or its import path 'module:function'")
    return FunctionTool(cast("Callable[..., Any]", found))


@functools.cache
def schema_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Name, description, and JSON schema of the arguments of a function, or of a method without its ``self``.

    Raises:
        ConfigError: as `FunctionTool`.
    """
    name = getattr(function, "__name__", "")
    text = inspect.getdoc(function) or ""
    section = _SECTION.search(text)
    words = text[: section.start()].strip() if section else text.strip()
    if not name.isidentifier() or not words:
        what = "name" if not name.isidentifier() else "docstring"
        raise ConfigError(f"tool {name or function!r} has no {what}, which is what the model reads of it; give the function one")
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as failure:
        raise ConfigError(
            f"tool {name}: its annotations cannot be read ({failure}); import what they name when the module is"
        ) from failure
    told = dict(_ARGUMENT.findall(text[section.start() :])) if section else {}
    properties: dict[str, Any] = {}
    needed: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self" and parameter.annotation is parameter.empty:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(f"tool {name}: parameter {parameter} has no name to be given by; name each argument, with its type")
        properties[parameter.name] = _parameter(name, parameter, hints.get(parameter.name), told)
        needed += [parameter.name] if parameter.default is parameter.empty else []
    arguments = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
    return {"name": name, "description": words, "parameters": arguments}


def _parameter(tool: str, parameter: inspect.Parameter, hint: Any, told: Mapping[str, str]) -> dict[str, Any]:
    place = f"tool {tool}: parameter {parameter.name!r}"
    if hint is None and parameter.annotation is parameter.empty:
        raise ConfigError(f"{place} has no annotation, so the model cannot know what to give; write '{parameter.name}: int'")
    texts = [text for text in get_args(hint)[1:] if isinstance(text, str)] if get_origin(hint) is Annotated else []
    words = texts[0] if texts else " ".join(told.get(parameter.name, "").split())
    return _kind(get_args(hint)[0] if get_origin(hint) is Annotated else hint, place) | ({"description": words} if words else {})


def _kind(hint: Any, place: str) -> dict[str, Any]:
    """The JSON schema of an annotation."""
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if hint is Any or hint is object:
        return {}
    if hint in _SCALARS or hint is None:
        return {"type": _SCALARS[NoneType if hint is None else hint]}
    if origin is Literal:
        kinds = sorted({_SCALARS[type(value)] for value in inner})
        return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(inner)}
    if origin in (list, Sequence):
        return {"type": "array"} | ({"items": _kind(inner[0], place)} if inner else {})
    if origin in (dict, Mapping) and (not inner or inner[0] is str):
        return {"type": "object"}
    if origin in (Union, UnionType):
        return _union([_kind(option, place) for option in inner], hint, place)
    raise ConfigError(
        f"{place}: {hint!r} is nothing that a JSON schema says; use str, int, float, bool, list[...], dict[str, ...], "
        "Literal[...] or unions of these"
    )


def _union(options: Sequence[dict[str, Any]], hint: Any, place: str) -> dict[str, Any]:
    """One schema of several types; what only one of them says besides its type is said of all, as validators read it."""
    more = [option for option in options if len(option) > 1]
    kinds = [kind for option in options for kind in ([option["type"]] if isinstance(option["type"], str) else option["type"])]
    if len(more) > 1:
        raise ConfigError(f"{place}: {hint!r} is a union of two composite types; give the tool one of them")
    merged = (more[0] if more else {}) | {"type": kinds}
    if "enum" in merged:
        merged["enum"] = [*merged["enum"], *([None] if "null" in kinds else [])]
        if len({option["type"] if isinstance(option["type"], str) else "" for option in options} - {"null"}) > 1:
            raise ConfigError(f"{place}: {hint!r} is a choice and another type; give the tool one of them")
    return merged
