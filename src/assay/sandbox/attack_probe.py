"""The attack probe: whether a backend holds what it promises, found out by attacking it, not by asking.

It takes a fraction of a second. The full set of attacks stands in the tests; this is the part of it that tells levels apart.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.core.errors import ConfigError
from assay.sandbox.backend import Backend, Refused, Worker, WorkerDied
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram, Status

__all__ = ["IsolationProbe", "attack", "probe"]

_LIMITS = Limits(cpu=5.0, wall=20.0, memory=256 << 20)

_SOURCE = """
import json, os, stat, sys

given = json.loads(input())
through = []
try:
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
except (ImportError, OSError):
    libc = None  # WebAssembly has none, and attacks by it fail

def attempt(name, attack):
    try:
        if attack():
            through.append(name)
    except BaseException:
        pass

def connect(family, address):
    import socket
    with socket.socket(getattr(socket, family)) as s:
        s.settimeout(1)
        s.connect(address)
    return True

def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True

def call(*arguments):
    return libc.syscall(*arguments) >= 0

def planted(path):
    with open(path, "rb") as file:
        return given["secret"].encode() in file.read()

def above(fd):
    with open(os.open("../" * 16 + given["file"][1:], os.O_RDONLY, dir_fd=fd), "rb") as file:
        return given["secret"].encode() in file.read()

def inherited():
    found = []
    for fd in range(4, 256):
        try:
            kind = os.fstat(fd).st_mode
        except OSError:
            continue
        if sys.platform != "wasi" or not stat.S_ISDIR(kind):  # whose folders are descriptors, with nothing above them
            found.append(fd)
    return found

def signalled():
    os.kill(given["pid"], 0)
    return True

attempt("descriptors", inherited)
attempt("network", lambda: connect("AF_INET", ("127.0.0.1", given["port"])))
attempt("abstract socket", lambda: connect("AF_UNIX", given["abstract"].encode()))
attempt("host read", lambda: planted(given["file"]))
for fd in range(3, 16):
    attempt("host read", lambda fd=fd: above(fd))
attempt("host write", lambda: open(given["file"] + ".written", "x") and False)
attempt("parent's environment", lambda: open("/proc/%d/environ" % given["pid"], "rb").read())
attempt("parent's memory", lambda: open("/proc/%d/mem" % os.getppid(), "r+b"))
attempt("signal parent", signalled)
attempt("ptrace", lambda: call(given["ptrace"], 0x4206, os.getppid(), 0, 0))
attempt("processes", fork)
attempt("new namespaces", lambda: libc.unshare(0x10000000) == 0)
attempt("mount", lambda: libc.mount(b"none", b".", b"tmpfs", 0, b"") == 0)
attempt("memory", lambda: bytearray(given["memory"]))
attempt("environment", lambda: open("/proc/self/environ", "rb").read().strip(b"\\0"))
attempt("leftovers", lambda: os.listdir("."))
try:
    open("left", "x").close()
except OSError:
    pass
print(json.dumps(through))
"""

_STUBBORN = """
import signal
for n in range(1, 32):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
"""


@dataclass(frozen=True, slots=True)
class IsolationProbe:
    """How a backend withstood the attack probe.

    Attributes:
        name: the backend's.
        held: whether every attack was held.
        why: what got through, or why the backend could not even start; empty when it held.
        layers: what was granted, by layer; ``no:`` and a reason where it was not.
        attacks: whether each attack was held.
        over: which better levels were tried and why they were passed over; empty where none was.
    """

    name: str
    held: bool
    why: str
    layers: Mapping[str, str]
    attacks: Mapping[str, bool]
    over: str = ""

    @property
    def tag(self) -> str:
        """What stands in results and scores as their isolation.

        >>> IsolationProbe("rlimits", False, "network", {}, {}).tag
        'rlimits (UNSAFE)'
        """
        return self.name if self.held else f"{self.name} (UNSAFE)"

    @property
    def line(self) -> str:
        """One line for people.

        >>> IsolationProbe("landlock", True, "", {"namespaces": "no: not at this level", "landlock": "7",
        ...     "seccomp": "x86_64"}, {}).line
        'isolation: landlock (landlock 7, seccomp); memory: per process'
        """
        said = {name: text for name, text in self.layers.items() if not text.startswith("no:")}
        words = {
            "namespaces": f"{said.get('namespaces')} namespaces",
            "landlock": f"landlock {said.get('landlock')}",
            "webassembly": said.get("webassembly", ""),
        }
        granted = [words.get(n, n) for n in ("webassembly", "namespaces", "landlock", "seccomp", "rlimits") if n in said]
        through = "" if self.held else f"; NOT HELD: {self.why}"
        passed = f"; passed over: {self.over}" if self.over else ""
        return f"isolation: {self.name} ({', '.join(granted)}); memory: per process{through}{passed}"

    def manifest(self) -> dict[str, Any]:
        """Plain values for a run's manifest."""
        return {
            "isolation": self.name,
            "held": self.held,
            "why": self.why,
            "layers": dict(self.layers),
            "attacks": dict(self.attacks),
            "over": self.over,
        }


