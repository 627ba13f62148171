"""Questions to tables that stand in the prompt."""

from __future__ import annotations

__all__: list[str] = []
