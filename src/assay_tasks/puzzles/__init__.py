"""Puzzles whose answer is the only one: constraints, a solver that proves it, and plans that are carried out."""

from __future__ import annotations

__all__: list[str] = []
