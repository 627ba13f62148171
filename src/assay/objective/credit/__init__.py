"""From rewards to advantages: numpy only, whole batch visible, no gradient."""

from __future__ import annotations

__all__: list[str] = []
