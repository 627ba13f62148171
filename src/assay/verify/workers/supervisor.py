"""The near side of a scoring pool: the fork server, and the workers that it forks."""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import monotonic
from typing import IO

from assay.core.errors import DataError, RewardError
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.task import Task
from assay.verify.workers.connections import FlightPlan
from assay.verify.workers.cpu import stopped
from assay.verify.workers.process import OUT_OF_MEMORY, ForkServer, hear, views
from assay.verify.workers.results import ResultsFile, blank
from assay.verify.workers.stdout import printed_in

__all__ = ["ScoringWorker", "WorkerSupervisor"]

_ARRIVAL = 60.0
"""Seconds that a worker may take to read a batch: nothing of the user's runs yet, so only a broken machine needs them."""

_SMALL = 1 << 16
"""Bytes that can be sent to a process that does not read."""

_LOOK = 0.5
"""Seconds between two looks at whether one that reads is stopped."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoringWorker:
    """One scoring process, seen from the training process.

    Attributes:
        pid: its process id.
        connection: batches go in; out comes a word when one has been read, and when it is judged.
        verdicts: what it has said of the answers of its batch.
        files: for what it prints, and for its verdicts.
        fork_server: whose child it is.
    """

    pid: int
    connection: Connection
    verdicts: ResultsFile
    files: tuple[IO[bytes], IO[bytes]]
    fork_server: ForkServer

    def end(self) -> tuple[str, str]:
        """End it and all that it started; how it ended, in words, and what it had printed on its last answer."""
        self.connection.close()
        try:
            code = self.fork_server.kill(self.pid)
            how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        except (EOFError, OSError):
            how = "its fork server is gone"
        printed = printed_in(self.files[0].fileno())
        self.close()
        return how, printed

    def close(self) -> None:
        """Let go of it."""
        self.connection.close()
        for file in self.files:
            file.close()


class WorkerSupervisor:
    """The fork server and its workers: those at work, and the idle ones. Several threads may use one.

    Args:
        verifier: what judges.
        counts: where it is counted how often the fork server was ``replaced``, and a worker ``out_of_memory``.
        memory: bytes that a worker may have beyond what it begins with.
    """

    def __init__(self, verifier: Verifier, counts: Counter[str], memory: int) -> None:
        self._verifier = verifier
        self._counts = counts
        self._memory = memory
        self._workers: list[ScoringWorker] = []
        self._idle: list[ScoringWorker] = []
        self._lock = threading.RLock()
        self._closed = False
        self._appoint()

    def hand(
        self, items: Sequence[tuple[Task, Rollout]], *, how: bool | FlightPlan = False, fresh: bool = False
    ) -> ScoringWorker:
        """A worker that has read a batch and begins: an idle one, or a new one.

        Args:
            items: what it is to judge.
            how: one by one, in one call (True), or as asynchronous calls in flight at once.
            fresh: it has judged nothing yet; idle ones are ended.

        Raises:
            DataError: an item cannot be sent to another process.
            RewardError: no worker comes up, or the bench is closed.
        """
        try:
            data = pickle.dumps((views(self._verifier, items), how), protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # pickle raises whatever a foreign __reduce__ raises
            raise DataError(
                f"a task or rollout cannot be sent to the scoring process: {error}; keep plain values in it"
            ) from error
        if fresh:
            self.shrink(0)
        for _ in range(3):
            worker: ScoringWorker | None = None
            try:
                with self._lock:
                    worker = self._idle.pop() if self._idle else self._hire()
                worker.verdicts.begin()
                if len(data) < _SMALL or not stopped(worker.pid):
                    worker.connection.send_bytes(data)
                    if _arrives(worker):
                        return worker
            except (EOFError, OSError):
                pass  # it died while idle, which says nothing about the batch
            if worker is not None:
                self.end(worker)
        raise RewardError("three scoring processes in a row died before they read their batch; is the machine out of memory?")

    def rest(self, worker: ScoringWorker) -> None:
        """The worker has judged all it was given, and may be given more."""
        with self._lock:
            self._idle.append(worker)

    def end(self, worker: ScoringWorker) -> tuple[str, str]:
        """End a worker that is at work; see `ScoringWorker.end`."""
        with self._lock:
            self._workers.remove(worker)
            how, printed = worker.end()
            if how == f"exit code {OUT_OF_MEMORY}":
                self._counts["out_of_memory"] += 1
                how = f"it asked for more than the {self._memory / 2**30:.3g} GiB of memory that a worker may have"
            return how, printed

    def shrink(self, to: int) -> None:
        """End idle workers until ``to`` are left."""
        with self._lock:
            while len(self._idle) > to:
                self.end(self._idle.pop())

    def end_all(self) -> None:
        """End every worker, whatever it is doing."""
        with self._lock:
            self._idle.clear()
            while self._workers:
                self._workers.pop().end()

    def close(self) -> None:
        """End everything; harmless when repeated. A thread that is about to start a worker ends in an error."""
        self._closed = True  # first: a thread that finds the fork server gone must know why
        self._idle.clear()
        self._finalizer()

    def _appoint(self) -> None:
        self._fork_server = ForkServer(self._verifier, self._memory)
        self._finalizer = weakref.finalize(self, _shut, self._fork_server, self._workers, os.getpid())

    def _dismiss(self) -> None:
        self._counts["replaced"] += 1
        self._finalizer.detach()
        if self._fork_server.lost:  # its workers live, and their ids are theirs as long as it does not collect them
            for worker in self._workers:
                with suppress(OSError):
                    if worker.fork_server is self._fork_server:
                        os.killpg(worker.pid, signal.SIGKILL)
        self._fork_server.close()

    def _check_open(self) -> None:
        if self._closed or not self._finalizer.alive:
            raise RewardError("this ScoringPool is closed; make a new one")

    def _hire(self) -> ScoringWorker:
        self._check_open()
        files = tempfile.TemporaryFile(buffering=0), blank()  # noqa: SIM115 - they live as long as their worker
        printed, verdicts = (file.fileno() for file in files)
        try:
            try:
                pid, connection = self._fork_server.spawn(printed, verdicts)
            except (EOFError, OSError):  # somebody killed the fork server: start another
                self._check_open()
                self._dismiss()
                self._appoint()
                pid, connection = self._fork_server.spawn(printed, verdicts)
        except BaseException:
            for file in files:
                file.close()
            raise
        self._workers.append(ScoringWorker(pid, connection, ResultsFile(verdicts), files, self._fork_server))
        return self._workers[-1]


def _arrives(worker: ScoringWorker) -> bool:
    """Whether it says in time that it has read its batch."""
    due = monotonic() + _ARRIVAL
    while (left := due - monotonic()) > 0:
        if worker.connection.poll(min(left, _LOOK)):
            hear(worker.connection)
            return True
        if stopped(worker.pid):
            break
    return False


def _shut(fork_server: ForkServer, workers: list[ScoringWorker], owner: int) -> None:
    if os.getpid() != owner:  # a forked copy of the training process
        return
    while workers:  # they die with their fork server
        workers.pop().close()
    fork_server.close()
