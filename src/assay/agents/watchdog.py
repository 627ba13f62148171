"""Ends the programs that this process started when it is killed itself, by a helper that waits for its end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress

__all__ = ["forget_group", "watch_group"]

_HELPER = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    group = int(line)
    groups.add(group) if group > 0 else groups.discard(-group)
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""
"""Reads groups to watch, and with a minus those that ended; at the end of its input, the trainer's end, it kills the others."""

_lock = threading.Lock()
_helper: tuple[int, subprocess.Popen[bytes]] | None = None


def watch_group(group: int) -> None:
    """From now on this process group ends when this process does, however it ends: SIGKILL leaves it no time to do so itself.

    A group that began and is not watched yet when the kill comes goes on: for the moment between its start and this call.
    """
    _tell(group)


def forget_group(group: int) -> None:
    """The group has ended: its number may be another's soon."""
    _tell(-group)


def _tell(number: int) -> None:
    global _helper
    with _lock:
        if _helper is None or _helper[0] != os.getpid() or _helper[1].poll() is not None:  # a fork has no helper of its own yet
            if number < 0:
                return
            words = [sys.executable, "-I", "-S", "-c", _HELPER]
            nowhere = subprocess.DEVNULL
            made = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True)
            _helper = (os.getpid(), made)
        pipe = _helper[1].stdin
        assert pipe is not None
        with suppress(OSError):  # it was killed: the next group starts another
            pipe.write(b"%d\n" % number)
            pipe.flush()
