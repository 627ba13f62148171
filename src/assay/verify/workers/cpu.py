"""Cores for those who judge: whether one more answer can be judged at once, and what a wait for a core adds to a deadline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic

__all__ = ["LOOK", "CpuLimiter", "DeadlineClock", "cores", "memory", "runs", "stopped", "waited_seconds"]

LOOK = 0.05
"""Seconds between two looks at which workers sleep."""


_GRACE = 4.0
"""A wait for a core makes a deadline at most this many times longer: an answer that fills the machine with threads of its own
must not buy time with them."""


class DeadlineClock:
    """Counts down one worker's deadline, in which the time that it waited for a core does not count.

    A machine that is busy with other work is no fault of the answer.

    Args:
        pid: process id of the worker.
        deadline: seconds for one verdict.

    Attributes:
        began: when the present verdict was begun (`time.monotonic`).
    """

    __slots__ = ("_deadline", "_pid", "_waited", "began")

    def __init__(self, pid: int, deadline: float) -> None:
        self._pid, self._deadline = pid, deadline
        self.again()
        self._waited = waited_seconds(pid)

    def again(self, at: float | None = None) -> None:
        """The next verdict begins, or began (`time.monotonic`): not before the present one, nor later than now."""
        self.began = monotonic() if at is None else min(max(self.began, at), monotonic())

    def seconds_left(self) -> float:
        """Seconds left to the present verdict. Waits since the clock was made count: to read them costs microseconds."""
        owed = min(waited_seconds(self._pid) - self._waited, (_GRACE - 1) * self._deadline)
        return self.began + self._deadline + max(0.0, owed) - monotonic()


class CpuLimiter:
    """Admits answers to be judged at once: as many as there are cores, and beside ones that sleep, up to ``workers``.

    An answer that waits for something costs nothing. One that computes and shares its core with others would be slower than
    alone, exceed a deadline that it meets alone, and be blamed for it.

    Args:
        workers: how many at most.

    Attributes:
        width: how many may compute at once.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._cores = cores()
        self.width = min(workers, self._cores)
        self._looked = 0.0
        self._asleep: frozenset[int] = frozenset()

    def free(self, busy: Mapping[int, float]) -> bool:
        """Whether there is room for one more.

        Args:
            busy: process id of each worker that is judging, and when it began (`time.monotonic`).
        """
        if len(busy) >= self._workers:
            return False
        if len(busy) < self._cores:
            return True
        now = monotonic()
        if now - self._looked >= LOOK:
            self._looked, self._asleep = now, frozenset(pid for pid in busy if not runs(pid))
        return sum(began > self._looked or pid not in self._asleep for pid, began in busy.items()) < self._cores


def cores() -> int:
    """How many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def memory() -> int:
    """Bytes of memory that this program may use: the machine's, or what its control group allows.

    >>> memory() > 0
    True
    """
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no such group, or one without a limit
            found.append(int(Path(path).read_text()))
    return min(found)


def waited_seconds(pid: int) -> float:
    """Seconds that a process's first thread was ready to run and had no core; 0 where the system does not tell.

    >>> import os
    >>> waited_seconds(os.getpid()) >= 0.0
    True
    """
    try:
        return int(Path("/proc", str(pid), "schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):  # no such system, or a process that has just ended
        return 0.0


def stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal (SIGSTOP); False where the system does not tell.

    >>> import os
    >>> stopped(os.getpid())
    False
    """
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):  # no such system, or a process that has just ended
        return False


def runs(pid: int) -> bool:
    """Whether a thread of a process, or of one that it started, runs or waits for a core; True where the system does not tell.

    >>> import os
    >>> runs(os.getpid())
    True
    """
    family = [str(pid)]
    try:
        while family:
            for thread in Path("/proc", family.pop(), "task").iterdir():
                if thread.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "R":
                    return True
                family += thread.joinpath("children").read_text().split()
    except OSError:  # no such system, or a process that has just ended
        return True
    return False
