"""Where the numbers of a run go besides its own journal: settings of each tracker, and the process that sends to it."""

from __future__ import annotations

__all__: list[str] = []
