"""Answers judged by their property: graphs, satisfying assignments, mazes, truth-tellers. Whatever has the property is right."""

from __future__ import annotations

__all__: list[str] = []
