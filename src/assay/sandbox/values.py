"""What goes to a function and comes back from it: JSON of plain types, of a bounded size and depth, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from assay.core.errors import DataError

__all__ = ["DEPTH", "check", "plain", "read"]

DEPTH = 64
"""How deep lists and objects may lie in each other."""


def read(data: bytes) -> tuple[bool, Any, str]:
    """Whether there is a value, the value, and the program's note on how it failed.

    The program could write anything there, so nothing is taken on trust: what is not one message of the right form is no value,
    and a note only ever refines a failure.
    """
    if not data:
        return False, None, ""
    try:
        message: Any = json.loads(data)
        if not isinstance(message, dict) or len(cast("dict[str, Any]", message)) != 1:
            return False, None, ""
        ((name, value),) = cast("dict[str, Any]", message).items()
        if name == "note":
            return False, None, value if value in ("memory", "disk", "processes", "blocked") else ""
        check(value)
        return name == "value", value if name == "value" else None, ""
    except (ValueError, RecursionError):
        return False, None, ""


def plain(arguments: Sequence[Any]) -> str:
    """Arguments of a call as JSON.

    Raises:
        DataError: JSON cannot say them.

    >>> plain((1, "a"))
    '[1, "a"]'
    """
    try:
        return json.dumps(list(arguments))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"Program.arguments must be plain values that JSON can say: {error}") from None


def check(value: Any, depth: int = DEPTH) -> None:
    """Refuses what is nested too deeply.

    Raises:
        ValueError: it is.

    >>> check([[1]], depth=2)
    """
    if depth < 0:
        raise ValueError(f"nested deeper than {DEPTH}")
    if isinstance(value, Mapping):
        for inner in cast("Mapping[str, Any]", value).values():
            check(inner, depth - 1)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in cast("Sequence[Any]", value):
            check(inner, depth - 1)
