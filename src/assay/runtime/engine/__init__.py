"""Engines that sample tokens in this process, and the settings of all engines."""

from __future__ import annotations

__all__: list[str] = []
