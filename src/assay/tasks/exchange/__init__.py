"""Families as environments of other libraries, and theirs as families."""

from __future__ import annotations

__all__: list[str] = []
