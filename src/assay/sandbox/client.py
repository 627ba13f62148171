"""The near side of one zygote: starts it, hands programs over, collects what they write."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

from assay.core.errors import ConfigError
from assay.sandbox.backend import Refused, WorkerDied
from assay.sandbox.channels import Channels, payload
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram, Status
from assay.sandbox.values import read
from assay.sandbox.zygote.places import empty

__all__ = ["Zygote", "status_of"]

_BOOT = """
import json, socket, sys
control = socket.socket(fileno=int(sys.argv[1]))
settings = json.loads(control.recv(1 << 16))
sys.path.insert(0, settings["code"])
from zygote import start
start.forget_places(settings.pop("code"))
start.main(control, settings)
"""
"""All that a zygote is started with: programs can read their process's arguments, which name no place of the host."""
_START = 20.0
_END = 3.0
_CLEAN_UP = 5.0
"""Seconds that removing a zygote's folder may keep its caller."""
_GRACE = 60.0
"""Seconds that a zygote may be late with a word before it counts as dead."""


class Zygote:
    """One zygote process, which runs one program at a time. Not for two threads at once.

    Args:
        level: ``strong``, ``landlock`` or ``rlimits``.
        reads: host paths that programs may read besides Python's own.
        python: the interpreter to start.

    Attributes:
        pid: its process id.
        layers: what holds its programs, as `Worker` says.

    Raises:
        Refused: the host does not grant the level.
    """

    def __init__(self, level: str, reads: tuple[str, ...] = (), python: str = sys.executable) -> None:
        self.level = level
        # where the host's files are in sight programs work in a folder there, which the zygote removes when it ends
        self._folder = None if level == "strong" else tempfile.mkdtemp(prefix="assay-sandbox-")
        code = str(Path(__file__).parent)
        settings = {"level": level, "scratch": self._folder or "", "reads": list(reads), "code": code}
        self.control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.send(json.dumps(settings).encode())
        self._process = subprocess.Popen(
            [
                os.path.realpath(python),
                "-I",
                "-S",
                "-c",
                _BOOT,
                str(far.fileno()),
            ],  # a venv's is a link to the one it was made of
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[far.fileno()],
            start_new_session=True,
        )
        far.close()
        self.pid = self._process.pid
        self.control.settimeout(_START)
        try:
            said = self.hear()
        except WorkerDied as error:
            self.close()
            raise Refused(f"the {level} zygote did not start: {error}") from None
        if "refused" in said:
            self.close()
            raise Refused(str(said["refused"]))
        self.layers: Mapping[str, str] = said["layers"]

    def run(self, program: SandboxProgram, limits: Limits) -> Result:
        """Runs a program to its end.

        Raises:
            WorkerDied: the zygote must be replaced; says nothing about the program.
            ConfigError: limits that cannot be kept here.
        """
        self.admit(limits)
        mode = "call" if program.entry else "run"
        text = payload(program, mode)
        try:
            made = Channels(text, program.stdin, limits.output, keep=bool(program.keep))
        except OSError as error:
            raise WorkerDied(f"no descriptors for a run: {error}") from None
        with made as channels:
            order = {"order": "run", "limits": asdict(limits), "keep": list(program.keep)}
            self.send(order, channels.theirs)
            channels.close_far_ends()
            return self.result(self._collect(channels, limits), channels, limits, mode)

    def admit(self, limits: Limits) -> None:
        """Refuses what would fail every program, and look like the program's fault.

        Raises:
            ConfigError: several processes where only one can be contained.
        """
        if limits.processes > 1 and self.layers.get("processes") == "one":
            raise ConfigError(
                f"Limits.processes={limits.processes}: at the level {self.level!r} a program is one process here; "
                "several need 'strong' and Linux 5.14 or newer ('assay sandbox probe' says what is granted)"
            )

    def send(self, order: Mapping[str, Any], fds: list[int]) -> None:
        """An order to the zygote."""
        try:
            socket.send_fds(self.control, [json.dumps(order).encode()], fds)
        except OSError as error:
            raise WorkerDied(f"cannot be reached: {error}") from None

    def close(self) -> None:
        """Ends the zygote and what it runs."""
        self.control.close()  # it ends what it runs, and then itself
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._folder is not None and os.path.isdir(self._folder):
            with suppress(OSError):  # what a killed zygote could not remove is nothing worse than a leftover
                if empty(self._folder, _CLEAN_UP) is not None:
                    os.rmdir(self._folder)
                    return
            # many, or of another user: by a process of its own, so that nobody waits
            subprocess.Popen(["rm", "-rf", self._folder], stderr=subprocess.DEVNULL, start_new_session=True)

    def hear(self) -> dict[str, Any]:
        """What the zygote says next."""
        try:
            data = self.control.recv(1 << 16)
        except OSError as error:
            raise WorkerDied(f"no answer: {error}") from None
        if not data:
            raise WorkerDied("it ended")
        return json.loads(data)

    def _collect(self, channels: Channels, limits: Limits) -> dict[str, Any]:
        """Reads what the program writes until the zygote says how it ended; asks for its end when it writes too much."""
        due = monotonic() + limits.wall + _GRACE
        control = self.control.fileno()
        ready = select.poll()  # a selector would cost four system calls more
        for fd in (control, *channels.ours):
            ready.register(fd, select.POLLIN)
        while True:
            left = due - monotonic()
            if left <= 0:
                raise WorkerDied(f"no word {_GRACE:g} s after the program's time was up")
            for fd, _ in ready.poll(left * 1000):
                if fd == control:
                    end = self.hear()
                    channels.drain()
                    return end
                if not channels.read(fd):
                    ready.unregister(fd)
                    if channels.full and not channels.told:
                        channels.told = True
                        self.send({"order": "kill", "reason": "output"}, [])

    @property
    def tag(self) -> str:
        """What stands in results as their isolation."""
        return "rlimits (UNSAFE)" if self.level == "rlimits" else self.level

    def result(self, end: Mapping[str, Any], channels: Channels, limits: Limits, mode: str) -> Result:
        """What the zygote says of a run's end, and what the program wrote, as a result."""
        tag = self.tag
        if "infra" in end:
            return Result(status=Status.INFRA, isolation=tag, detail=str(end["infra"]))
        exit_code, signalled = os.waitstatus_to_exitcode(end["status"]), None
        if exit_code < 0:
            exit_code, signalled = None, -exit_code
        found, value, noted = read(bytes(channels.data[2])) if not channels.full else (False, None, "")
        status, detail = status_of(end, exit_code, signalled, limits, noted), ""
        if channels.full:
            status = Status.OUTPUT
        if mode == "call" and status is Status.OK and not found:
            status, detail = Status.ERROR, "it ended without a value"
        files = {} if channels.kept is None else channels.files()
        if files is None and status is Status.OK:
            status, detail = Status.DISK, "the files to keep are larger than Limits.disk"
        if end.get("left", 0) is None:
            detail = "; ".join(filter(None, (detail, f"its files were not removed within {end['cleanup']:.1f} s")))
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
            files=files or {},
            left=end.get("left") or 0,
            cleanup_seconds=end.get("cleanup", 0.0),
        )


def status_of(end: Mapping[str, Any], code: int | None, signalled: int | None, limits: Limits, noted: str) -> Status:
    """How a run ended, from what the monitor says of the end and, of its own failure, the program."""
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
