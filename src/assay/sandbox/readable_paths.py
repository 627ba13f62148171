"""Which host paths programs may be given to read: what cannot be shown is refused by name before anything is started."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

from assay.core.errors import ConfigError

__all__ = ["check_readable"]

_KERNEL = ("/proc", "/sys")
_BOX = "/box"


def check_readable(reads: Sequence[str], taken: Sequence[str] = (_BOX,)) -> None:
    """Refuses paths that no program may see, or that would stand in the way of what a program has of its own.

    Args:
        reads: host paths.
        taken: folders that each program has of its own.

    Raises:
        ConfigError: a path is relative, the root or the kernel's, not there, overlaps what is ``taken``, or holds the folder for
            temporary files; names it, and what to give instead.

    >>> check_readable(("/usr/share",))
    """
    for path in reads:
        why = _wrong(path, taken)
        if why:
            raise ConfigError(f"reads: {path!r} {why}")


def _wrong(path: str, taken: Sequence[str]) -> str:
    real = os.path.realpath(path)
    if not path.startswith("/") or real in ("/", "/dev") or any(_within(real, place) for place in _KERNEL):
        return "cannot be shown: give absolute paths of files and folders, neither the root nor the kernel's"
    if not os.path.exists(real):
        return "is not on this host; give a path that is, or leave it out"
    for place in taken:
        if _within(real, place) or _within(place, real):
            return f"overlaps {place}, where each program has a folder of its own; give a copy of it elsewhere"
    if _within(os.path.realpath(tempfile.gettempdir()), real):
        return (
            f"holds {tempfile.gettempdir()}, the folder for temporary files, in which other programs keep theirs; give the files "
            "and folders inside it that are needed"
        )
    return ""


def _within(path: str, place: str) -> bool:
    return (path + "/").startswith(place.rstrip("/") + "/")
