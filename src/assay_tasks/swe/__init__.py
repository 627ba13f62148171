"""Small repositories with bugs, to be mended from a user's report."""

from __future__ import annotations

__all__: list[str] = []
