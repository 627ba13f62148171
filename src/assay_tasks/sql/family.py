"""Text to SQL: the family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.sql.combined import Combined, Window
from assay_tasks.sql.related import Children, Joined, Nested
from assay_tasks.sql.single import Aggregate, Filter, Group, Order

__all__ = ["sql"]


def sql() -> Problems:
    """Questions that one SQLite query answers, judged by its results on two sets of rows."""
    return Problems(
        name="sql",
        summary="Questions to generated databases, to be written as SQL.",
        problems=(Filter(), Aggregate(), Group(), Order(), Joined(), Children(), Nested(), Combined(), Window()),
    )
