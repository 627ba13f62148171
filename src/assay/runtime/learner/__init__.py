"""The learner: forward and backward passes, heads, optimiser, weights to publish."""

from __future__ import annotations

__all__: list[str] = []
