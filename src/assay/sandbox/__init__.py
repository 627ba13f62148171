"""Contained execution of what a model wrote: limits, layers, verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.sandbox.limits import Limits
    from assay.sandbox.result import Program, Result, Status

__all__ = ["Limits", "Program", "Result", "Status"]

_HOME = {
    "limits": "Limits",
    "result": "Program Result Status",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.sandbox.{module}"), name)
    raise AttributeError(f"module 'assay.sandbox' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
