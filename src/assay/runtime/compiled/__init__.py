"""The decode path of small decoders and their training passes in C++, compiled on first use."""

from __future__ import annotations

__all__: list[str] = []
