"""From log-probabilities to a loss: torch inside functions only, so that settings load without it."""

from __future__ import annotations

__all__: list[str] = []
