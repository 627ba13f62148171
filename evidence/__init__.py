"""Studies and evidence pages of this repository, made with the public API."""

from __future__ import annotations

__all__: list[str] = []
