"""Running a query that nobody trusts: what it may do, how much of it, and what it read."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from time import thread_time

from assay.core.errors import ConfigError
from assay.sandbox.sql.functions import ALLOWED, Tamed
from assay.sandbox.sql.statement import Refusal, StatementVerdict

__all__ = ["Cell", "Guard", "QueryLimits", "Result", "Rows"]

Cell = None | int | float | str | bytes
Rows = tuple[tuple[Cell, ...], ...]

_LONG = (str, bytes)

_PULSE = 100
"""Steps between two looks at the limits."""

_CALL = 50
"""Steps that a call of a Python function counts as: it takes as long."""

_LEAST = 200_000
"""Steps that every answer may take, however few the gold query took."""

_FIXED = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 400,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 128,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""No query that a person would write comes near; what costs more than a step per row is kept small."""

_ACTIONS = {
    sqlite3.SQLITE_INSERT: "inserts",
    sqlite3.SQLITE_UPDATE: "updates",
    sqlite3.SQLITE_DELETE: "deletes",
    sqlite3.SQLITE_PRAGMA: "asks a PRAGMA",
}

_TOO_MUCH = (
    "Expression tree is too large",
    "LIKE or GLOB pattern too complex",
    "at most 64 tables in a join",
    "parser stack overflow",
    "string or blob too big",
    "too many FROM clause terms",
    "too many arguments on function",
    "too many columns in",
    "too many references to",
    "too many terms in",
)
"""How SQLite's messages about a limit begin; it gives most of them the code of any error."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """How much one run of one query may cost.

    Attributes:
        steps: of SQLite's virtual machine. The limit that most runaway queries meet, and the same on every machine. A call of a
            function that is made harmless (`Tamed`) counts as 50.
        times: an answer may take so many times the steps of the gold query on the same database, and always 200,000, but no more
            than ``steps``: or runaway answers would cost far more than honest ones.
        seconds: of processor time of this thread, for the rare query whose single steps are slow.
        rows: in its result.
        size: bytes of its result.
        cell: bytes of one value, results in between included.
        memory: bytes of SQLite's heap. SQLite keeps this limit for the whole process and lets it only be lowered: one more
            reason to judge in a `ScoringPool`, whose worker is a process of its own.
        characters: in its text.

    Raises:
        ConfigError: a limit that is not positive.

    >>> QueryLimits(rows=100).steps
    2000000
    """

    steps: int = 2_000_000
    times: int = 100
    seconds: float = 2.0
    rows: int = 10_000
    size: int = 8_000_000
    cell: int = 16_384
    memory: int = 64_000_000
    characters: int = 10_000

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ConfigError(f"QueryLimits.{field.name} is {getattr(self, field.name)}; a limit is positive")


@dataclass(frozen=True, slots=True)
class Result:
    """What a query gave.

    Attributes:
        rows: in the order in which they came.
        width: how many columns.
        used: the tables and columns (``table.column``) that it read, in lower case, as SQLite resolved them.
    """

    rows: Rows
    width: int
    used: frozenset[str]


class Guard:
    """Runs queries on one database, each within limits, and allows them to read its tables and nothing else.

    A context manager: it holds a second connection (`Tamed`).

    Args:
        connection: the database; the guard keeps it.
        limits: per run.
        now: what date functions take for the present moment.
    """

    def __init__(self, connection: sqlite3.Connection, limits: QueryLimits, now: str) -> None:
        self._connection = connection
        self._limits = limits
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        self._tables = frozenset(str(name).lower() for (name,) in tables)
        connection.text_factory = _decode_text
        connection.execute(f"PRAGMA hard_heap_limit={limits.memory}")
        self._functions = Tamed(connection, now, limits.cell)
        for category, value in _FIXED.items():
            connection.setlimit(category, value)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.cell)
        connection.set_progress_handler(self._pulse, _PULSE)
        self._pulses = 0
        self._allowed = limits.steps
        self._due = 0.0
        self._stopped = ""
        self._denied = ""
        self._used: set[str] = set()

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None:
        self._functions.close()

    @property
    def steps(self) -> int:
        """What the last run took."""
        return self._pulses * _PULSE + self._functions.calls * _CALL

    def allow(self, steps: int) -> None:
        """Let the runs to come take `QueryLimits.times` as many steps as the gold query's run took."""
        self._allowed = min(self._limits.steps, max(_LEAST, self._limits.times * steps))

    def run(self, sql: str, backward: bool = False) -> Result:
        """The result of one statement.

        Args:
            sql: the statement.
            backward: SQLite visits rows in the opposite order wherever the statement leaves the order open.

        Raises:
            Refusal: ``syntax``, ``forbidden`` or ``limit``.
        """
        self._connection.execute(f"PRAGMA reverse_unordered_selects={int(backward)}")
        self._pulses, self._stopped, self._denied, self._used = 0, "", "", set()
        self._functions.exceeded, self._functions.calls = "", 0
        self._due = thread_time() + self._limits.seconds
        try:
            with self._watch_query(), closing(self._connection.execute(sql)) as cursor:
                return Result(self._rows(cursor), len(cursor.description or ()), frozenset(self._used))
        except MemoryError:
            raise Refusal(StatementVerdict.LIMIT, "memory, or the size of the compiled query") from None
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:  # ValueError: text that is no Unicode
            raise self._refusal(error) from None

    @contextmanager
    def _watch_query(self) -> Generator[None]:
        self._connection.set_authorizer(self._authorize)
        try:
            yield
        finally:
            self._connection.set_authorizer(None)

    def _rows(self, cursor: sqlite3.Cursor) -> Rows:
        rows: list[tuple[Cell, ...]] = []
        size = 0
        for row in cursor:
            rows.append(row)
            size += sum([len(cell) if isinstance(cell, _LONG) else 8 for cell in row])
            if len(rows) > self._limits.rows:
                raise Refusal(StatementVerdict.LIMIT, f"more than {self._limits.rows} rows")
            if size > self._limits.size:
                raise Refusal(StatementVerdict.LIMIT, f"a result of more than {self._limits.size} bytes")
        return tuple(rows)

    def _refusal(self, error: Exception) -> Refusal:
        message = str(error)
        if self._denied:
            return Refusal(StatementVerdict.FORBIDDEN, self._denied)
        if self._stopped or self._functions.exceeded:
            return Refusal(StatementVerdict.LIMIT, self._stopped or self._functions.exceeded)
        if message.startswith(_TOO_MUCH):
            return Refusal(StatementVerdict.LIMIT, message)
        return Refusal(StatementVerdict.SYNTAX, message)

    def _pulse(self) -> bool:
        self._pulses += 1
        if self.steps > self._allowed:
            self._stopped = f"more than {self._allowed} steps"
        elif thread_time() > self._due:
            self._stopped = f"more than {self._limits.seconds:g} s of processor time"
        return bool(self._stopped)

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            table, column = str(first).lower(), str(second).lower()
            if table in self._tables:
                self._used |= {table, f"{table}.{column}"} if column else {table}
            elif column:  # without a column it may be a name of the query's own, and nothing is read
                return self._deny(f"reads {table}, no table of the database")
        elif action == sqlite3.SQLITE_FUNCTION:
            if str(second).lower() not in ALLOWED:
                return self._deny(f"calls {second}")
        elif action not in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return self._deny(_ACTIONS.get(action, f"does more than read (action {action} of SQLite's authorizer)"))
        return sqlite3.SQLITE_OK

    def _deny(self, what: str) -> int:
        self._denied = self._denied or what
        return sqlite3.SQLITE_DENY


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
