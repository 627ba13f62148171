"""One process at a time: a run folder has one worker, a cached base one builder.

The locks belong to the process and end with it, however it ends: nothing stale is left behind by a kill, and forked children
(scoring processes) do not inherit them. The lock file's text is the holder's process id, for people.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from assay.core.errors import ConfigError, StorageError
from assay.runs import storage

__all__ = ["LOCK", "builder", "holder", "worker"]

LOCK = ".lock"

_inside: dict[str, threading.Lock] = {}
"""Threads of one process share its file locks, so they are kept apart here."""
os.register_at_fork(after_in_child=_inside.clear)


@contextmanager
def worker(folder: Path) -> Generator[None]:
    """The right to work on a run folder, which is made if need be.

    Raises:
        ConfigError: another process, or another thread of this one, works on it.
        StorageError: the folder cannot be written.
    """
    with storage.storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _hold_lock(folder / LOCK, waiting=None):
        yield


@contextmanager
def builder(folder: Path, what: str) -> Generator[None]:
    """The right to build ``folder``; waits for another builder, and says so on the standard error stream.

    A folder with ``done.json`` is built: whoever holds the lock then only looks at it, and there is nothing to say.

    Raises:
        StorageError: the parent folder cannot be written.
    """

    def announce() -> None:
        if not (folder / "done.json").exists():
            print(f"another process builds {what} in {folder}; waiting for it", file=sys.stderr, flush=True)

    with storage.storage_errors(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with _hold_lock(folder.with_name(folder.name + LOCK), waiting=announce):
        yield


def holder(folder: Path) -> str:
    """The process that works on a run folder, by its id; empty where none does, or this one."""
    try:
        with (folder / LOCK).open("r+", encoding="utf-8") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return _holder(file)
    except OSError:
        pass  # no folder, or none that was ever worked on
    return ""


@contextmanager
def _hold_lock(path: Path, waiting: Callable[[], None] | None) -> Generator[None]:
    own = _inside.setdefault(str(path.absolute()), threading.Lock())
    if not own.acquire(blocking=waiting is not None):
        raise ConfigError(
            f"{path.parent} is being worked on by another thread of this process; wait for it, or use another folder"
        )
    try:
        with storage.storage_errors(path):
            file = path.open("a+", encoding="utf-8")
        with file:
            _lock(file, path, waiting)
            with storage.storage_errors(path):
                file.truncate(0)
                file.write(f"{os.getpid()}\n")
                file.flush()
            yield
    finally:
        own.release()


def _lock(file: IO[str], path: Path, waiting: Callable[[], None] | None) -> None:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise StorageError(f"cannot lock {path}: {error.strerror}; use a folder on a file system with locks") from error
    if waiting is None:
        raise ConfigError(
            f"{path.parent} is being worked on by process {_holder(file)}; wait for it, or stop it, or use another folder"
        )
    waiting()
    fcntl.lockf(file, fcntl.LOCK_EX)


def _holder(file: IO[str]) -> str:
    file.seek(0)
    return file.read().strip() or "unknown"
