"""All graph problems as one family."""

from __future__ import annotations

from assay.tasks.graphs.routes import ROUTES
from assay.tasks.problems import Problems

__all__ = ["graphs"]


def graphs() -> Problems:
    """Questions about graphs, from paths to isomorphism."""
    return Problems(name="graphs", problems=ROUTES)
