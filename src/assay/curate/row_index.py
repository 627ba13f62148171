"""What files say about rows, found by id or question: an index on disk, so that millions of entries take no memory."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from assay.core.errors import DataError
from assay.curate.rows import Fields, Row, entries, parse_entry, read_rows
from assay.curate.text import normal

__all__ = ["Joined"]

_ASKED = 500
"""Keys in one query."""


class Joined:
    """Entries of files, by the row that they are about.

    An entry names its row by ``id``: the one that curation gave it, or the row's own; or by its question. Of several about one
    row, all are given, in their order.

    Args:
        place: the index; built there, or used where it is already.
        files: files or folders of entries.
        fields: where an entry without an ``id`` holds its question.
        read: what to keep of an entry, as JSON values; raises `DataError` where it is wrong.

    Raises:
        DataError: an entry cannot be read or names no row; names its place.
    """

    def __init__(self, place: Path, files: Iterable[Path], fields: Fields, read: Callable[[Mapping[str, Any]], Any]) -> None:
        if not place.exists():
            fresh = place.with_suffix(".new")
            fresh.unlink(missing_ok=True)
            with closing(_open_database(fresh)) as base:
                base.execute("CREATE TABLE entries (key BLOB, number INTEGER, value TEXT)")
                base.executemany("INSERT INTO entries VALUES (?, ?, ?)", _entries(files, fields, read))
                base.execute("CREATE INDEX by_key ON entries (key)")
                base.commit()
            os.replace(fresh, place)
        self._base = _open_database(place)

    def of(self, rows: Sequence[Row]) -> list[list[Any]]:
        """What was kept about each row."""
        wanted = [self._keys(row) for row in rows]
        found: dict[bytes, list[Any]] = {}
        asked = list(dict.fromkeys(key for keys in wanted for key in keys))
        for start in range(0, len(asked), _ASKED):
            some = asked[start : start + _ASKED]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, value FROM entries WHERE key IN ({marks}) ORDER BY number"
            for key, value in self._base.execute(query, some):
                found.setdefault(key, []).append(json.loads(value))
        nothing: list[Any] = []
        return [next((found[key] for key in keys if key in found), nothing) for keys in wanted]

    def close(self) -> None:
        """Lets the file go."""
        self._base.close()

    def _keys(self, row: Row) -> tuple[bytes, ...]:
        own = row.data.get("id")
        ids = (_key("id", row.id),) if own is None else (_key("id", row.id), _key("id", own))
        return (*ids, _key("question", row.text))


def _entries(files: Iterable[Path], fields: Fields, read: Callable[[Mapping[str, Any]], Any]) -> Iterator[tuple[bytes, int, str]]:
    number = 0
    for path in (path for place in files for path in entries(place)):
        for line, entry in read_rows(path):
            try:
                said = parse_entry(entry)
                if said.get("id") is not None:
                    key = _key("id", said["id"])
                else:
                    key = _key("question", normal(fields.question_of(said)))
                yield key, number, json.dumps(read(said))
            except DataError as error:
                raise DataError(f"{path}, line {line}: {error}") from None
            number += 1


def _key(kind: str, value: Any) -> bytes:
    return hashlib.blake2b(f"{kind} {value}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _open_database(place: Path) -> sqlite3.Connection:
    """A database that is written once and renamed when it is whole, so it needs no journal."""
    base = sqlite3.connect(place)
    base.execute("PRAGMA journal_mode = OFF")
    base.execute("PRAGMA synchronous = OFF")
    return base
