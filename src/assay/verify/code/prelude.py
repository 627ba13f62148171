"""Names that a program may use without importing them, as coding sites have it."""

from __future__ import annotations

import ast

from assay.core.errors import ConfigError

__all__ = ["PRELUDE", "check_prelude", "with_prelude"]

PRELUDE = "from typing import *"
"""The default: programs written for coding sites say ``List[int]`` and import nothing."""


def with_prelude(source: str, prelude: str) -> str:
    r"""A program behind its prelude; a docstring and imports from ``__future__`` stay first, as Python wants them.

    What is no Python stays as it is, and so does a program to which the prelude adds nothing.

    >>> with_prelude("from __future__ import annotations\ndef f(x: List[int]): ...", "from typing import *")
    'from __future__ import annotations\nfrom typing import *\ndef f(x: List[int]): ...'
    """
    if not prelude.strip():
        return source
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    first = next((i for i, node in enumerate(body) if not _stays_first(i, node)), len(body))
    if first == 0:
        return f"{prelude}\n{source}"
    lines = source.split("\n")
    end = body[first - 1].end_lineno or 0
    if first < len(body) and body[first].lineno <= end:  # two statements in one line
        return source
    return "\n".join([*lines[:end], prelude, *lines[end:]])


def check_prelude(prelude: str, place: str) -> None:
    """Refuses a prelude that is no Python.

    Raises:
        ConfigError: it is none; names the place.
    """
    try:
        ast.parse(prelude)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{place} is no Python: {error}; give import statements, or '' for none") from None


def _stays_first(index: int, node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return True
    return (
        index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
