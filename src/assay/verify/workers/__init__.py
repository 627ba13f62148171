"""Worker processes that run verifiers: supervisor, dispatch, deadlines, results."""

from __future__ import annotations

__all__: list[str] = []
