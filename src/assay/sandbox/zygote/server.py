"""The zygote's loop: an order in, one contained process, its end out.

It runs one program at a time. Orders come over the control socket, which no program ever holds; the descriptors that come with an
order are the program's, and the zygote closes them unread.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from . import child, landlock, seccomp
from .kept import send
from .namespaces import BOX, enter, furnish
from .places import DEVICES, empty, package_folders, readable, split
from .system import CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUTS, MACHINE, clone, drop_bounding, name_host, prctl, unshare
from .watch import Watch, read_at

__all__ = ["Server", "Settings"]

_GLANCE = 1.0
"""Seconds between two looks of an idle zygote at whether its parent is still there."""

_CLEAN_UP = 5.0
"""Seconds that the removal of what a program left may take; past that the zygote ends, and another takes its place."""

_USERS = (61584, 65534)
"""Whom a root zygote becomes: a user that owns nothing, or the one that stands for nobody."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36

_COUNTS_PROCESSES_PER_NAMESPACE = (5, 14)
"""The kernel before counts a user's processes on the whole host, so a limit would fail programs for what others do."""


@dataclass(frozen=True)
class Settings:
    """What a zygote is started with: a level, a folder for scratch files, and host paths to read besides Python's own."""

    level: str
    scratch: str
    reads: tuple[str, ...]


