"""Processes to follow step by step."""

from __future__ import annotations

__all__: list[str] = []
