"""Attempts at tasks: one engine, one environment each, all on one event loop, token in and token out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.rollout.branching import Branching, BranchingSampler
    from assay.rollout.chunks import Chunks
    from assay.rollout.context import KeepAll, KeepLast
    from assay.rollout.function_tool import FunctionTool
    from assay.rollout.player import Player
    from assay.rollout.saying import Reader
    from assay.rollout.spec import PlayerSpec
    from assay.rollout.summarise import Summarise

__all__ = [
    "Branching",
    "BranchingSampler",
    "Chunks",
    "FunctionTool",
    "KeepAll",
    "KeepLast",
    "Player",
    "PlayerSpec",
    "Reader",
    "Summarise",
]

_HOME = {
    "Branching": "branching",
    "BranchingSampler": "branching",
    "Chunks": "chunks",
    "FunctionTool": "function_tool",
    "KeepAll": "context",
    "KeepLast": "context",
    "Player": "player",
    "PlayerSpec": "spec",
    "Reader": "saying",
    "Summarise": "summarise",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