class Server:
    """One zygote."""

    def __init__(self, control: socket.socket, settings: Settings) -> None:
        self._control = control
        self._settings = settings
        self._parent = os.getppid()
        self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._rules: int | None = None
        self._user = None if os.geteuid() else next((u for u in _USERS if _can_be(u, settings.level != "strong")), None)
        self._scratch = settings.scratch
        self._forks = settings.level == "strong" and _kernel() >= _COUNTS_PROCESSES_PER_NAMESPACE
        self._filters: dict[bool, Callable[[int], bytes] | None] = {True: None, False: None}

    def prepare(self) -> dict[str, Any]:
        """Takes up the level; what it found, for the parent to read."""
        if MACHINE not in seccomp.ARCHITECTURES:
            raise OSError(f"there is no table of system calls for {MACHINE}; only for {', '.join(seccomp.ARCHITECTURES)}")
        reads = readable(self._settings.reads)
        if self._settings.level == "strong":
            enter(self._user, reads)
            self._user = None
        elif self._settings.level == "landlock":
            if not landlock.abi():
                raise OSError("this kernel has no Landlock")
            with suppress(OSError):  # granted to root alone; what the host is called is no secret that containment rests on
                unshare(CLONE_NEWUTS)
                name_host()
            rules = [(p, landlock.READ) for p in split(reads, package_folders())]
            self._rules = landlock.ruleset([*rules, *((d, landlock.WRITE) for d in DEVICES), (self._scratch, landlock.WRITE)])
        if self._settings.level != "strong" and self._user is not None:
            os.chown(self._scratch, self._user, self._user)
        if self._settings.level != "rlimits":
            private = self._settings.level == "strong"
            self._filters = {many: seccomp.program(forks=many and self._forks, private=private) for many in (True, False)}
        drop_bounding()
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
        os.environ.clear()
        os.environ.update(child.environment(BOX if self._settings.level == "strong" else self._scratch))
        for number in range(1, signal.NSIG):  # programs begin as any other does, whatever our parent ignored
            if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, 32, 33):
                signal.signal(number, signal.SIG_DFL)
        for number in child.JOB_SIGNALS:  # sent to all processes of a job; the training process decides what they mean
            signal.signal(number, _pass_over)
        return {"layers": self._layers(), "landlock": landlock.abi()}

    def _layers(self) -> dict[str, str]:
        """What holds a program here: what was granted, or a word on why not after ``no:``."""
        strong, version = self._settings.level == "strong", landlock.abi()
        if self._settings.level == "rlimits":
            return {"rlimits": "yes", "environment": "empty"}
        return {
            "namespaces": "user+net+pid+mount+ipc+uts" if strong else "no: not at this level",
            "files": "private root, read-only" if strong else "the host's, by rules",
            "proc": ("own processes only" if _trial() else "none: the host masks its own") if strong else "unreadable",
            "landlock": str(version) if version else "no: the kernel has none",
            "seccomp": MACHINE,
            "processes": "as many as the limits say" if self._forks else "one",
            "user": f"{self._user}, not root" if self._user is not None else f"{os.getuid()}, no capabilities",
            "rlimits": "yes",
            "environment": "empty",
        }

    def serve(self) -> None:
        """Takes orders until the other side closes or is gone; leaves no folder."""
        try:
            self._orders()
        finally:
            if self._settings.level != "strong":
                with suppress(OSError):  # not empty, where cleaning up took too long: the other side removes it
                    os.rmdir(self._scratch)

    def _orders(self) -> None:
        while True:
            ready, _, _ = select.select([self._control], [], [], _GLANCE)
            if not ready:
                if os.getppid() != self._parent:
                    return
                continue
            data, fds, _, _ = socket.recv_fds(self._control, 1 << 16, 8)
            if not data:
                return
            order = json.loads(data)
            if order["order"] == "run":
                end = self._run(order["limits"], order.get("keep", []), list(fds))
                self._control.send(json.dumps(end).encode())
                if end.get("left", 0) is None:  # a folder that is not empty is no other program's
                    return

    def _run(self, limits: dict[str, Any], keep: list[str], fds: list[int]) -> dict[str, Any]:
        kept = fds.pop() if keep else -1
        try:
            if self._settings.level == "strong":
                return self._strong(limits, fds, keep, kept)
            try:
                end = self._plain(limits, fds)
                if keep and not end.get("reason", "infra"):
                    send(kept, self._scratch, keep, limits["disk"])
            except Exception as error:
                end = {"infra": f"{type(error).__name__}: {error}"}
            began = time.monotonic()
            return {**end, "left": empty(self._scratch, _CLEAN_UP), "cleanup": time.monotonic() - began}
        except Exception as error:
            return {"infra": f"{type(error).__name__}: {error}"}
        finally:
            _close([*fds, kept] if keep else fds)

    def _plain(self, limits: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """A child of ours among the host's processes."""
        told, ready = os.pipe()
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            level, user = self._settings.level, self._user
            child.run(child.Job(level, limits, fds, ready, self._rules, self._scratch, user, me, None, self._filters[False]))
        os.close(ready)
        _close(fds)
        try:
            return self._watch(pid, told, limits)
        finally:
            self._bury()

    def _strong(self, limits: dict[str, Any], fds: list[int], keep: list[str], kept: int) -> dict[str, Any]:
        """A child with process ids of its own: a first process that waits, and beside it the program."""
        told, ready = os.pipe()
        filter = self._filters[limits["processes"] > 1]
        pid = clone(CLONE_NEWPID | CLONE_NEWNS)
        if pid == 0:
            try:
                _first(child.Job("strong", limits, fds, ready, None, BOX, None, 1, 2, filter), keep, kept)
            finally:
                os._exit(70)
        os.close(ready)
        _close(fds)
        return self._watch(pid, told, limits)

    def _bury(self) -> None:
        """Ends what a program that could start processes has left: as their reaper, we inherit them however they hide."""
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:  # none at all, the usual case, and cheap to know
            return
        while left := read_at(self._proc, f"{os.getpid()}/task/{os.getpid()}/children").split():
            for pid in map(int, left):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def _watch(self, pid: int, told: int, limits: dict[str, Any]) -> dict[str, Any]:
        plain = self._settings.level != "strong"
        try:
            return Watch(self._parent, self._control, self._proc, pid, told, limits, self._scratch if plain else None).until_end()
        finally:
            os.close(told)


def _pass_over(number: int, frame: object) -> None:
    """Does nothing of a signal."""


def _first(job: child.Job, keep: list[str], kept: int) -> None:
    """Process 1 of the program's namespace: starts it, buries whoever dies, ends with it; then the kernel ends all others."""
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    prctl(_PR_SET_DUMPABLE, 0)  # its memory is not for its children
    child.take_defaults()
    below = 2
    held = [job.ready, *job.fds] + ([kept] if keep else [])
    for number in (*sorted(held), 1 << 20):
        os.closerange(below + 1, number)
        below = number
    try:
        furnish(job.limits["disk"], job.limits["entries"])
    except BaseException as error:
        os.write(job.ready, b"E" + f"{type(error).__name__}: {error}".encode()[:2000])
        return
    pid = os.fork()
    if pid == 0:
        child.run(job)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # without a handler the kernel keeps its own children's signals from it
    _close(job.fds)
    while True:
        ended, status = os.wait()
        if ended == pid:
            if keep:
                try:
                    _alone()
                    send(kept, job.scratch, keep, job.limits["disk"])
                except BaseException as error:
                    os.write(job.ready, b"E" + f"{type(error).__name__}: {error}".encode()[:2000])
                    return
            os.write(job.ready, b"S" + status.to_bytes(4, "little"))
            os._exit(0)


def _alone() -> None:
    """Process 1 ends all others of its namespace, so that nothing changes their files any more."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _kernel() -> tuple[int, ...]:
    """Its version, two numbers."""
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in os.uname().release.split(".")[:2])


def _trial() -> bool:
    """Whether a run has a /proc of its own.

    Raises:
        OSError: it has not even process ids or a folder of its own.
    """
    pid = clone(CLONE_NEWPID | CLONE_NEWNS)
    if pid == 0:
        try:
            os._exit(0 if furnish(1 << 16, 8) else 3)
        except OSError as error:
            os._exit(error.errno or 1)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code not in (0, 3):
        raise OSError(code, f"no process ids, mounts or folder of its own: {os.strerror(code)}")
    return code == 0


def _can_be(user: int, reads: bool) -> bool:
    """Whether a child can become that user, and still read the standard library where it must find it on the host."""
    pid = os.fork()
    if pid == 0:
        try:
            child.become(user)
            if reads:
                os.close(os.open(os.__file__, os.O_RDONLY))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _close(fds: list[int]) -> None:
    while fds:
        os.close(fds.pop())
