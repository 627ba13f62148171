"""Temporary folders that do not outlive their process for long, however it ended."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

__all__ = ["OwnedFolder"]

_OWNER = ".owner"


class OwnedFolder:
    """A temporary folder of this process, removed by `close`, or when nothing refers to it any more.

    A process that is killed removes nothing. So each new folder first removes those with its prefix whose process has ended: a
    process holds a lock on a file in its folder, which the kernel releases at its end, also across containers that share a
    folder for temporary files. A folder without such a file is nobody's to remove.

    Args:
        prefix: of its name.

    Attributes:
        path: where it is.

    >>> folder = OwnedFolder("assay-example-")
    >>> folder.path.is_dir(), folder.close(), folder.path.exists()
    (True, None, False)
    """

    def __init__(self, prefix: str) -> None:
        _remove_orphans(Path(tempfile.gettempdir()), prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        lock = os.open(self.path / f"{_OWNER}.new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(self.path / f"{_OWNER}.new", self.path / _OWNER)  # nobody meets it without its lock
        self._finalizer = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Removes the folder; harmless when repeated."""
        self._finalizer()


def _remove(path: Path, lock: int, pid: int) -> None:
    """Removes a folder of this process; a forked copy only lets go of it."""
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        os.close(lock)


def _remove_orphans(place: Path, prefix: str) -> None:
    """Removes the folders whose process holds no lock any more."""
    for path in place.glob(f"{prefix}*"):
        try:
            lock = os.open(path / _OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # of a process that is about to begin, of another user, or of another origin
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:  # its process lives
            pass
        finally:
            os.close(lock)
