"""Problems of ways through a maze."""

from __future__ import annotations

__all__: list[str] = []
