"""Which of the host's files a program may read: what an interpreter needs, and what the sandbox was told."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

__all__ = ["DEVICES", "empty", "package_folders", "readable", "split"]

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime")


def readable(more: Sequence[str]) -> list[str]:
    """Real paths: shared libraries, the standard library, what is loaded from elsewhere, and ``more``; none inside another.

    Raises:
        OSError: one of ``more`` is not there.
    """
    for path in more:
        os.stat(path)
    library = os.path.dirname(os.__file__)
    paths = {os.path.realpath(p) for p in (*_LIBRARIES, library, *_loaded_files(), *more)}
    found = sorted(p for p in paths if os.path.exists(p))
    return [p for p in found if not any(p != q and (p + "/").startswith(q.rstrip("/") + "/") for q in found)]


def package_folders() -> list[str]:
    """Folders of installed packages: a program is run without them, and they may hold the very code that judges it."""
    library = os.path.dirname(os.path.realpath(os.__file__))
    places = [f"{library}/site-packages", f"{library}/dist-packages", "/usr/lib/python3/dist-packages"]
    return [p for p in map(os.path.realpath, places) if os.path.isdir(p)]


def split(paths: Sequence[str], without: Sequence[str]) -> list[str]:
    """Paths that together hold all of ``paths`` but nothing of ``without``."""
    out: list[str] = []
    for path in paths:
        inside = [w for w in without if (w + "/").startswith(path.rstrip("/") + "/")]
        if not inside:
            out.append(path)
        elif path not in inside:
            out += split([entry.path for entry in os.scandir(path) if not entry.is_symlink()], inside)
    return out


def _loaded_files() -> list[str]:
    """The files that this interpreter has mapped: its own library may stand beside its prefix."""
    try:
        with open("/proc/self/maps") as file:
            rows = [line.split(maxsplit=5) for line in file]
    except OSError:
        return []
    return sorted({row[5].strip() for row in rows if len(row) == 6 and row[5].startswith("/") and "x" in row[1]})


def empty(place: str, seconds: float) -> int | None:
    """Removes all that lies in a folder, however deep: folders inside folders are moved up before they are removed.

    Args:
        place: the folder, which stays.
        seconds: how long that may take.

    Returns:
        How many files and folders there were; None where time was up before all were removed.
    """
    count, removed, due = 0, 0, time.monotonic() + seconds
    while True:
        with os.scandir(place) as found:
            entries = list(found)
        if not entries:
            return removed
        for entry in entries:
            if time.monotonic() >= due:
                return None
            removed += 1
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            with os.scandir(entry.path) as inner:
                for deeper in list(inner):
                    if deeper.is_dir(follow_symlinks=False):
                        count += 1
                        os.chmod(deeper.path, 0o700)
                        os.rename(deeper.path, f"{place}/.{count}.{time.monotonic_ns()}")
                    else:
                        removed += 1
                        os.unlink(deeper.path)
            os.rmdir(entry.path)
