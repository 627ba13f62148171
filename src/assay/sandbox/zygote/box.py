"""``python -I -S .../zygote/box.py`` as process 1 of a container that another tool made: runs one program, then ends.

The order comes over standard input: its length, and by `marshal` a table of ``limits``, ``folder``, ``user``, ``veil`` and
``sizes``, then the program as `assay.sandbox.channels` writes it, and its input. What comes back over standard output are frames,
each of a letter, a length and data: ``o``, ``e``, ``v`` for what the program writes to its output, its errors and its channel,
and last ``x`` for how it ended, as JSON. The program holds neither of the two; it is another process, which can neither read this
one nor signal it. Standard library and siblings only, never assay.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false
import ctypes
import fcntl
import json
import marshal
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

_above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _above)
from zygote import child, landlock, python, seccomp  # noqa: E402  # pyright: ignore
from zygote.system import MACHINE, drop_bounding, mount, prctl  # noqa: E402  # pyright: ignore
from zygote.watch import LOOK, look  # noqa: E402  # pyright: ignore

sys.path.remove(_above)

__all__ = ["main"]

_PR_SET_DUMPABLE = 4
_SETUP = 30.0
_LEAST = 0.02


def main() -> None:
    """Reads the order, and says what holds a program here, or runs one."""
    size = int.from_bytes(_exactly(8), "little")
    order: dict[str, Any] = marshal.loads(_exactly(size))
    if os.getpid() != 1:
        return _say(b"x", {"infra": "the container's process 1 is another's, so that what a program leaves behind would stay"})
    if MACHINE not in seccomp.ARCHITECTURES:
        return _say(b"x", {"infra": f"there is no table of system calls for {MACHINE}"})
    if "limits" not in order:
        return _say(b"x", {"landlock": landlock.abi(), "machine": MACHINE, "uid": os.getuid()})
    try:
        _say(b"x", _Run(order, [_exactly(n) for n in order["sizes"]]).until_end())
    except Exception as error:
        _say(b"x", {"infra": f"{type(error).__name__}: {error}"})


class _Run:
    """One program, from outside of it."""

    def __init__(self, order: dict[str, Any], blobs: list[bytes]) -> None:
        self._limits, self._folder = order["limits"], order["folder"]
        self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        _wipe()
        prctl(_PR_SET_DUMPABLE, 0)  # its memory and descriptors are not for its child
        drop_bounding()
        python.open_streams()
        os.environ.clear()
        os.environ.update(child.environment(order["folder"]))
        if order["veil"]:
            for path in ("/proc", "/sys"):
                mount("tmpfs", path, "tmpfs", 1, "mode=555,size=4k")  # read-only
        payload, stdin = (_file(data) for data in blobs)
        pipes = [os.pipe() for _ in range(4)]
        self._told, *streams = (near for near, _ in pipes)
        self._streams = dict(zip(streams, (b"o", b"e", b"v"), strict=True))
        self._sizes = dict.fromkeys(streams, 0)
        ready, *far = (end for _, end in pipes)
        filter = seccomp.program(forks=self._limits["processes"] > 1, private=True)
        self._pid = os.fork()
        if self._pid == 0:
            out, err, channel = far
            fds = [payload, stdin, out, err, channel]
            user = order["user"]
            child.run(child.Job("strong", self._limits, fds, ready, None, order["folder"], user, 1, order["counted"], filter))
        for fd in (payload, stdin, ready, *far):
            os.close(fd)
        for fd in (self._told, *streams):
            os.set_blocking(fd, False)
        self._began = time.monotonic()
        self._wall = self._began + _SETUP
        self._due = self._began + LOOK
        self._heard, self._reason = b"", ""
        self._status: int | None = None

    def until_end(self) -> dict[str, Any]:
        """How it ended."""
        near, far = os.pipe()
        for fd in (near, far):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(far, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        asked = select.poll()
        for fd in (near, self._told, *self._streams):
            asked.register(fd, select.POLLIN)
        while not self._ended() and not self._reason:
            for fd, _ in asked.poll(self._pause() * 1000):
                if fd == near:
                    os.read(near, 512)
                elif not self._take(fd):
                    asked.unregister(fd)
            self._check_limits()
        spent = time.monotonic() - self._began
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # all but process 1
        while True:
            try:
                pid, status = os.wait()
            except ChildProcessError:
                break
            if pid == self._pid:
                self._status = status
        for fd in (self._told, *self._streams):
            while not self._full(fd) and self._take(fd, last=True):
                pass
        return self._report(spent)

    def _ended(self) -> bool:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._pid:
                    self._status = found[1]
        return self._status is not None

    def _take(self, fd: int, last: bool = False) -> bool:
        """Passes on what is there; False at its end, or with ``last`` when nothing more is there."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return not last
        if fd == self._told:
            if data and not self._heard:
                self._began = time.monotonic()
                self._wall = self._began + self._limits["wall"]
            self._heard += data
        elif data and not self._full(fd):
            self._sizes[fd] += len(data)
            _frame(self._streams[fd], data[: len(data) - max(0, self._sizes[fd] - self._limits["output"])])
            if self._full(fd):
                self._reason = self._reason or "output"
        return bool(data)

    def _full(self, fd: int) -> bool:
        return self._sizes.get(fd, 0) > self._limits["output"]

    def _check_limits(self) -> None:
        if time.monotonic() >= self._wall:
            self._reason = self._reason or "timeout"
        elif self._used_seconds() >= self._limits["cpu"]:
            self._reason = self._reason or "cpu"
        elif time.monotonic() >= self._due:
            self._reason = self._reason or look(self._proc, self._pid, self._folder, self._limits)
            self._due = time.monotonic() + LOOK

    def _pause(self) -> float:
        left = (self._limits["cpu"] - self._used_seconds()) / (os.cpu_count() or 1)
        return max(0.0, min(LOOK, self._wall - time.monotonic(), max(left, _LEAST)))

    def _used_seconds(self) -> float:
        try:
            return time.clock_gettime(~self._pid << 3 | 2)
        except OSError:  # it has just ended, or this kernel tells nobody another's time: its own limit holds, and the end says
            return 0.0

    def _report(self, spent: float) -> dict[str, Any]:
        if self._heard != b"R":
            why = self._heard.partition(b"E")[2].decode("utf-8", "replace") or "it ended before the program began"
            return {"infra": why}
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "status": self._status,
            "reason": self._reason,
            "seconds": spent,
            "cpu": usage.ru_utime + usage.ru_stime,
            "memory": usage.ru_maxrss * 1024,
        }


def _wipe() -> None:
    """Zeros where the environment lies that this process was started with: a tool may have put words there."""
    with open("/proc/self/environ", "rb") as file:
        words = file.read()
    if not words.strip(b"\0"):
        return
    with open("/proc/self/maps") as file:
        (low, high), *_ = ([int(x, 16) for x in line.split()[0].split("-")] for line in file if "[stack]" in line)
    stack = ctypes.string_at(low, high - low)
    ctypes.memset(low + stack.rindex(words), 0, len(words))


def _file(data: bytes) -> int:
    """A read-only file that is nowhere."""
    fd = os.memfd_create("assay", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    with suppress(OSError):  # a kernel without seals: the program changes its own copy and nobody else's
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd


def _exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            raise SystemExit(1)
        data += more
    return data


def _frame(kind: bytes, data: bytes) -> None:
    rest = kind + len(data).to_bytes(8, "little") + data
    while rest:
        rest = rest[os.write(1, rest) :]


def _say(kind: bytes, what: dict[str, Any]) -> None:
    _frame(kind, json.dumps(what).encode())


if __name__ == "__main__":
    main()
