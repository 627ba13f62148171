"""Games of one player: played by turns, judged by playing the turns again."""

from __future__ import annotations

__all__: list[str] = []
