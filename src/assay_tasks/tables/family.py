"""Questions to tables: the family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.tables.questions import Aggregate, Compare, Count, Lookup, Nth, Pivot
from assay_tasks.tables.several import Hops, Trend

__all__ = ["tables"]


def tables() -> Problems:
    """Questions to tables in the prompt: look-ups, aggregates, comparisons, hops, order, pivots, trends."""
    return Problems(
        name="tables",
        summary="Questions to tables in the prompt, of one hop and of several.",
        problems=(Lookup(), Count(), Aggregate(), Compare(), Hops(), Nth(), Pivot(), Trend()),
    )
