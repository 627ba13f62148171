"""Processes that somebody else has started: ``torchrun -m assay train ...`` or ``srun assay train ...``, all on one machine.

The process of rank 0 is the run. Each other one serves it: where the run builds a learner that is shared, it starts the worker
of its rank, as the run does by itself where nobody else has started processes. They meet at a Unix socket that only this user can
open.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from assay.core.errors import ConfigError, RankError

__all__ = ["Launch", "Meeting", "check_first", "current_meeting", "lead_ranks", "read_launch", "serve_rank"]

ARRIVAL = 600.0
"""Seconds that processes that were started together wait for each other."""

LONGEST = 100
"""Bytes of a path at which a Unix socket can be."""

LINGER = 30.0
"""Seconds that a run which ends before all have come waits for the rest, to tell them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What the environment says of the processes of a launcher.

    Attributes:
        rank, size: which process this is, of how many.
        by: ``torchrun`` (or anything else that sets its variables) or ``srun``.
        key: the same for the processes of one launch, and another for every other launch.
    """

    rank: int
    size: int
    by: str
    key: str

    @property
    def place(self) -> Path:
        """The socket at which they meet."""
        name = hashlib.blake2b(self.key.encode(), digest_size=8).hexdigest()
        below = f"assay-launch-{os.getuid()}/{name}.sock"
        place = Path(tempfile.gettempdir()) / below
        return place if len(os.fsencode(place)) < LONGEST else Path("/tmp") / below


def read_launch(environment: Mapping[str, str] = os.environ) -> Launch | None:
    """The launch that this process belongs to; None for one that was started alone, or as the only one.

    ``RANK`` and ``WORLD_SIZE``, as ``torchrun`` sets them, come before SLURM's variables, which ``srun`` sets for each task.

    Raises:
        ConfigError: variables contradict each other, or say that the processes are on several machines.

    >>> read_launch({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_PORT": "29500"}).rank
    1
    >>> read_launch({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}).by
    'srun'
    >>> read_launch({}) is None
    True
    """
    if "RANK" in environment or "WORLD_SIZE" in environment:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        by, more = "torchrun", ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    elif "SLURM_STEP_NUM_TASKS" in environment:
        names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_NUM_NODES")
        by, more = "srun", ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")
    else:
        return None
    rank, size = (_number(environment, name, by) for name in names[:2])
    if not 0 <= rank < size:
        raise ConfigError(f"{names[0]}={rank} and {names[1]}={size}: a rank is at least 0 and below their number")
    if size == 1:
        return None
    local = _number(environment, names[2], by) if names[2] in environment else rank
    if local != rank or not _on_one_machine(environment, names[3], by, size):
        raise ConfigError(
            f"{by} has started {size} processes on several machines ({names[0]}={rank}, {names[2]}={local}); the ranks of a run "
            "are on one: use --nproc-per-node, or srun --nodes=1"
        )
    return Launch(rank=rank, size=size, by=by, key=" ".join([by, *(environment.get(name, "") for name in more)]))


def check_first() -> None:
    """Refuses a run in a process that is not rank 0 of its launch: it would be a second run.

    Raises:
        ConfigError: it is.
    """
    launch = read_launch()
    if launch is not None and launch.rank > 0:
        raise ConfigError(
            f"{launch.by} has started this program {launch.size} times, and this is rank {launch.rank}; a run of yours by "
            "assay.train starts the processes of its mesh by itself: start it once, or use 'torchrun -m assay train'"
        )


def _on_one_machine(environment: Mapping[str, str], name: str, by: str, size: int) -> bool:
    if name not in environment:
        return True
    found = _number(environment, name, by)
    return found == size if by == "torchrun" else found == 1


def _number(environment: Mapping[str, str], name: str, by: str) -> int:
    word = environment.get(name)
    try:
        return int(word or "")
    except ValueError:
        said = "is not set" if word is None else f"is {word!r}, no whole number"
        raise ConfigError(
            f"the environment variable {name} {said}, but others of {by} are set; start all processes with {by}, or unset them"
        ) from None


# ---- rank 0


@dataclass(slots=True)
class _Meetings:
    current: Meeting | None = None


_MEETINGS = _Meetings()


def current_meeting() -> Meeting | None:
    """Where this process meets those that were started with it; None where it was started alone."""
    return _MEETINGS.current


@contextmanager
def lead_ranks(launch: Launch) -> Generator[None]:
    """Inside, learners that are shared take the processes of a launch; behind it these end.

    Raises:
        ConfigError: another launch of the same key is at work.
    """
    meeting = Meeting(launch)
    _MEETINGS.current = meeting
    linger = 0.0
    try:
        yield
        linger = LINGER
    finally:
        _MEETINGS.current = None
        meeting.close(linger)


@dataclass(slots=True, eq=False)
class _Server:
    """A process of another rank, as rank 0 knows it."""

    line: Connection
    pid: int
    ended: list[int] = field(default_factory=list[int])


def _own_folder(folder: Path) -> None:
    """Makes a folder that this user alone can enter: whoever reaches the socket can have this process run anything.

    Raises:
        ConfigError: somebody else has made it, or others may enter.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigError(f"{folder} is not this user's alone; remove it, or set TMPDIR to a folder of your own")


class Meeting:
    """Rank 0's end of the lines to the other processes of a launch.

    Args:
        launch: of this process.
        arrival: seconds that the others have to come.

    Raises:
        ConfigError: another process leads the same launch.
    """

    def __init__(self, launch: Launch, arrival: float = ARRIVAL) -> None:
        self.size, self.by, self._place, self._arrival = launch.size, launch.by, launch.place, arrival
        self._servers: dict[int, _Server] = {}
        self._opened = 0
        _own_folder(self._place.parent)
        if self._place.exists():
            with socket.socket(socket.AF_UNIX) as other:
                if other.connect_ex(str(self._place)) == 0:
                    raise ConfigError(f"another process is rank 0 of this {self.by} already; give each launch a port of its own")
            self._place.unlink()
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self._place))
        self._door.listen(self.size)

    def check_size(self, size: int) -> None:
        """Raises ConfigError where a run has other ranks than were started."""
        if size != self.size:
            raise ConfigError(
                f"{self.by} has started {self.size} processes, and the run's mesh has {size} ranks; start {size}, or set "
                f"--mesh.data {self.size} (a resume: --ranks {self.size} --allow-inexact)"
            )

    def open(self, rank: int, threads: int) -> Connection:
        """A line to a new worker of that rank, whose libraries have so many threads.

        Raises:
            RankError: its process did not arrive in time, or has ended.
        """
        self._opened += 1
        deadline = time.monotonic() + self._arrival
        while rank not in self._servers:
            line, hello = self._accept(rank, deadline)
            self._servers[int(hello["rank"])] = _Server(line, int(hello["pid"]))
        server = self._servers[rank]
        server.ended.clear()
        try:
            _send(server.line, {"open": self._opened, "threads": threads})
        except OSError:
            raise RankError(f"the process of rank {rank} ({server.pid}) has ended; its output says why") from None
        line, hello = self._accept(rank, deadline)
        while hello.get("learner") != self._opened:  # one of a rank that comes only now
            self._servers[int(hello["rank"])] = _Server(line, int(hello["pid"]))
            line, hello = self._accept(rank, deadline)
        return line

    def exit_status(self, rank: int, seconds: float) -> int | None:
        """The exit status of a rank's last worker; None while it works, or where nothing is known of it."""
        server = self._servers[rank]
        with suppress(OSError, EOFError):
            if not server.ended and server.line.poll(seconds):
                server.ended.append(int(json.loads(server.line.recv_bytes())["ended"]))
        return server.ended[0] if server.ended else None

    def pid(self, rank: int) -> int:
        """The process of a rank."""
        return self._servers[rank].pid

    def close(self, linger: float = LINGER) -> None:
        """Lets the other processes end: those that have come, and those that come within so many seconds."""
        deadline = time.monotonic() + linger
        with suppress(RankError):
            while len(self._servers) < self.size - 1:
                line, hello = self._accept(0, deadline)
                self._servers[int(hello["rank"])] = _Server(line, int(hello["pid"]))
        for server in self._servers.values():
            with suppress(OSError):
                _send(server.line, {"end": True})
            server.line.close()
        self._door.close()
        self._place.unlink(missing_ok=True)

    def _accept(self, rank: int, deadline: float) -> tuple[Connection, Mapping[str, Any]]:
        self._door.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            line = Connection(self._door.accept()[0].detach())
            line_ready = line.poll(max(0.1, deadline - time.monotonic()))
            return line, json.loads(line.recv_bytes() if line_ready else b"")
        except (OSError, EOFError, ValueError):
            raise RankError(
                f"the process of rank {rank} did not arrive within {self._arrival:g} s; {self.by} says {self.size} processes: "
                "are all of them started with the same command?"
            ) from None


