"""Attempts at tasks: one engine, one environment each, all on one event loop, token in and token out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.rollout.context import KeepAll, LastTurns
    from assay.rollout.player import Player
    from assay.rollout.saying import Reader

__all__ = ["KeepAll", "LastTurns", "Player", "Reader"]

_HOME = {"KeepAll": "context", "LastTurns": "context", "Player": "player", "Reader": "saying"}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
