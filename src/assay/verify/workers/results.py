"""Verdicts on their way from a worker: it writes each into a file that the training process reads when it wakes.

A message for each would wake the training process each time, which costs more than to judge a short answer. What a worker has
written stays where it is when the worker dies.
"""

from __future__ import annotations

import os
import struct
import tempfile
import zlib
from time import monotonic
from typing import IO

__all__ = ["CorruptResults", "ResultsFile", "blank"]

_HEAD = struct.Struct("=dqI")

_SEED = 1
"""Makes the checksum of nothing another than 0: no stretch of zeros is a verdict."""


class CorruptResults(OSError):
    """What a worker sent is not what its loop sends: foreign code wrote into descriptors that are not its own."""


class ResultsFile:
    """One side of the file: the worker adds, the training process takes.

    Args:
        fd: the open file, of which both sides have a descriptor.

    >>> with blank() as file:
    ...     worker, pool = ResultsFile(file.fileno()), ResultsFile(file.fileno())
    ...     worker.add(b"right")
    ...     [data for at, data in pool.new()], pool.new()
    ([b'right'], [])
    """

    def __init__(self, fd: int) -> None:
        self._fd, self._at = fd, 0

    def begin(self) -> None:
        """From the file's beginning, for the next batch."""
        self._at = 0

    def clear(self) -> None:
        """As `begin`, of the worker's side: what stood there goes."""
        self.begin()
        os.ftruncate(self._fd, 0)

    def add(self, data: bytes) -> None:
        """Behind what stands there; with the time (`time.monotonic`), at which the next answer's begins."""
        whole = memoryview(_HEAD.pack(monotonic(), len(data), zlib.crc32(data, _SEED)) + data)
        while whole:
            written = os.pwrite(self._fd, whole, self._at)
            whole, self._at = whole[written:], self._at + written

    def new(self) -> list[tuple[float, bytes]]:
        """What was added since the last time, each with its time; nothing of one that is written just now, or whose worker died
        while it wrote.

        Raises:
            Spoiled: something else has been written there.
        """
        data, found, at = self._rest(), list[tuple[float, bytes]](), 0
        while at + _HEAD.size <= len(data):
            when, size, check = _HEAD.unpack_from(data, at)
            if (end := at + _HEAD.size + size) > len(data):
                break
            verdict = data[at + _HEAD.size : end]
            if size < 0 or check != zlib.crc32(verdict, _SEED):
                raise CorruptResults("it wrote over its verdicts")
            found.append((when, verdict))
            at = end
        self._at += at
        return found

    def _rest(self) -> bytes:
        parts, at = list[bytes](), self._at
        while part := os.pread(self._fd, 1 << 16, at):
            parts.append(part)
            at += len(part)
        return b"".join(parts)


def blank() -> IO[bytes]:
    """An empty file for verdicts: in memory where the system has such files, so that no full disk loses one."""
    made = getattr(os, "memfd_create", None)
    return open(made("verdicts"), "r+b", buffering=0) if made else tempfile.TemporaryFile(buffering=0)
