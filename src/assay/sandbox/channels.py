"""The descriptors of one run: what goes to a program and what comes back, past the zygote."""

from __future__ import annotations

import json
import marshal
import os
import select
import socket
import struct
from time import monotonic
from typing import Any

from assay.sandbox.result import SandboxProgram
from assay.sandbox.values import plain

__all__ = ["Channels", "payload", "sealed_file"]

_FORM = 4
"""Of `marshal`: what every Python from 3.4 on reads, since a zygote may have another than ours."""


def payload(program: SandboxProgram, mode: str) -> bytes:
    """A program as its process reads it: how it is to be run, then its source and files.

    Raises:
        DataError: arguments that JSON cannot say.
    """
    blobs = [program.code.encode("utf-8", "surrogatepass"), *program.files.values()]
    header = {
        "mode": mode,
        "argv": [str(a) for a in program.argv],
        "args": [str(a) for a in program.args],
        "entry": str(program.entry),
        "arguments": plain(program.arguments),
        "files": [str(name) for name in program.files],
        "sizes": [len(b) for b in blobs],
    }
    text = marshal.dumps(header, _FORM)  # which its process reads in a fraction of the time that JSON takes
    return b"".join((struct.pack("<q", len(text)), text, *blobs))


class Channels:
    """The descriptors of one run: theirs to hand over, ours to read, and what was read.

    Args:
        payload: of the function of that name.
        stdin: the program's input.
        most: bytes to read of each of output, errors and values.
        both_ways: whether turns go to the program over the channel for values.
        keep: whether files come back.
    """

    def __init__(self, payload: bytes, stdin: str | bytes, most: int, both_ways: bool = False, keep: bool = False) -> None:
        self._most = most
        self.full = self.told = False
        text = stdin.encode("utf-8", "surrogatepass") if isinstance(stdin, str) else stdin
        self.theirs: list[int] = []
        self.ours: list[int] = []
        self.kept: int | None = None
        self.data = [bytearray() for _ in range(3)]  # output, errors, value
        try:
            self._open(payload, text, both_ways)
            if keep:
                self.kept = os.memfd_create("assay", os.MFD_CLOEXEC)
                self.theirs.append(os.dup(self.kept))
        except BaseException:
            self.__exit__()
            raise

    def _open(self, payload: bytes, stdin: bytes, both_ways: bool) -> None:
        self.theirs += [sealed_file(payload)]
        self.theirs += [sealed_file(stdin)]
        for number in range(3):
            near, far = _pair() if both_ways and number == 2 else os.pipe()
            os.set_blocking(near, False)
            if number < 2:
                os.fchmod(far, 0o622)  # a program that is another user may open /dev/stdout too
            self.ours.append(near)
            self.theirs.append(far)

    def __enter__(self) -> Channels:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_far_ends()
        while self.ours:
            os.close(self.ours.pop())
        if self.kept is not None:
            os.close(self.kept)
            self.kept = None

    def close_far_ends(self) -> None:
        """Ours are the only copies of the near ends; the far ends live on in the program."""
        while self.theirs:
            os.close(self.theirs.pop())

    def read(self, fd: int) -> bool:
        """Takes what is there; False at the end, or when it is too much."""
        data = self.data[self.ours.index(fd)]
        try:
            more = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        except ConnectionResetError:  # it ended with something unread
            return False
        data += more
        if len(data) > self._most:
            del data[self._most :]
            self.full = True
            return False
        return bool(more)

    def clear(self, most: int) -> None:
        """Forgets what was read, for another turn."""
        self.data = [bytearray() for _ in self.ours]
        self.full = self.told = False
        self._most = most

    def say(self, data: bytes, due: float) -> None:
        """Sends to the program over the channel for values, as much as it takes until ``due`` (`time.monotonic`)."""
        while data:
            try:
                data = data[os.write(self.ours[2], data) :]
            except BlockingIOError:
                if not _ready(self.ours[2], select.POLLOUT, max(0.0, due - monotonic())):
                    return  # its time is up, and the zygote will say so
            except OSError:
                return  # it has ended: the zygote will say how

    def answer(self, turn: int) -> dict[str, Any] | None:
        """What the program said of that turn; anything else that came over the channel for values is dropped."""
        data = self.data[2]
        while len(data) >= 8 and len(data) >= (end := 8 + int.from_bytes(data[:8], "little")):
            text = bytes(data[8:end])
            del data[:end]
            try:
                said: Any = json.loads(text)
                if said["turn"] == turn and isinstance(said["error"], str):
                    return said
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
        return None

    def files(self) -> dict[str, bytes] | None:
        """The files that came back, as `zygote.kept` writes them; None where they were too large."""
        assert self.kept is not None
        data = os.pread(self.kept, os.fstat(self.kept).st_size, 0)
        if data == b"!":
            return None
        out: dict[str, bytes] = {}
        at = 0
        while at < len(data):
            name, size = int.from_bytes(data[at : at + 4], "little"), int.from_bytes(data[at + 4 : at + 12], "little")
            begin = at + 12 + name
            out[data[at + 12 : begin].decode("utf-8", "surrogateescape")] = data[begin : begin + size]
            at = begin + size
        return out

    def drain(self) -> None:
        """Takes what is still in the pipes."""
        for fd in self.ours:
            while not self.full and self.read(fd) and _ready(fd, select.POLLIN, 0.0):
                pass


def _ready(fd: int, events: int, seconds: float) -> bool:
    """Whether a descriptor is, within so many seconds; also one above 1024, which `select.select` cannot ask for."""
    asked = select.poll()
    asked.register(fd, events)
    return bool(asked.poll(seconds * 1000))


def _pair() -> tuple[int, int]:
    near, far = socket.socketpair()
    return near.detach(), far.detach()


def sealed_file(data: bytes) -> int:
    """A read-only file that is nowhere."""
    import fcntl  # of which other systems than Linux have nothing, or less

    fd = os.memfd_create("assay", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd
