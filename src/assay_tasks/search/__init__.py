"""Questions over an invented world, to be answered by searching its encyclopedia."""

from __future__ import annotations

__all__: list[str] = []
