"""What foreign code prints: its first bytes are kept for a reader, the rest is dropped, and nothing ever waits.

A pipe would block the writer once it is full, and a file would fill the disk. So the worker's ``sys.stdout`` and ``sys.stderr``
write into a small file until the limit and nowhere after it; what other programs and C code write goes to the null device.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["LIMIT", "StdoutFile", "capture", "printed_in"]

LIMIT = 2000
"""Bytes that are kept of what is printed during one call."""


class StdoutFile:
    """The worker's side of the file that keeps the first `LIMIT` bytes of what is printed during a call.

    Args:
        fd: an open file, empty. The training process holds it too, so the text of a worker that was killed can still be read.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._left = LIMIT

    def clear(self) -> None:
        """Forget all: the next call begins."""
        if self._left < LIMIT:
            os.lseek(self._fd, 0, os.SEEK_SET)
            os.ftruncate(self._fd, 0)
            self._left = LIMIT

    def add(self, data: ReadableBuffer) -> int:
        """Keep what there is room for; the number of bytes given, as if all had been written."""
        given = memoryview(data).cast("B")
        if self._left > 0:
            with suppress(OSError):  # a full disk is not the function's doing
                self._left -= os.write(self._fd, given[: self._left])
        return len(given)

    def text(self) -> str:
        """What was printed since the last `clear`."""
        return printed_in(self._fd) if self._left < LIMIT else ""


def printed_in(fd: int) -> str:
    """The text in the file of a `StdoutFile`."""
    return os.pread(fd, LIMIT, 0).decode("utf-8", "replace")


def capture(fd: int) -> StdoutFile:
    """From here on ``sys.stdout`` and ``sys.stderr`` of this process write into a `StdoutFile`."""
    printed = StdoutFile(fd)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(_Tap(printed, number), "utf-8", "backslashreplace", write_through=True)  # pyright: ignore
        for number in (1, 2)
    )
    return printed


class _Tap(io.RawIOBase):
    def __init__(self, printed: StdoutFile, number: int) -> None:
        self._printed = printed
        self._number = number

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: ReadableBuffer, /) -> int:
        return self._printed.add(data)
