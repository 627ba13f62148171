"""Programs to write: the family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.coding.problems import Bug, FromExamples, FromWords, Repair, Translate, UnitTest

__all__ = ["coding"]


def coding() -> Problems:
    """Python to write, mend, translate and test, run in the sandbox against hidden tests."""
    return Problems(
        name="coding",
        summary="Python to write, mend, translate and test, judged by hidden tests.",
        problems=(FromWords(), FromExamples(), Repair(), Translate(), UnitTest(), Bug()),
    )
