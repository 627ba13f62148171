"""Programs in containers that another tool makes: a fresh one for each run, with our own process 1 inside."""

from __future__ import annotations

import json
import marshal
import os
import shutil
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from assay.core.errors import ConfigError
from assay.sandbox.backend import Refused, WorkerDied
from assay.sandbox.channels import payload, sealed_file
from assay.sandbox.client import status_of
from assay.sandbox.limits import Limits
from assay.sandbox.readable_paths import check_readable
from assay.sandbox.result import Result, SandboxProgram, Status
from assay.sandbox.values import read

__all__ = ["FOLDER", "INSIDE", "ContainerBackend", "ContainerSettings", "ContainerWorker", "VisiblePaths", "visible_paths"]

INSIDE = "/assay/zygote"
"""Where the container shows the code of its process 1."""

FOLDER = "/box"
"""Where the container has the program's folder: empty, writable, and gone with it."""

CODE = Path(__file__).parents[1] / "zygote"
_GRACE = 60.0
_TALK = 256


@dataclass(frozen=True, slots=True)
class VisiblePaths:
    """What a container must show of the host, read-only.

    Attributes:
        python: the interpreter, a real path.
        reads: real paths of files and folders, none inside another.
        hidden: folders inside these that must look empty.
        links: links in the root, and where they lead.
    """

    python: str
    reads: tuple[str, ...]
    hidden: tuple[str, ...]
    links: Mapping[str, str]


@cache
def visible_paths(python: str, reads: tuple[str, ...]) -> VisiblePaths:
    """What programs of an interpreter need.

    Raises:
        Refused: it does not run, or one of ``reads`` is not there.
    """
    command = [python, "-I", "-S", str(CODE / "show.py"), *reads]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{python} does not run, or a path to read is not there: {done.stderr.strip()[-300:]}")
    said = json.loads(done.stdout)
    return VisiblePaths(said["python"], tuple(said["reads"]), tuple(said["hidden"]), said["links"])


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """One container to be.

    Attributes:
        argv: starts it, with ``python -I -S INSIDE/box.py`` as its process 1.
        user: whom process 1 makes the program become; None where both are the same.
        hide_proc: whether the program sees no /proc and /sys, because the kernel inside would show it what process 1 holds.
        counted: processes of the program's user beside it that its limit counts; None where no limit of processes holds.
    """

    argv: tuple[str, ...]
    user: int | None = None
    hide_proc: bool = False
    counted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerBackend(ABC):
    """A tool that makes containers, as a backend.

    Each run has a container of its own, in which process 1 is ours: it holds limits and clock, puts the program under Landlock
    (where there is one) and our filter of system calls, and says how it ended. A fresh interpreter takes tens of milliseconds.

    Attributes:
        reads: host paths that programs may read besides Python's own libraries.
        python: the interpreter of programs.

    Raises:
        ConfigError: a path that programs cannot be given to read (``assay.sandbox.readable_paths``).
    """

    reads: tuple[str, ...] = ()
    python: str = sys.executable

    def __post_init__(self) -> None:
        check_readable(self.reads, (FOLDER, INSIDE))

    @property
    @abstractmethod
    def name(self) -> str:
        """What stands in `Result.isolation`."""
        ...

    @property
    @abstractmethod
    def tool(self) -> str:
        """The program that makes containers."""
        ...

    @property
    @abstractmethod
    def layers(self) -> Mapping[str, str]:
        """What the tool itself grants."""
        ...

    @abstractmethod
    def cage(self, limits: Limits) -> AbstractContextManager[ContainerSettings]:
        """A container for one run; when it is left, nothing of it remains.

        Raises:
            Refused: it cannot be made.
        """
        ...

    @property
    def several(self) -> bool:
        """Whether a limit of more than one process can be kept."""
        return False

    def start(self) -> ContainerWorker:
        """A worker.

        Raises:
            Refused: the tool is not there, or makes no container here.
        """
        if shutil.which(self.tool) is None:
            raise Refused(f"there is no {self.tool} on the path; install {self.name}")
        return ContainerWorker(self)


