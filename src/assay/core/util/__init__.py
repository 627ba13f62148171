"""Small helpers that any package may use: paths, JSON lines, threads, hub names, intervals."""

from __future__ import annotations

__all__: list[str] = []
