"""The self-test: what assay promises, tried on this machine in minutes. A part is one record in `parts.PARTS`."""

from __future__ import annotations

__all__: list[str] = []
