"""The moments of forking: what runs here in the new process ends with that process, never returns.

Kept apart because no coverage tool sees a process that is killed; the pool's tests hold these lines by what they do.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

__all__ = ["end_copy", "flush", "fork_keeper", "fork_worker", "in_worker"]

_worker: list[bool] = []


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


def fork_keeper(near: socket.socket, far: socket.socket, loop: Callable[[], None]) -> int:
    """A process that runs ``loop`` and ends; its id. It holds ``far``, the caller holds ``near``."""
    pid = _fork()
    if pid == 0:
        try:
            os.setsid()  # a Ctrl-C in the terminal is the training process's to handle
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            near.close()
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


def _fork() -> int:
    with warnings.catch_warnings():
        # The child takes no lock that another thread of this process could hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
