"""Problems with letters, words, lists and passages."""

from __future__ import annotations

__all__: list[str] = []
