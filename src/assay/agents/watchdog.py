"""Ends the programs that this process started when it is killed itself, by a helper that waits for its end."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["forget_group", "watch_group", "watched_environment"]

VARIABLE = "ASSAY_STARTED_BY"
"""Environment variable by which the helper knows a program that this process started, and what that started in its turn."""

_HELPER = """
import os, signal, sys, time
mark = sys.argv[1].encode()
groups = set()
for line in sys.stdin:
    group = int(line)
    groups.add(group) if group > 0 else groups.discard(-group)
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass

def marked(pid):
    try:
        with open("/proc/" + pid + "/environ", "rb") as file:
            return mark in file.read().split(bytes(1))
    except OSError:
        return False

end = time.monotonic() + 2
while time.monotonic() < end and os.path.isdir("/proc/self"):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if marked(pid):
            try:
                os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass
            else:
                end = time.monotonic() + 2
    time.sleep(0.05)
"""
"""Reads groups to watch, and with a minus those that ended. At the end of its input, the trainer's end, it kills the others, then
every process with the mark in its environment: until none has come for two seconds, since one that is between fork and exec has
the trainer's environment still. Without ``/proc`` it kills the groups alone."""


@dataclass(frozen=True, slots=True)
class _Helper:
    """The helper of one process.

    Attributes:
        owner: that process.
        mark: value of `VARIABLE`.
        process: the helper.
    """

    owner: int
    mark: str
    process: subprocess.Popen[bytes]

    @property
    def works(self) -> bool:
        """A fork has no helper of its own yet, and a helper may have been killed."""
        return self.owner == os.getpid() and self.process.poll() is None


_lock = threading.Lock()
_helper: _Helper | None = None


def watched_environment() -> Mapping[str, str]:
    """What a program's environment must hold so that it ends when this process does, from its very first moment.

    Such a program ends even if this process is killed before it can name its group by `watch_group`; what it starts ends with it,
    in whatever group, unless its environment is taken away.
    """
    with _lock:
        return {VARIABLE: _working().mark}


def watch_group(group: int) -> None:
    """From now on this process group ends when this process does, however it ends: SIGKILL leaves it no time to do so itself."""
    with _lock:
        _tell(_working(), group)


def forget_group(group: int) -> None:
    """The group has ended: its number may be another's soon."""
    with _lock:
        if _helper is not None and _helper.works:
            _tell(_helper, -group)


def _working() -> _Helper:
    global _helper
    if _helper is None or not _helper.works:
        mark, nowhere = secrets.token_hex(16), subprocess.DEVNULL
        words = [sys.executable, "-I", "-S", "-c", _HELPER, f"{VARIABLE}={mark}"]
        own = {name: value for name, value in os.environ.items() if name != VARIABLE}  # another trainer's agent may train too
        made = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True, env=own)
        _helper = _Helper(os.getpid(), mark, made)
    return _helper


def _tell(helper: _Helper, number: int) -> None:
    pipe = helper.process.stdin
    assert pipe is not None
    with suppress(OSError):  # it was killed: the next program starts another
        pipe.write(b"%d\n" % number)
        pipe.flush()
