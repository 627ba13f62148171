"""The near side of one zygote: starts it, hands programs over, collects what they write."""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

from assay.sandbox.limits import Limits
from assay.sandbox.result import Program, Result, Status
from assay.sandbox.values import read

__all__ = ["Refused", "Zygote", "ZygoteDied"]

_MAIN = Path(__file__).parent / "zygote" / "__main__.py"
_START = 20.0
_GRACE = 20.0
"""Seconds that a zygote may be late with a word before it counts as dead."""


class Refused(Exception):
    """What a level needs is not granted by this host; says why."""


class ZygoteDied(Exception):
    """The zygote is gone, or does not answer."""


class Zygote:
    """One zygote process, which runs one program at a time. Not for two threads at once.

    Args:
        level: ``strong``, ``landlock`` or ``rlimits``.
        reads: host paths that programs may read besides Python's own.

    Raises:
        Refused: the host does not grant the level.
    """

    def __init__(self, level: str, reads: tuple[str, ...] = (), python: str = sys.executable) -> None:
        self.level = level
        self._folder = Path(tempfile.mkdtemp(prefix="assay-sandbox-"))
        self._folder.chmod(0o711)
        scratch = self._folder / "box"
        scratch.mkdir(0o700)
        settings = json.dumps({"level": level, "scratch": str(scratch), "reads": list(reads)})
        self._control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [python, "-I", "-S", str(_MAIN), str(far.fileno()), settings],
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=None if os.environ.get("ZDEBUG") else subprocess.DEVNULL,
            pass_fds=[far.fileno()],
            start_new_session=True,
        )
        far.close()
        self.pid = self._process.pid
        self._control.settimeout(_START)
        try:
            said = self._hear()
        except ZygoteDied as error:
            self.close()
            raise Refused(f"the {level} zygote did not start: {error}") from None
        if "refused" in said:
            self.close()
            raise Refused(str(said["refused"]))
        self.granted: dict[str, Any] = said

    def run(self, program: Program, limits: Limits) -> Result:
        """Runs a program to its end.

        Raises:
            ZygoteDied: the zygote must be replaced; says nothing about the program.
        """
        mode = "call" if program.entry else "run"
        with _Channels(_payload(program, mode), program.stdin, limits.output) as channels:
            self.send({"order": "run", "limits": asdict(limits)}, channels.theirs)
            channels.handed()
            return self._result(self._collect(channels, limits), channels, limits, mode)

    def send(self, order: Mapping[str, Any], fds: list[int]) -> None:
        """An order to the zygote."""
        try:
            socket.send_fds(self._control, [json.dumps(order).encode()], fds)
        except OSError as error:
            raise ZygoteDied(f"cannot be reached: {error}") from None

    def close(self) -> None:
        """Ends the zygote and what it runs."""
        self._control.close()
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _hear(self) -> dict[str, Any]:
        try:
            data = self._control.recv(1 << 16)
        except OSError as error:
            raise ZygoteDied(f"no answer: {error}") from None
        if not data:
            raise ZygoteDied("it ended")
        return json.loads(data)

    def _collect(self, channels: _Channels, limits: Limits) -> dict[str, Any]:
        """Reads what the program writes until the zygote says how it ended; asks for its end when it writes too much."""
        due = monotonic() + limits.wall + _GRACE
        with selectors.DefaultSelector() as ready:
            ready.register(self._control, selectors.EVENT_READ)
            for fd in channels.ours:
                ready.register(fd, selectors.EVENT_READ)
            while True:
                left = due - monotonic()
                if left <= 0:
                    raise ZygoteDied(f"no word {_GRACE:g} s after the program's time was up")
                for key, _ in ready.select(left):
                    if key.fileobj is self._control:
                        end = self._hear()
                        channels.drain()
                        return end
                    fd = key.fd
                    if not channels.read(fd):
                        ready.unregister(fd)
                        if channels.full and not channels.told:
                            channels.told = True
                            self.send({"order": "kill", "reason": "output"}, [])

    def _result(self, end: Mapping[str, Any], channels: _Channels, limits: Limits, mode: str) -> Result:
        tag = "rlimits (UNSAFE)" if self.level == "rlimits" else self.level
        if "infra" in end:
            return Result(status=Status.INFRA, isolation=tag, detail=str(end["infra"]))
        exit_code, signalled = os.waitstatus_to_exitcode(end["status"]), None
        if exit_code < 0:
            exit_code, signalled = None, -exit_code
        found, value, noted = read(bytes(channels.data[2])) if not channels.full else (False, None, "")
        status, detail = _status(end, exit_code, signalled, limits, noted), ""
        if channels.full:
            status = Status.OUTPUT
        if mode == "call" and status is Status.OK and not found:
            status, detail = Status.ERROR, "it ended without a value"
        return Result(
            status=status,
            exit_code=exit_code if not end["reason"] else None,
            signal=signalled if not end["reason"] else None,
            stdout=channels.data[0].decode("utf-8", "replace"),
            stderr=channels.data[1].decode("utf-8", "replace"),
            seconds=end["seconds"],
            cpu_seconds=end["cpu"],
            isolation=tag,
            value=value if status is Status.OK and mode == "call" else None,
            detail=detail,
        )


def _status(end: Mapping[str, Any], code: int | None, signalled: int | None, limits: Limits, noted: str) -> Status:
    if end["reason"]:
        return Status(end["reason"])
    if signalled == signal.SIGXCPU or end["cpu"] > limits.cpu:
        return Status.CPU
    if signalled == signal.SIGXFSZ:
        return Status.DISK
    if signalled == signal.SIGSYS:
        return Status.BLOCKED
    if code == 0:
        return Status.OK
    if noted:
        return Status(noted)
    if signalled == signal.SIGKILL or end["memory"] > 0.9 * limits.memory:
        return Status.MEMORY  # nobody else kills it so: the host ran out, or it was about to
    return Status.ERROR


def _payload(program: Program, mode: str) -> bytes:
    blobs = [program.code.encode("utf-8", "surrogatepass"), *program.files.values()]
    header = {
        "mode": mode,
        "argv": list(program.argv),
        "args": list(program.args),
        "entry": program.entry,
        "arguments": list(program.arguments),
        "files": list(program.files),
        "sizes": [len(b) for b in blobs],
    }
    text = json.dumps(header).encode()
    return b"".join((struct.pack("<q", len(text)), text, *blobs))


class _Channels:
    """The descriptors of one run: theirs to hand over, ours to read, and what was read."""

    def __init__(self, payload: bytes, stdin: str | bytes, most: int) -> None:
        self._most = most
        self.full = self.told = False
        text = stdin.encode("utf-8", "surrogatepass") if isinstance(stdin, str) else stdin
        self.theirs = [_sealed(payload), _sealed(text)]
        self.ours: list[int] = []
        for _ in range(3):
            near, far = os.pipe()
            os.set_blocking(near, False)
            self.ours.append(near)
            self.theirs.append(far)
        self.data = [bytearray() for _ in self.ours]  # output, errors, value

    def __enter__(self) -> _Channels:
        return self

    def __exit__(self, *_: object) -> None:
        self.handed()
        while self.ours:
            os.close(self.ours.pop())

    def handed(self) -> None:
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
        data += more
        if len(data) > self._most:
            del data[self._most :]
            self.full = True
            return False
        return bool(more)

    def drain(self) -> None:
        """What is still in the pipes: all writers are gone."""
        for fd in self.ours:
            while not self.full and self.read(fd):
                pass


def _sealed(data: bytes) -> int:
    """A read-only file that is nowhere."""
    fd = os.memfd_create("assay", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd
