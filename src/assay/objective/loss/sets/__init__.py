"""Losses on sets of scores, by kind: pointwise, pairwise, groupwise."""

from __future__ import annotations

__all__: list[str] = []
