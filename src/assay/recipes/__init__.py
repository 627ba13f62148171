"""Complete runs as plain functions. ``RECIPES`` names those that the command line knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.recipes.quickstart import base, quickstart
    from assay.recipes.rows import on_rows
    from assay.recipes.tools import tool_base, tools

__all__ = ["RECIPES", "base", "on_rows", "quickstart", "tool_base", "tools"]

RECIPES = {
    "quickstart": "assay.recipes.quickstart:quickstart",
    "base": "assay.recipes.quickstart:base",
    "tools": "assay.recipes.tools:tools",
    "tool-base": "assay.recipes.tools:tool_base",
}

_HOME = {"quickstart": "base quickstart", "rows": "on_rows", "tools": "tool_base tools"}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.recipes.{module}"), name)
    raise AttributeError(f"module 'assay.recipes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