def _send(line: Connection, value: Mapping[str, Any]) -> None:
    line.send_bytes(json.dumps(value).encode())


# ---- the others


def serve_rank(launch: Launch, arrival: float = ARRIVAL) -> int:
    """Serves the run of rank 0 until it ends: starts a worker for each learner that it builds.

    Returns:
        The exit code: 0 where rank 0 said that it ends, 1 where it was killed, or a worker.
    """
    line = _connect(launch, {"rank": launch.rank, "pid": os.getpid()}, arrival)
    if line is None:
        _say(launch, f"rank 0 did not come within {arrival:g} s; its output says why")
        return 1
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1):  # rank 0 decides what they mean
        signal.signal(number, signal.SIG_IGN)
    with line:
        try:
            while True:
                said = json.loads(line.recv_bytes())
                if "end" in said:
                    return 0
                work = _connect(launch, {"rank": launch.rank, "learner": said["open"]}, arrival)
                if work is None:
                    raise EOFError
                status = _work(work, int(said["threads"]))
                _send(line, {"ended": status})
        except (EOFError, OSError):
            _say(launch, "rank 0 has ended without a word: killed from outside, or by the system where memory ran short")
            return 1


def _work(work: Connection, threads: int) -> int:
    """Starts a worker at the end of a connection and waits for it; its exit status. It ends with rank 0 and with this process."""
    number = work.fileno()
    with work:
        process = subprocess.Popen(
            [sys.executable, "-c", f"from assay.runtime.distributed.worker import main; main({number}, {os.getpid()})"],
            pass_fds=(number,),
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"},
            stdin=subprocess.DEVNULL,
        )
    return process.wait()


def _connect(launch: Launch, hello: Mapping[str, Any], arrival: float) -> Connection | None:
    """A line to rank 0, which may begin later; None where it does not."""
    deadline = time.monotonic() + arrival
    while time.monotonic() < deadline:
        door = socket.socket(socket.AF_UNIX)
        if door.connect_ex(str(launch.place)) == 0:
            line = Connection(door.detach())
            _send(line, hello)
            return line
        door.close()
        time.sleep(0.1)
    return None


def _say(launch: Launch, text: str) -> None:
    print(f"assay, rank {launch.rank}: {text}", file=sys.stderr, flush=True)
