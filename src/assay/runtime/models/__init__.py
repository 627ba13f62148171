"""Models as plain values: read, written, described, with adapters."""

from __future__ import annotations

__all__: list[str] = []
