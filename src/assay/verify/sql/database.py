"""Databases as data: a schema and several sets of rows, built in memory."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import Any, cast

from assay.core.errors import DataError, a_kind

__all__ = ["Database"]

_KEYS = frozenset({"schema", "instances", "now"})
_TYPE = re.compile(r"[A-Za-z ]*(?:\( ?\d+ ?(?:, ?\d+ ?)?\))?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_WORD = 2**63


@dataclass(frozen=True, slots=True)
class Database:
    """A schema and two or more instances of it.

    A query that is right on one instance by luck fails on another, so one instance is refused.

    Attributes:
        schema: SQL that creates tables, indices and views; or table name to its columns, each a pair of name and type.
        instances: for each database SQL that fills it; or table name to rows. A cell is None, a number, text or bytes.
        now: what date functions take for the present moment, as SQLite writes times. It stands still, so that a verdict does
            not depend on the day.

    Raises:
        DataError: fewer than two different instances, or a value of another form.

    >>> database = Database({"t": (("a", "INTEGER"), ("b", "TEXT"))}, ({"t": ((1, "x"),)}, {"t": ((2, "y"), (3, None))}))
    >>> with database.open(1) as connection:
    ...     connection.execute("SELECT * FROM t").fetchall()
    [(2, 'y'), (3, None)]
    """

    schema: Any
    instances: tuple[Any, ...]
    now: str = "2000-01-01 00:00:00"

    def __post_init__(self) -> None:
        if not isinstance(self.schema, str | Mapping):
            raise DataError(f"schema is {self.schema!r}; give SQL, or a table's name with its columns as pairs of name and type")
        if len(self.instances) < 2:
            raise DataError(
                f"{len(self.instances)} instance; give two or more sets of rows, or a query that is right by luck passes"
            )
        if all(instance == self.instances[0] for instance in self.instances):
            raise DataError("the instances are all the same; a second one with other rows is what tells luck from knowledge")
        if not isinstance(self.now, str) or not _TIME.fullmatch(self.now):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(f"now is {self.now!r}; write a time like '2025-06-01 12:00:00'")

    @classmethod
    def of(cls, given: object) -> Database:
        """A database from plain data: ``schema``, ``instances``, and ``now`` if it matters.

        Raises:
            DataError: it has another form.
        """
        if not isinstance(given, Mapping):
            raise DataError(f"the database is {given!r}; give {{'schema': ..., 'instances': [..., ...]}}")
        found = cast("Mapping[str, Any]", given)
        missing, unknown = sorted({"schema", "instances"} - found.keys()), sorted(found.keys() - _KEYS)
        if missing or unknown:
            raise DataError(f"the database lacks {missing} and has unknown {unknown}; keys are {sorted(_KEYS)}")
        instances = found["instances"]
        if isinstance(instances, str) or not isinstance(instances, Sequence):
            raise DataError(f"'instances' is {a_kind(instances)}; give a list of two or more sets of rows")
        return cls(found["schema"], tuple(cast("Sequence[Any]", instances)), *([found["now"]] if "now" in found else []))

    @contextmanager
    def open(self, index: int) -> Generator[sqlite3.Connection]:
        """A fresh copy of one instance in memory, which nothing can be written to.

        Raises:
            DataError: SQLite refuses the schema or the rows.
        """
        with closing(sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)) as connection:
            try:
                connection.execute("PRAGMA temp_store=MEMORY")  # what a query sorts or keeps never reaches the disk
                connection.executescript(self.schema if isinstance(self.schema, str) else _creation(self.schema))
                self._fill(connection, self.instances[index])
                connection.execute("PRAGMA query_only=ON")
            except (sqlite3.Error, ValueError, OverflowError, MemoryError, TypeError) as error:
                raise DataError(f"instance {index} of the database cannot be built: {error or type(error).__name__}") from error
            yield connection

    def _fill(self, connection: sqlite3.Connection, instance: Any) -> None:
        if isinstance(instance, str):
            connection.executescript(instance)
            return
        if not isinstance(instance, Mapping):
            raise DataError(f"an instance is {a_kind(instance)}; give SQL, or a table's name with its rows")
        connection.execute("BEGIN")
        for table, rows in cast("Mapping[str, Sequence[Sequence[Any]]]", instance).items():
            for row in rows:
                marks = ",".join("?" * len(row))
                connection.execute(f"INSERT INTO {_name(table)} VALUES ({marks})", [_cell(table, cell) for cell in row])
        connection.execute("COMMIT")


def _creation(schema: Mapping[str, Any]) -> str:
    """SQL that creates the tables."""
    lines: list[str] = []
    for table, columns in schema.items():
        pairs = list(columns)
        for pair in pairs:
            if isinstance(pair, str) or len(pair) != 2 or not isinstance(pair[0], str) or not _TYPE.fullmatch(str(pair[1])):
                raise DataError(f"column {pair!r} of table {table!r} is no pair of a name and a type like 'INTEGER'")
        lines.append(f"CREATE TABLE {_name(table)} ({', '.join(f'{_name(name)} {kind}' for name, kind in pairs)});")
    return "\n".join(lines)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(table: str, value: Any) -> Any:
    if value is None or isinstance(value, str | bytes):
        return value
    if isinstance(value, int) and -_WORD <= value < _WORD:
        return int(value)
    if isinstance(value, float) and isfinite(value):
        return value
    raise DataError(f"a cell of table {table!r} is {value!r}; give None, a number of 64 bits, text or bytes")