_known: dict[Backend, IsolationProbe] = {}
_lock = threading.Lock()


def _renew() -> None:
    """In a forked child: a thread of the parent may have held the lock, and does not live here to release it."""
    global _lock
    _lock = threading.Lock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew)


def probe(backend: Backend) -> IsolationProbe:
    """How the backend withstands the attack probe; asked once per process."""
    with _lock:
        if backend not in _known:
            _known[backend] = attack(backend)
        return _known[backend]


def attack(backend: Backend) -> IsolationProbe:
    """Starts a worker and attacks it."""
    try:
        worker = backend.start()
    except Refused as error:
        return IsolationProbe(backend.name, False, f"not granted: {error}", {}, {})
    try:
        attacks = _attacks(worker)
    except (WorkerDied, ConfigError, _NoAnswer) as error:
        return IsolationProbe(backend.name, False, f"the probe failed: {error}", worker.layers, {})
    finally:
        worker.close()
    through = [name for name, held in attacks.items() if not held]
    return IsolationProbe(backend.name, not through, ", ".join(through), worker.layers, attacks)


class _NoAnswer(Exception):
    """The probe's own program did not run as it should."""


_NAMES = (
    "descriptors",
    "network",
    "abstract socket",
    "host read",
    "host write",
    "parent's environment",
    "parent's memory",
    "signal parent",
    "ptrace",
    "processes",
    "new namespaces",
    "mount",
    "memory",
    "environment",
    "leftovers",
)


def _attacks(worker: Worker) -> dict[str, bool]:
    secret = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="assay-probe-") as folder, _Listening() as port, _Listening(abstract=True) as name:
        Path(folder).chmod(0o777)
        file = Path(folder) / "secret"
        file.write_text(secret)
        given = {
            "secret": secret,
            "file": str(file),
            "port": port,
            "abstract": name,
            "pid": os.getpid(),
            "memory": 2 * _LIMITS.memory,
            "ptrace": {"x86_64": 101}.get(platform.machine(), 117),
        }
        program = SandboxProgram(code=_SOURCE, stdin=json.dumps(given))
        worker.run(program, _LIMITS)  # what it leaves behind is for the second run to find
        found = _read(worker.run(program, _LIMITS))
        if Path(f"{file}.written").exists():
            found.add("host write")
    stubborn = worker.run(SandboxProgram(code=_STUBBORN), Limits(cpu=5.0, wall=0.1))
    return {name: name not in found for name in _NAMES} | {"ignored signals": stubborn.status is Status.TIMEOUT}


def _read(result: Result) -> set[str]:
    if result.status is not Status.OK:
        raise _NoAnswer(f"{result.status} {result.detail or result.stderr[-300:]}".strip())
    return set(json.loads(result.stdout))


class _Listening:
    """A door on the host that a program must not reach: a port of the loopback, or an abstract name."""

    def __init__(self, abstract: bool = False) -> None:
        self._socket = socket.socket(socket.AF_UNIX if abstract and sys.platform == "linux" else socket.AF_INET)
        self._address: Any = f"\0assay-{secrets.token_hex(8)}" if abstract else ("127.0.0.1", 0)

    def __enter__(self) -> Any:
        if isinstance(self._address, str) and sys.platform != "linux":
            return ""  # no other system has such names
        self._socket.bind(self._address)
        self._socket.listen()
        return self._address if isinstance(self._address, str) else self._socket.getsockname()[1]

    def __exit__(self, *_: object) -> None:
        self._socket.close()
