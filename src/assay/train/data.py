"""The rows that a stage is given, from files of any form, with their places and digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.canon import check_row_text, digest
from assay.core.errors import ConfigError, DataError
from assay.core.util.hub import PREFIX, HubName, commit_of
from assay.curate.rows import entries, parse_entry, read_rows

if TYPE_CHECKING:
    from assay.train.offline_rows import HasRows
    from assay.train.run import Run

__all__ = ["data_digests", "pinned_data", "rows_of"]

Placed = tuple[str, Mapping[str, Any]]
"""Where a row stands, and its fields."""

_NOT_TEXT = ("messages", "conversations", "answers", "rewards", "label", "probability")
"""Fields that CSV, where all is text, holds as JSON."""
_MAYBE_TURNS = ("prompt", "completion", "chosen", "rejected", "tools")
"""Fields that may be lists of objects there."""


def rows_of(stage: HasRows) -> tuple[Placed, ...]:
    """All rows of a stage's data, or of a source's.

    Raises:
        ConfigError: no data, or a file or folder that holds none.
        DataError: a file that cannot be read, or a line that is no row; names it.
        HubError: a name on the hub that neither the cache nor the hub gives.
    """
    of = type(stage).__name__
    if not stage.data:
        raise ConfigError(f"{of}.data is empty; name a file of rows or a data set on the hub (hub:OWNER/NAME), or give the rows")
    if not isinstance(stage.data, str):
        return tuple((f"{of}.data, row {i}", row) for i, row in enumerate(stage.data, 1))
    try:
        files = entries(stage.data, one_split=True)
        rows = _read(stage.data, tuple((str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in files))
    except ConfigError as error:
        raise ConfigError(f"{of}.data: {error}") from None
    except OSError as error:
        raise DataError(f"cannot read rows from {stage.data}: {error}") from error
    if not rows:
        raise DataError(f"{stage.data} holds no rows; give one JSON object per line, or a table with a row for each")
    return rows


def data_digests(run: Run) -> Mapping[str, str]:
    """Digest of the content of each file, or set of files, that a run's stages learn from.

    Raises:
        ConfigError, DataError, HubError: as `rows_of`.
    """
    named = {name for stage in run.stages for name in stage.files}
    return {data: _digest(data) for data in sorted(named)}


def pinned_data(data: str) -> str:
    """The name of a data set on the hub with the commit behind it; any other as it is.

    Raises:
        ConfigError, HubError: no such data set.
    """
    repo, colon, files = data.removeprefix(PREFIX).partition(":")
    name = HubName.read(repo) if data.startswith(PREFIX) else None
    if name is None or name.pinned:
        return data
    return f"{PREFIX}{name.repo}@{commit_of(str(entries(data)[0]))}{colon}{files}"


@lru_cache(maxsize=4)
def _read(data: str, files: tuple[tuple[str, int, int], ...]) -> tuple[Placed, ...]:
    """Rows are asked for several times before a run begins, and read anew where a file has changed."""
    return tuple(row for path, _, _ in files for row in _rows(data, Path(path)))


def _rows(data: str, path: Path) -> Iterator[Placed]:
    shown = f"{data}, {path.name}" if data.startswith(PREFIX) else str(path)
    lines = path.name.removesuffix(".gz").endswith(("json", "jsonl", "ndjson"))
    sheet = path.suffix == ".csv"
    for number, entry in read_rows(path):
        place = f"{shown}, {'line' if lines else 'row'} {number}"
        try:
            row = parse_entry(entry)
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        check_row_text(row, place)
        yield place, {name: _cell(name, value) for name, value in row.items() if value != ""} if sheet else row


def _cell(name: str, value: str) -> Any:
    """What a cell of a sheet says; a text that is no JSON is left to whoever reads the field."""
    if name not in _NOT_TEXT and not (name in _MAYBE_TURNS and value.lstrip().startswith("[{")):
        return value
    try:
        return json.loads(value.lower() if name == "label" else value)
    except json.JSONDecodeError:
        return value


def _digest(data: str) -> str:
    try:
        found = {str(path): hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in entries(data)}
    except OSError as error:
        raise DataError(f"cannot read rows from {data}: {error}") from error
    return next(iter(found.values())) if len(found) == 1 else digest(list(found.values()))
