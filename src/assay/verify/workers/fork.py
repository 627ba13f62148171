"""The moments of forking: what runs here in the new process ends with that process, never returns.

Kept apart because no coverage tool sees a process that is killed; the pool's tests hold these lines by what they do.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import socket
import stat
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NoReturn

__all__ = [
    "OUT_OF_MEMORY",
    "end_copy",
    "flush",
    "fork_fork_server",
    "fork_worker",
    "in_worker",
    "limit_memory",
    "raise_fd",
    "within_memory",
]

OUT_OF_MEMORY = 247
"""With this status a worker ends that has used up its memory."""

_worker: list[bool] = []

_JOB_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)  # come to all processes of a job or terminal that ends

_HIGH = 500
"""The lowest number of the descriptors that a worker talks through: code that counts up from 3 does not meet them."""


def in_worker() -> bool:
    """Whether this process is a worker, which may be killed at any time."""
    return bool(_worker)


def end_copy(of: int) -> None:
    """End this process if it is not the one of that id but a copy that somebody forked of it."""
    if os.getpid() != of:
        os._exit(0)


def flush() -> None:
    """Write out buffered text, so that a fork does not print it twice and a kill does not lose it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def limit_memory(more: int) -> None:
    """From here on this process, and each that it starts, may have ``more`` bytes of its own beyond what it has now; on Linux."""
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[5]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = now + more
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def within_memory(more: int, work: Callable[[], object]) -> None:
    """Do the work with ``more`` bytes besides what this process has; where they do not suffice the process ends."""
    limit_memory(more)
    try:
        work()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def raise_fd(fd: int) -> int:
    """The same open file under a high number, where the system allows one; the low one is closed."""
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except OSError:  # so many descriptors are not allowed here
        return fd
    os.close(fd)
    return high


def fork_fork_server(near: socket.socket, far: socket.socket, loop: Callable[[], None]) -> int:
    """A process that runs ``loop`` and ends; its id. It holds ``far``, the caller holds ``near``.

    Of the caller's other descriptors it keeps the standard streams, and files that are open for reading only. Each other number
    leads to the null device: a closed one would be given out again, and an object that was copied with the process would use or
    close somebody else's.
    """
    pid = _fork()
    if pid == 0:
        try:
            os.setsid()  # a Ctrl-C in the terminal is the training process's to handle
            _leave_to_driver()
            near.close()
            _let_go(far.fileno())
            loop()
        finally:
            os._exit(0)
    return pid


def fork_worker(control: socket.socket, loop: Callable[[], None]) -> int:
    """A process that runs ``loop`` and ends; its id.

    It leads a session of its own, so that all it starts can be killed with it; it dies with its parent, and is the first that an
    out-of-memory killer takes. It has no terminal: it reads nothing, and what it writes to the descriptors 1 and 2 is dropped.
    """
    pid = _fork()
    if pid == 0:
        _run_worker(control, loop)
    return pid


def _run_worker(control: socket.socket, loop: Callable[[], None]) -> NoReturn:
    code = 1
    _worker.append(True)
    try:
        os.setsid()
        control.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _leave_to_driver()
        mask = partial(signal.pthread_sigmask, mask=_JOB_SIGNALS)  # what comes during a fork waits for the new process
        hold, release = partial(mask, signal.SIG_BLOCK), partial(mask, signal.SIG_UNBLOCK)
        os.register_at_fork(before=hold, after_in_parent=release, after_in_child=_take_defaults)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG
            with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                file.write("800")
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):  # foreign code must neither eat the terminal's input nor write over what a run shows there
            os.dup2(null, number)
        loop()
        code = 0
    finally:
        os._exit(code)


def _leave_to_driver() -> None:
    """The training process decides what a job's signals mean; with SIG_IGN, programs that a reward starts would inherit it."""
    for number in _JOB_SIGNALS:
        signal.signal(number, lambda number, frame: None)


def _take_defaults() -> None:
    """A process that a reward forks can be ended by signals as any other."""
    for number in _JOB_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _JOB_SIGNALS)


def _let_go(keep: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in _open_descriptors():
        if number > 2 and number not in (keep, null) and not _only_read(number):
            os.dup2(null, number, inheritable=False)
    os.close(null)


def _open_descriptors() -> list[int]:
    found: list[int] = []
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:  # no such folder
        numbers = list(range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16)))
    for number in numbers:
        with suppress(OSError):  # the folder's own
            os.fstat(number)
            found.append(number)
    return found


def _only_read(number: int) -> bool:
    return stat.S_ISREG(os.fstat(number).st_mode) and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY


def _fork() -> int:
    with warnings.catch_warnings():
        # The child takes no lock that another thread of this process could hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
