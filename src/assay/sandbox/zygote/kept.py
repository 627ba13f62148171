"""Files of a run that go back: the kernel copies them from its folder into a descriptor, and never through our memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

__all__ = ["send"]

_DEEP = 16
_RECORD = 12  # 4 bytes: the length of the name; 8 bytes: that of the file


def send(target: int, folder: str, names: Sequence[str], most: int) -> None:
    """Writes records of a name and a file's bytes into ``target``; a single ``!`` where they are more than ``most`` bytes.

    The folder is the program's, so no link is followed, nothing but regular files is read, and no name is trusted.

    Args:
        target: a descriptor to write to, empty.
        folder: where the names are.
        names: of files, and of folders for all that is in them; what is not there is left out.
        most: bytes of all files together.
    """
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        left = most
        for name in names:
            left = _send(target, top, name, name.split("/"), left, _DEEP)
            if left < 0:
                os.ftruncate(target, 0)
                os.pwrite(target, b"!", 0)
                return
    finally:
        os.close(top)


def _send(target: int, folder: int, name: str, parts: Sequence[str], left: int, deep: int) -> int:
    """How many bytes are left; negative when there were too few."""
    try:
        found = os.open(parts[0], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return left
    try:
        kind = os.fstat(found).st_mode
        if stat.S_ISDIR(kind) and deep:
            inside = [parts[1:]] if len(parts) > 1 else [[entry] for entry in sorted(os.listdir(found))]
            for rest in inside:
                below = name if len(parts) > 1 else f"{name}/{rest[0]}"
                left = _send(target, found, below, rest, left, deep - 1)
                if left < 0:
                    break
        elif stat.S_ISREG(kind) and len(parts) == 1:
            left = _copy(target, found, name.encode("utf-8", "surrogateescape"), left)
        return left
    finally:
        os.close(found)


def _copy(target: int, source: int, name: bytes, left: int) -> int:
    size = os.fstat(source).st_size
    left -= size + len(name) + _RECORD
    if left < 0:
        return left
    os.write(target, len(name).to_bytes(4, "little") + size.to_bytes(8, "little") + name)
    at = 0
    while at < size:
        copied = os.sendfile(target, source, at, size - at)
        if not copied:
            raise OSError("a file became shorter while it was read")
        at += copied
    return left
