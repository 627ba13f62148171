"""Many rows of a configuration, beside it: one file of JSON lines, named by its digest, instead of a table for each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast, overload

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError

__all__ = ["BESIDE", "FEW", "RowFile", "RowStore", "as_lines", "rows_beside"]

BESIDE = "beside"
"""Marks a field of a part whose rows may stand beside its configuration: in its metadata, the name of the part's method that says
more about the rows (see `RowStore.put`)."""

FEW = 256
"""Rows up to which they stand in the configuration itself."""

Write = Callable[[Path, bytes | bytearray], None]
_AT_ONCE = 4096


class RowFile(Sequence[FrozenMap]):
    """Rows that stand in a file, each read when it is asked for; equal to the same rows in memory.

    Attributes:
        data: the file's bytes: a JSON object a line.
        digest: blake2b of them.
        notes: what the part that wrote them knew besides, as bytes; empty where nothing is known.

    >>> rows = RowFile(as_lines([{"prompt": "1+1="}, {"prompt": "2+2="}]))
    >>> len(rows), rows[1]["prompt"], rows == (FrozenMap({"prompt": "1+1="}), FrozenMap({"prompt": "2+2="}))
    (2, '2+2=', True)
    """

    def __init__(self, data: bytes | bytearray, notes: bytes = b"") -> None:
        self.data, self.notes = data, notes
        self.digest = digest_of(data)
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
        self._starts = np.concatenate([np.zeros(1, np.int64), ends + 1])

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> FrozenMap: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[FrozenMap, ...]: ...
    def __getitem__(self, index: int | slice) -> FrozenMap | tuple[FrozenMap, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(len(self))[index])
        at = range(len(self))[index]
        line = self.data[int(self._starts[at]) : int(self._starts[at + 1]) - 1]
        return FrozenMap(json.loads(line.decode("utf-8", "surrogatepass")))

    def __iter__(self) -> Iterator[FrozenMap]:
        return (self[at] for at in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RowFile):
            return self.digest == other.digest
        if isinstance(other, str) or not isinstance(other, Sequence):
            return NotImplemented
        rows = cast("Sequence[Any]", other)
        return len(rows) == len(self) and all(mine == its for mine, its in zip(self, rows, strict=True))

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"RowFile({len(self)} rows, {self.digest})"


def as_lines(rows: Sequence[Mapping[str, Any]]) -> bytearray:
    r"""Rows as JSON lines.

    Raises:
        TypeError: a value that JSON does not know.

    >>> bytes(as_lines([{"a": (1, None)}]))
    b'{"a":[1,null]}\n'
    """
    found = bytearray()
    for start in range(0, len(rows), _AT_ONCE):
        lines = [_ENCODER.encode(dict(row)) + "\n" for row in rows[start : start + _AT_ONCE]]
        found += "".join(lines).encode("utf-8", "surrogatepass")
    return found


def digest_of(data: bytes | bytearray) -> str:
    """Hex blake2b of a file's bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class RowStore:
    """Where the rows of a configuration stand, while it is written or read.

    Args:
        folder: the configuration's.
        write: puts a file there, whole or not at all; without one nothing is written, and rows are named only.

    Attributes:
        names: files that the configuration names.
    """

    def __init__(self, folder: Path, write: Write | None = None) -> None:
        self.folder, self.names = folder, list[str]()
        self._write = write

    def put(self, rows: Sequence[Mapping[str, Any]], known: dict[str, Any], notes: Callable[[], bytes]) -> dict[str, Any] | None:
        """What stands in the configuration for rows; None where they stay in it, being few or no plain values.

        Args:
            rows: the rows.
            known: keeps their digest, once it was made, and their lines until they are written.
            notes: says what the part knows of them.
        """
        if len(rows) <= FEW or known.get("digest") == "":
            return None
        if "digest" not in known:
            try:
                known["data"] = as_lines(rows)  # kept for the writing that follows, mostly at once
            except TypeError:
                known["digest"] = ""
                return None
            known["digest"] = digest_of(known["data"])
        name = f"rows-{known['digest']}.jsonl"
        self.names.append(name)
        if self._write is not None:
            data = known.pop("data", None)
            if not (self.folder / name).exists():
                self._write(self.folder / _notes_of(name), notes())
                self._write(self.folder / name, rows.data if isinstance(rows, RowFile) else data or as_lines(rows))
        return {"kind": "rows", "file": name, "rows": len(rows)}

    def get(self, table: Mapping[str, Any], place: str) -> RowFile:
        """The rows that a table stands for.

        Raises:
            ConfigError: they are not there, or others.
        """
        name = str(table.get("file"))
        path, notes = self.folder / Path(name).name, self.folder / Path(_notes_of(name)).name
        try:
            found = RowFile(path.read_bytes(), notes.read_bytes() if notes.exists() else b"")
        except OSError as error:
            raise ConfigError(f"{place}: cannot read its rows: {error}; put {path.name} beside the file that names it") from error
        if name != f"rows-{found.digest}.jsonl" or len(found) != table.get("rows"):
            raise ConfigError(f"{place}: {path} is damaged: its rows are not those that were written; restore it from a copy")
        return found


def _notes_of(name: str) -> str:
    return name.removesuffix(".jsonl") + ".npz"


def _open(value: Any) -> Any:
    if isinstance(value, FrozenMap):
        return dict(value)
    raise TypeError(f"{value!r} is no JSON")


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=_open)

_store: ContextVar[RowStore | None] = ContextVar("rows", default=None)


@contextmanager
def rows_beside(folder: Path, write: Write | None = None) -> Generator[RowStore]:
    """Inside the block, `to_dict` names many rows by a file of ``folder``, and `from_dict` finds them there.

    Args:
        folder: where the configuration stands.
        write: puts a file there; without one nothing is written.
    """
    store = RowStore(folder, write)
    token = _store.set(store)
    try:
        yield store
    finally:
        _store.reset(token)


def current_store() -> RowStore | None:
    """The store of the block around, if there is one."""
    return _store.get()
