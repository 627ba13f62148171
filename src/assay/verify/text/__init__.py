"""Answers that are read from text: a choice, a set, a list, a number, JSON, a label, a ranking, and the form of the whole."""

from __future__ import annotations

__all__: list[str] = []
