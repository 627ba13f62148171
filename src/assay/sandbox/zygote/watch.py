"""One run from outside: its clock, its processor time, its files where no kernel limit counts them, and its end."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import stat
import time
from contextlib import suppress
from typing import Any

__all__ = ["LOOK", "Watch", "look", "read_at"]

_LEAST = 0.02
"""Seconds between two looks at a program that is near a limit."""

LOOK = 0.05
"""Seconds between two looks at the files of a program whose disk no kernel limit bounds."""

_STAND_STILL = 0.01
"""Seconds of such a look after which the program stands still until its end."""

_SETUP = 30.0
"""Seconds until a program has begun, or the machine is at fault."""

_GLANCE = 1.0
"""Seconds between two looks at whether our parent is still there."""

_THREADS = 96


class Watch:
    """Waits for a process, and kills it when a limit is exceeded.

    Args:
        parent: whose zygote this is; when it is gone, so is the run.
        control: orders may come while it runs: ``kill``, or ``turn`` with new clocks.
        proc: the host's /proc.
        pid: the process to wait for.
        told: where it says ``R`` when its program begins, ``E`` with a reason if it cannot, ``S`` with the program's status.
        limits: those of `assay.sandbox.Limits`, by name.
        scratch: its folder, if nothing else bounds what it holds.
    """

    def __init__(
        self, parent: int, control: socket.socket, proc: int, pid: int, told: int, limits: dict[str, Any], scratch: str | None
    ) -> None:
        self._parent = parent
        self._control, self._proc, self._pid, self._told, self._limits = control, proc, pid, told, limits
        self._scratch = scratch
        self._began = time.monotonic()
        self._wall: float | None = self._began + _SETUP
        self._cpu_end = float(limits["cpu"])
        self._heard = b""
        self._spent = self._turn = 0.0
        self._first: dict[str, Any] | None = None
        self._reason = ""
        self._due = self._began + LOOK

    def until_end(self) -> dict[str, Any]:
        """How it ended."""
        handle = os.pidfd_open(self._pid)
        gone = False
        try:
            listen = select.poll()
            for fd in (handle, self._told, self._control.fileno()):
                listen.register(fd, select.POLLIN)
            while True:
                found = {fd for fd, _ in listen.poll(self._pause() * 1000)}
                if self._told in found:
                    more = os.read(self._told, 4096)
                    if more and not self._heard:
                        self._start()
                    self._heard += more
                    if not more:
                        listen.unregister(self._told)
                if handle in found:
                    break
                if (self._control.fileno() in found and not self._order()) or os.getppid() != self._parent:
                    gone = True
                    break
                if self._exceeded():
                    break
        finally:
            self._kill()
            os.close(handle)
        _, status, usage = os.wait4(self._pid, 0)
        ended = time.monotonic()
        if gone:
            raise SystemExit(0)
        while more := os.read(self._told, 4096):
            self._heard += more
        return self._report(status, usage, ended)

    def _report(self, status: int, usage: Any, ended: float) -> dict[str, Any]:
        heard = self._heard
        if self._scratch is None:
            told = heard[-5:-4] == b"S"
            status = int.from_bytes(heard[-4:], "little") if told else int(signal.SIGKILL)
            heard = heard[:-5] if told else heard
        if heard != b"R":  # what follows E is why: before the program began, or because it cannot be executed
            why = heard.partition(b"E")[2].decode("utf-8", "replace") or "it ended before the program began"
            return {"infra": f"{why} ({self._reason})" if self._reason else why}
        return {
            "status": status,
            "reason": self._reason,
            "seconds": ended - self._began,
            "cpu": max(usage.ru_utime + usage.ru_stime, self._spent),
            "memory": usage.ru_maxrss * 1024,
        }

    def _start(self) -> None:
        """The program's clock: it does not pay for what a busy machine needs to make its process."""
        self._began = time.monotonic()
        self._wall = None if self._limits["wall"] is None else self._began + self._limits["wall"]
        if self._first is not None:
            self._turn_begins(self._first)

    def _turn_begins(self, order: dict[str, Any]) -> None:
        self._wall = time.monotonic() + order["wall"]
        self._turn = self._used_seconds()
        self._cpu_end = self._turn + order["cpu"]

    def _order(self) -> bool:
        data = self._control.recv(1 << 16)
        if not data:
            return False
        order = json.loads(data)
        if order["order"] == "kill":
            self._reason = order["reason"]
            self._kill()
        elif order["order"] == "turn":
            self._first = order
            if self._heard:
                self._turn_begins(order)
        elif order["order"] == "rest":
            self._wall = None
            self._control.send(json.dumps({"cpu": self._used_seconds() - self._turn}).encode())
        return True

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def _pause(self) -> float:
        wall = _GLANCE if self._wall is None else min(_GLANCE, self._wall - time.monotonic())
        left = (self._cpu_end - self._used_seconds()) / (os.cpu_count() or 1)
        pause = min(wall, max(left, _LEAST))
        return max(0.0, min(pause, LOOK) if self._scratch is not None else pause)

    def _exceeded(self) -> bool:
        if self._wall is not None and time.monotonic() >= self._wall:
            self._reason = "timeout"
        elif self._used_seconds() >= self._cpu_end:
            self._reason = "cpu"
        elif self._scratch is not None and time.monotonic() >= self._due:
            self._reason = self._reason or self._look()
            self._due = time.monotonic() + LOOK
        return bool(self._reason)

    def _used_seconds(self) -> float:
        """Seconds of processor time of the program so far; of its first process, where it may have several."""
        pid = self._pid if self._scratch is not None else self._program()
        with suppress(OSError):  # it has just ended
            self._spent = time.clock_gettime(~pid << 3 | 2) if pid else self._spent
        return self._spent

    def _program(self) -> int:
        try:
            return int(read_at(self._proc, f"{self._pid}/task/{self._pid}/children").split()[0])
        except (OSError, IndexError):
            return 0

    def _look(self) -> str:
        assert self._scratch is not None
        return look(self._proc, self._pid, self._scratch, self._limits)


