"""Text to token ids and back: tokenizers, chat templates, conversations."""

from __future__ import annotations

__all__: list[str] = []
