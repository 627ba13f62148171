"""What tools promise, as a check that a user's own can be held to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.core.errors import AssayError
from assay.core.import_path import load_function, name_of
from assay.core.rollout import ToolResult
from assay.rollout.function_tool import FunctionTool, tool_from
from assay.rollout.tool_calls import Asked, fault_of
from assay.testing.contracts import ContractError, Report, require, wait_for

__all__ = ["check_tool"]

_WRONG: Mapping[str, Any] = {
    "string": 0,
    "integer": "x",
    "number": "x",
    "boolean": "x",
    "array": "x",
    "object": "x",
    "null": "x",
}


def check_tool(tool: Callable[..., Any] | str, cases: Sequence[tuple[Mapping[str, Any], Any]]) -> Report:
    """Holds a function to what `PlayerSpec.tools` asks of it, with calls whose answers are known.

    Its annotations make a schema that a file and a chat template can hold; calls are answered as told, and again the same (a
    rollout may be played again); calls that lack an argument or give one of another type are refused before they reach it; and a
    run's file can say it.

    Args:
        tool: the function, or its import path.
        cases: arguments, and the answer: as text, or as the value that the function returns, which is told as JSON; None where
            the function raises, which is answered as an error.

    Raises:
        ContractError: it breaks one of these.

    >>> check_tool("assay.core.errors:a_kind", [({"value": 3}, "an int")]).passed
    ('schema', 'answers', 'the same again', 'wrong calls refused', 'can be filed')
    """
    try:
        made = tool_from(tool, "check_tool")
    except AssayError as error:
        raise ContractError(f"tool {tool!r}: {error}") from error
    name = str(made.schema["name"])
    subject, parameters = f"tool {name}", made.schema["parameters"]
    require(json.loads(json.dumps(made.schema)) == made.schema, subject, "its schema does not survive JSON")
    require(bool(cases), subject, "give at least one call with its answer")
    for arguments, value in cases:
        wanted = value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        wrong = fault_of(Asked(name, arguments), {name: made})
        require(not wrong, subject, f"cannot be called with {arguments}: {wrong}")
        first, second = _answer(made, arguments, subject), _answer(made, arguments, subject)
        require((wanted is None) == (first.error is not None), subject, f"answers {arguments} with {first.content!r}")
        require(wanted is None or first.content == wanted, subject, f"answers {arguments} with {first.content!r}, not {wanted!r}")
        require(first.content == second.content, subject, f"answers {arguments} first {first.content!r}, then {second.content!r}")
    _check_refusals(made, name, dict(cases[0][0]), parameters, subject)
    seconds = max(_answer(made, arguments, subject).duration for arguments, _ in cases)
    passed = ("schema", "answers", "the same again", "wrong calls refused", _check_filed(made.function, subject))
    return Report(subject=subject, passed=passed, numbers={"slowest call, seconds": seconds})


def _answer(tool: FunctionTool, arguments: Mapping[str, Any], subject: str) -> ToolResult:
    try:
        return wait_for(tool.call(arguments, None))
    except Exception as error:
        raise ContractError(f"{subject}: its infrastructure failed on {arguments}: {type(error).__name__}: {error}") from error


def _check_refusals(tool: FunctionTool, name: str, good: Mapping[str, Any], parameters: Mapping[str, Any], subject: str) -> None:
    """Calls that break the schema are found by it, argument by argument."""
    wrong: list[dict[str, Any]] = [{key: value for key, value in good.items() if key != left} for left in parameters["required"]]
    for key, schema in parameters["properties"].items():
        kinds = schema.get("type")
        if isinstance(kinds, str):
            wrong.append({**good, key: _WRONG[kinds]})
    for arguments in (*wrong, {**good, "no such argument": 1}):
        require(bool(fault_of(Asked(name, arguments), {name: tool})), subject, f"its schema lets {arguments} pass")


def _check_filed(function: Callable[..., Any], subject: str) -> str:
    try:
        back = load_function(name_of(function), "check_tool")
    except AssayError as error:
        raise ContractError(f"{subject}: a run's file cannot say it: {error}") from error
    require(back is function, subject, f"comes back from a file as {back!r}")
    return "can be filed"