class ContainerWorker:
    """Runs one program at a time, each in a container of its own.

    Args:
        backend: makes the containers.

    Attributes:
        layers: what holds its programs, as `Worker` says.
    """

    def __init__(self, backend: ContainerBackend) -> None:
        self._backend = backend
        self._running: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False
        try:
            found = self._ask({}, (), Limits(), 30.0).end
        except WorkerDied as error:
            raise Refused(str(error)) from None
        if "infra" in found:
            raise Refused(str(found["infra"]))
        self.layers: Mapping[str, str] = {
            **backend.layers,
            "landlock": str(found["landlock"]) if found["landlock"] else "no: the kernel inside has none",
            "seccomp": found["machine"],
            "processes": "as many as the limits say" if backend.several else "one",
            "rlimits": "yes",
            "environment": "empty",
        }

    def run(self, program: SandboxProgram, limits: Limits) -> Result:
        """Runs a program to its end.

        Raises:
            WorkerDied: the container did not start, or its process 1 fell silent.
            ConfigError: limits that cannot be kept here.
        """
        if limits.processes > 1 and not self._backend.several:
            raise ConfigError(
                f"Limits.processes={limits.processes}: under {self._backend.name!r} a program is one process here; several need "
                "'strong' ('assay sandbox probe' says what is granted)"
            )
        if getattr(program, "keep", ()):
            raise ConfigError(f"Program.keep: files do not come back from {self._backend.name!r}; use 'strong' or 'landlock'")
        mode = "call" if program.entry else "run"
        text = program.stdin.encode("utf-8", "surrogatepass") if isinstance(program.stdin, str) else program.stdin
        said = self._ask({"limits": asdict(limits)}, (payload(program, mode), text), limits, limits.wall + _GRACE)
        return said.result(self._backend.name, limits, mode)

    def close(self) -> None:
        """Ends it, and what it runs."""
        with self._lock:
            self._closed = True
            if self._running is not None:
                _end(self._running)

    def _ask(self, order: dict[str, Any], blobs: tuple[bytes, ...], limits: Limits, seconds: float) -> _Said:
        with self._backend.cage(limits) as cage:
            told = order | {"folder": FOLDER, "user": cage.user, "veil": cage.hide_proc, "counted": cage.counted}
            told["sizes"] = [len(b) for b in blobs]
            head = marshal.dumps(told, 4)
            stdin = sealed_file(b"".join((len(head).to_bytes(8, "little"), head, *blobs)))
            try:
                process = self._begin(cage, stdin)
            finally:
                os.close(stdin)
            clock = threading.Timer(seconds, _end, (process,))
            clock.start()
            try:
                return _Said.of(process, limits)
            finally:
                clock.cancel()
                _end(process)
                self._running = None

    def _begin(self, cage: ContainerSettings, stdin: int) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise WorkerDied("it is closed")
            try:
                self._running = subprocess.Popen(
                    cage.argv,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                raise WorkerDied(f"{cage.argv[0]}: {error}") from None
            return self._running


class _Said:
    """What a container's process 1 said: the program's output, errors and value, and how it ended."""

    def __init__(self) -> None:
        self.data = {"o": bytearray(), "e": bytearray(), "v": bytearray()}
        self.end: dict[str, Any] = {}

    @classmethod
    def of(cls, process: subprocess.Popen[bytes], limits: Limits) -> _Said:
        """Reads all of it; it says no more of each stream than the limit, and is not believed beyond."""
        said = cls()
        assert process.stdout is not None and process.stderr is not None
        words = _Tail(process.stderr)
        while head := process.stdout.read(9):
            kind, size = chr(head[0]), int.from_bytes(head[1:9], "little")
            data = process.stdout.read(size) if size <= max(limits.output, 1 << 16) else b""
            if len(data) < size:
                break
            if kind == "x":
                said.end = json.loads(data)
                return said
            said.data[kind] += data
        raise WorkerDied(f"the container ended without a word on its program: {words.text() or 'it said nothing'}")

    def result(self, name: str, limits: Limits, mode: str) -> Result:
        """As a result."""
        end = self.end
        if "infra" in end:
            return Result(status=Status.INFRA, isolation=name, detail=str(end["infra"]))
        code, signalled = os.waitstatus_to_exitcode(end["status"]), None
        if code < 0:
            code, signalled = None, -code
        full = end["reason"] == "output"
        found, value, noted = (False, None, "") if full else read(bytes(self.data["v"]))
        status, detail = status_of(end, code, signalled, limits, noted), ""
        if mode == "call" and status is Status.OK and not found:
            status, detail = Status.ERROR, "it ended without a value"
        return Result(
            status=status,
            exit_code=None if end["reason"] else code,
            signal=None if end["reason"] else signalled,
            stdout=self.data["o"].decode("utf-8", "replace"),
            stderr=self.data["e"].decode("utf-8", "replace"),
            seconds=end["seconds"],
            cpu_seconds=end["cpu"],
            isolation=name,
            value=value if status is Status.OK and mode == "call" else None,
            detail=detail,
        )


class _Tail:
    """The last of what the tool itself says, read beside everything else so that it never waits for us."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._kept = b""
        self._thread = threading.Thread(target=self._read, args=(lines,), daemon=True)
        self._thread.start()

    def text(self) -> str:
        self._thread.join(1.0)
        return self._kept.decode("utf-8", "replace").strip()

    def _read(self, lines: Iterable[bytes]) -> None:
        with suppress(ValueError):
            for line in lines:
                self._kept = (self._kept + line)[-_TALK:]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a tool with its container, which dies with it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.close()