def look(proc: int, pid: int, scratch: str, limits: dict[str, Any]) -> str:
    """Which limit that no kernel call enforces is exceeded: bytes on disk, deleted files included, their number, or threads."""
    try:
        total, entries = _on_disk(pid, scratch, limits["entries"])
    except OSError:  # so deep that nobody can count what is below
        return "disk"
    for name in _names(proc, f"{pid}/fd"):
        with suppress(OSError):  # just closed
            found_file = os.stat(f"{pid}/fd/{name}", dir_fd=proc)
            if not found_file.st_nlink and stat.S_ISREG(found_file.st_mode):
                total += found_file.st_blocks * 512
    if total > limits["disk"] or entries > limits["entries"]:
        return "disk"
    return "processes" if len(_names(proc, f"{pid}/task")) > _THREADS else ""


def _on_disk(pid: int, scratch: str, most: int) -> tuple[int, int]:
    """Bytes and number of the files in a folder, counted until they are more than ``most``.

    A program that makes files all the while keeps whoever lists its folder waiting, so one that has many stands still meanwhile.

    Raises:
        OSError: a path is longer than a path can be.
    """
    total, entries, folders, due, stopped = 0, 0, [scratch], time.monotonic() + _STAND_STILL, False
    try:
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(folder) as found:
                    for entry in found:
                        entries += 1
                        if entries > most:  # a folder that grows while it is listed never ends
                            return total, entries
                        if not stopped and time.monotonic() >= due:
                            os.kill(pid, signal.SIGSTOP)
                            stopped = True
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        else:
                            total += entry.stat(follow_symlinks=False).st_blocks * 512
            except PermissionError:
                _make_readable(folder, folders)
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:
                    raise
    finally:
        if stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    return total, entries


def _make_readable(folder: str, folders: list[str]) -> None:
    """A folder that its program made so that we cannot list it: made readable and looked at again. The program goes on meanwhile,
    so no link is followed.
    """
    with suppress(OSError):
        fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not os.fstat(fd).st_mode & stat.S_IRUSR:
                os.chmod(f"/proc/self/fd/{fd}", 0o700)
                folders.append(folder)
        finally:
            os.close(fd)


def _names(proc: int, folder: str) -> list[str]:
    """What is in a folder of an open /proc, which may be hidden from where it was; nothing where the process has just ended."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
    except OSError:
        return []
    try:
        return os.listdir(fd)
    except OSError:
        return []
    finally:
        os.close(fd)


def read_at(folder: int, path: str) -> str:
    """The text of a small file below an open folder."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(fd, 4096).decode()
    finally:
        os.close(fd)
