"""Questions about long texts."""

from __future__ import annotations

__all__: list[str] = []
