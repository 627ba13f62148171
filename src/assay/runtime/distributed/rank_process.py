"""The worker of another rank, as rank 0 sees it: started here, or by a process that a launcher has started."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection

from assay.core.errors import RankError
from assay.runtime.distributed.launch import Meeting, current_meeting
from assay.runtime.distributed.worker import WorkerSettings

__all__ = ["FAREWELL", "LaunchedRank", "RankProcess", "begin_rank"]

FAREWELL = 10.0
"""Seconds that a process gets to end by itself, or to say what went wrong."""


def begin_rank(orders: WorkerSettings) -> RankProcess:
    """A worker of a rank, by the process of a launcher where there is one.

    Raises:
        RankError: its process did not come.
    """
    meeting = current_meeting()
    return RankProcess(orders) if meeting is None else LaunchedRank(orders, meeting)


class RankProcess:
    """The worker of a rank, and the line to it; started here.

    Args:
        orders: which rank of what.
    """

    def __init__(self, orders: WorkerSettings) -> None:
        self.rank, self._timeout = orders.rank, orders.mesh.timeout
        self._line = self._begin(orders)
        self.tell(pickle.dumps(sys.path))
        self.tell(pickle.dumps(orders, protocol=5))

    def _begin(self, orders: WorkerSettings) -> Connection:
        """Starts the process; the line to it."""
        mine, theirs = socket.socketpair()
        environment = {**os.environ, "OMP_NUM_THREADS": str(orders.threads), "OMP_WAIT_POLICY": "PASSIVE"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from assay.runtime.distributed.worker import main; main({theirs.fileno()})"],
                pass_fds=(theirs.fileno(),),
                env=environment,
                stdin=subprocess.DEVNULL,
            )
        return Connection(mine.detach())

    @property
    def pid(self) -> int:
        """The process to look at."""
        return self._process.pid

    def _status(self) -> int | None:
        """How it ended; None where it has not, within some time."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(FAREWELL)
        return self._process.returncode

    def tell(self, message: bytes) -> None:
        """Sends a call."""
        try:
            self._line.send_bytes(message)
        except OSError:
            raise self._lost_error() from None

    def wait(self) -> None:
        """Waits until the last call is done there.

        Raises:
            AssayError: what went wrong there.
            RankError: it ended, or did not finish in time.
        """
        if not self._line.poll(self._timeout):
            raise RankError(
                f"rank {self.rank} did not finish within {self._timeout:g} s of rank 0: it hangs or is slow; look what process "
                f"{self.pid} does, or raise Run.mesh.timeout"
            )
        if (found := self._received_error()) is not None:
            raise found

    def farewell(self, deadline: float) -> Exception | None:
        """What it says before it ends; None where it goes on."""
        return self._received_error() if self._line.poll(max(0.0, deadline - time.monotonic())) else None

    def _received_error(self) -> Exception | None:
        try:
            return pickle.loads(self._line.recv_bytes())
        except (EOFError, OSError):
            return self._lost_error()

    def _lost_error(self) -> RankError:
        code = self._status()
        how = "does not answer" if code is None else f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return RankError(
            f"rank {self.rank} (process {self.pid}) {how}: from outside, or by the system where memory ran short; "
            "resume the run from its last checkpoint"
        )

    def hang_up(self) -> None:
        """Closes the line, which it lives by."""
        self._line.close()

    def end(self) -> None:
        """Waits for its end, for some time."""
        try:
            self._process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class LaunchedRank(RankProcess):
    """The same at the process of a launcher, which starts it and says how it ended.

    Args:
        orders: which rank of what.
        meeting: where that process is met.
    """

    def __init__(self, orders: WorkerSettings, meeting: Meeting) -> None:
        self._meeting = meeting
        super().__init__(orders)

    def _begin(self, orders: WorkerSettings) -> Connection:
        return self._meeting.open(orders.rank, orders.threads)

    @property
    def pid(self) -> int:
        return self._meeting.pid(self.rank)

    def _status(self) -> int | None:
        return self._meeting.exit_status(self.rank, FAREWELL)

    def end(self) -> None:
        self._status()
