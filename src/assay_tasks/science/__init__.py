"""Problems of physics, chemistry, biology and astronomy, with units."""

from __future__ import annotations

__all__: list[str] = []
