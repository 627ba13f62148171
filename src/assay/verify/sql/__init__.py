"""Text to SQL: queries judged by their results on several databases, and by their closeness to the gold query."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.sandbox.sql.guard import QueryLimits
    from assay.verify.sql.database import Database
    from assay.verify.sql.match import SqlMatch
    from assay.verify.sql.think2sql import Think2Sql

__all__ = ["Database", "QueryLimits", "SqlMatch", "Think2Sql"]

_HOME = {
    "Database": "assay.verify.sql.database",
    "QueryLimits": "assay.sandbox.sql.guard",
    "SqlMatch": "assay.verify.sql.match",
    "Think2Sql": "assay.verify.sql.think2sql",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'assay.verify.sql' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
