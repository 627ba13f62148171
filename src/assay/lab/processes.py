"""Programs side by side: each in a process of its own, on cores of its own, and none outlives the process that started it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

__all__ = ["ProcessJob", "Processes", "exit_reason", "own_cores"]

POLL = 0.1
"""Seconds between looks at the processes."""

FAREWELL = 10.0
"""Seconds that a process has to end itself, before it is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessJob:
    """A program to run.

    Attributes:
        name: of the job.
        words: a module, and its arguments, as after ``python -m``.
        log: file to which it prints.
        new: begin the file anew; False to append.
    """

    name: str
    words: tuple[str, ...]
    log: Path
    new: bool = True


@dataclass(slots=True)
class _Running:
    job: ProcessJob
    process: subprocess.Popen[bytes]
    place: frozenset[int]


class Processes:
    """As many jobs at a time as there are places.

    A job is no part of the terminal's process group: Ctrl-C is for the process that started it, which says what becomes of it.
    When that process ends, however it does, its jobs are sent SIGTERM (on Linux). At the end of the block so are those that
    still run.

    Args:
        places: the cores of each place; a place without cores may use any.
        environment: variables besides those of this process.

    >>> with tempfile.TemporaryDirectory() as folder, Processes([frozenset()]) as processes:
    ...     processes.start(ProcessJob(name="zen", words=("this",), log=Path(folder, "zen.log")))
    ...     while processes.running:
    ...         for job, status in processes.wait_ended():
    ...             print(job.name, status, job.log.read_text()[:13])
    zen 0 The Zen of Py
    """

    def __init__(self, places: Sequence[frozenset[int]], environment: Mapping[str, str] | None = None) -> None:
        self._free, self._environment = list(places), dict(environment or {})
        self._running: list[_Running] = []

    @property
    def free(self) -> bool:
        """Whether there is a place for one more."""
        return bool(self._free)

    @property
    def running(self) -> list[str]:
        """Names of the jobs that run."""
        return [r.job.name for r in self._running]

    def start(self, job: ProcessJob) -> None:
        """Starts a job in a free place.

        Raises:
            IndexError: there is none.
            OSError: its log cannot be written.
        """
        place = self._free.pop(0)
        words = [sys.executable, "-m", "assay.lab.child", str(os.getpid()), ",".join(map(str, sorted(place))), *job.words]
        with job.log.open("wb" if job.new else "ab") as log:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | self._environment,
                start_new_session=True,
            )
        self._running.append(_Running(job, process, place))

    def wait_ended(self, wait: float = POLL) -> list[tuple[ProcessJob, int]]:
        """The jobs that have ended since the last look, with their status; where none has, it waits a moment first."""
        if all(r.process.poll() is None for r in self._running):
            time.sleep(wait)
        done = [r for r in self._running if r.process.poll() is not None]
        for r in done:
            self._running.remove(r)
            self._free.append(r.place)
        return [(r.job, r.process.returncode) for r in done]

    def ask(self, number: int = signal.SIGTERM) -> None:
        """Sends a signal to all that run."""
        for r in self._running:
            with suppress(ProcessLookupError):
                r.process.send_signal(number)

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.ask()
        end = time.monotonic() + FAREWELL
        for r in self._running:
            try:
                r.process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                r.process.kill()
                r.process.wait()


def exit_reason(log: Path, status: int) -> str:
    """Why a job ended, in one line: the signal that killed it, else the last line that it printed.

    >>> exit_reason(Path("no such file"), -9), exit_reason(Path("no such file"), 3)
    ('was killed by signal 9', 'ended with status 3')
    """
    if status < 0:
        return f"was killed by signal {-status}"
    with suppress(OSError):
        said = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        if said:
            return said[-1]
    return f"ended with status {status}"


# ---- cores ------------------------------------------------------------------------------------------------------------


def _claim(core: int, kept: ExitStack) -> bool:
    """Takes a core until ``kept`` is closed, or this process ends; whether nobody else had it."""
    folder = Path(tempfile.gettempdir(), f"assay-cores-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as opened:
        file = opened.enter_context((folder / str(core)).open("a"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        kept.push(opened.pop_all())
    return True


@contextmanager
def own_cores(each: int, places: int) -> Generator[list[frozenset[int]]]:
    """Cores for jobs, so that no two share one: of those that this process may use, those that nobody else who pins has.

    Args:
        each: cores that a job needs.
        places: how many jobs there are at a time.

    Yields:
        The cores of each place; none (which means any) for places that are left over. The cores are given back behind the block,
        or when the process ends.

    >>> with own_cores(1, 1000) as places:
    ...     len(places), places[-1]
    (1000, frozenset())
    """
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    with ExitStack() as kept:
        mine: list[int] = []
        with suppress(OSError):  # a folder of somebody else by that name: nobody is pinned
            for core in allowed:
                if len(mine) < places * each and _claim(core, kept):
                    mine.append(core)
        groups = [frozenset(mine[i : i + each]) for i in range(0, len(mine) - each + 1, each)]
        yield groups + [frozenset()] * (places - len(groups))
