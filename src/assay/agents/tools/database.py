"""SQL on a database of one's own, which nobody can change."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from assay.core.errors import ConfigError
from assay.sandbox.sql.guard import Guard, QueryLimits
from assay.sandbox.sql.statement import Refusal

__all__ = ["ReadOnlyDatabase"]


class ReadOnlyDatabase:
    """An SQLite file that queries may read, within limits; what `query` answers is what a tool answers.

    Put it behind a function of three lines, whose docstring tells the model what is in it:

        SALES = ReadOnlyDatabase("sales.db")

        def sql(query: str) -> str:
            "Runs a query on the table sales(day, thing, pieces)."
            return SALES.query(query)

    Args:
        path: of the file.
        rows: of an answer that are shown.
        limits: of a query: steps, seconds, rows and bytes. More rows than ``limits.rows`` are an error that says so.

    Raises:
        ConfigError: there is no such file, it is no database, or less than one row is shown.
    """

    def __init__(self, path: str | Path, rows: int = 50, limits: QueryLimits | None = None) -> None:
        self.path, self._rows, self._limits = Path(path).resolve(), rows, limits or QueryLimits(rows=1000)
        if rows < 1 or not self.path.is_file():
            raise ConfigError(f"ReadOnlyDatabase(path={str(path)!r}, rows={rows}): give an SQLite file, and at least one row")
        self._lock = threading.Lock()
        try:
            with closing(self._open()) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            raise ConfigError(f"ReadOnlyDatabase: {self.path} is no SQLite database ({error})") from None

    def query(self, sql: str) -> str:
        """The rows of one SELECT, cells with ``|`` between, in a line each.

        Raises:
            ValueError: the query is wrong, would change something, or takes too long; says which.
        """
        with (
            self._lock,
            closing(self._open()) as connection,
            Guard(connection, self._limits, "2024-01-01 00:00:00") as guard,
        ):
            try:
                found = guard.run(sql)
            except Refusal as error:
                raise ValueError(str(error)) from None
        lines = ["|".join("" if cell is None else str(cell) for cell in row) for row in found.rows[: self._rows]]
        left = len(found.rows) - len(lines)
        return "\n".join([*lines, *([f"({left} more rows)"] if left else [])]) or "(no rows)"

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.path}?mode=ro&immutable=1", uri=True, check_same_thread=False)
