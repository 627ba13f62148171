"""A learner shared by several processes: mesh, workers, collectives, FSDP2, checkpoints."""

from __future__ import annotations

__all__: list[str] = []
