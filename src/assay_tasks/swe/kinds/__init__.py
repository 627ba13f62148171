"""Kinds of modules that repositories are made of."""

from __future__ import annotations

__all__: list[str] = []
