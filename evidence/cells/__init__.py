"""Cells of the studies: recipes that only evidence pages run."""

from __future__ import annotations

__all__: list[str] = []
