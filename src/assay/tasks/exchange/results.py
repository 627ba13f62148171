"""What became of the rows of an import: those that were refused, and the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Rejected", "Summary"]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that was not taken, and why; ``key`` names its question where row ``first`` answers it otherwise."""

    place: str
    number: int
    step: str
    reason: str
    row: Mapping[str, Any] | None
    key: str = ""
    first: str = ""

    def record(self) -> dict[str, Any]:
        """As a line of a file."""
        return {"place": self.place, "number": self.number, "step": self.step, "reason": self.reason, "row": self.row}


@dataclass(slots=True)
class Summary:
    """What became of the rows: how many were taken by licence, verifier and source, and how many refused by step."""

    read: int = 0
    taken: int = 0
    rejected: Counter[str] = field(default_factory=Counter[str])
    licences: Counter[str] = field(default_factory=Counter[str])
    verifiers: Counter[str] = field(default_factory=Counter[str])
    sources: Counter[str] = field(default_factory=Counter[str])

    def record(self) -> dict[str, Any]:
        """As plain values."""
        counts = {name: dict(sorted(getattr(self, name).items())) for name in ("rejected", "licences", "verifiers", "sources")}
        return {"read": self.read, "taken": self.taken, **counts}
