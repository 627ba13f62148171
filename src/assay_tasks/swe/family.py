"""Repositories to mend: the family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.swe.problems import Patch
from assay_tasks.swe.repair import Repair

__all__ = ["swe"]


def swe() -> Problems:
    """Small Python repositories with bugs, to be mended from a user's report.

    Carries: Multi-SWE-bench, Multi-SWE-RL (arXiv 2504.02605), in part.
    """
    return Problems(
        name="swe", summary="Small Python repositories with bugs, mended from a user's report.", problems=(Patch(), Repair())
    )
