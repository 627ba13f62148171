"""The loss tokens of a batch as chains, one for each rollout, and the segments (turns, steps) that they fall into."""

from __future__ import annotations

import numpy as np

from assay.core.errors import UnknownNameError
from assay.objective.credit.paths import Index, Path

__all__ = ["PLACES", "check_place", "places"]

PLACES = ("token", "start", "end")


def places(path: Path, segments: Path, segment: Index, at: str) -> Index:
    """``[k]`` positions in the batch of each segment's first (``start``) or last (``end``) loss token."""
    if at == "start":
        return segments.at
    return path.at[np.append(np.flatnonzero(np.diff(segment)), len(segment) - 1)[: len(segments.at)]]


def check_place(part: str, at: str) -> None:
    """Raises UnknownNameError unless ``at`` is a place."""
    if at not in PLACES:
        raise UnknownNameError(f"place of {part}", at, PLACES)
