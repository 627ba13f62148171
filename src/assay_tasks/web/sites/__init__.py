"""The sites: what is on their pages, and what is asked of who visits them."""

from __future__ import annotations

__all__: list[str] = []
