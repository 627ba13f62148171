"""What the guest runs first: fetches the program from its host, runs it, and says its value or why it failed.

The guest is another Python than ours, in which importing takes most of the time: this uses what its snapshot has already loaded,
and the rest only for programs that fail. It is sent to the guest as it compiled it once.
"""

from __future__ import annotations

import errno
import json
import linecache
import os
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

__all__ = ["run"]

NAME = "program.py"
_NOTES = {MemoryError: "memory", PermissionError: "blocked", BlockingIOError: "processes"}
_CODES = {errno.ENOSPC: "disk", errno.EFBIG: "disk", errno.ENOTSUP: "blocked", errno.ENOSYS: "blocked"}
_STARTS = ("fork", "system", "popen", "spawn", "posix_spawn", "exec")
_REFUSED = ("kill", "killpg", "setuid", "setgid", "chroot", "mount", "unshare", "setns", "mknod", "mkfifo")
"""Names of `os` that it lacks: for starting processes, and for what a program may not do."""
_DEEP, _SHOWN = 1000, 50


class _Note:
    """What the program says of itself. It could say anything: it can only turn an error into another, or be its value."""

    def __init__(self, call: Callable[[bytes], bytes]) -> None:
        self._call, self._encode = call, json.dumps
        self.spare: bytearray | None = bytearray(1 << 20)  # so that there is room to say that there is none

    def note(self, error: BaseException) -> None:
        self.spare = None
        if kind := _kind(error):
            self._write({"note": kind})

    def value(self, names: dict[str, Any], entry: str, arguments: list[Any]) -> None:
        if not callable(names.get(entry)):
            raise NameError(f"the program defines no function {entry!r}")
        self._write({"value": names[entry](*arguments)})

    def _write(self, message: dict[str, Any]) -> None:
        self._call(self._encode(message, allow_nan=True).encode())


def _kind(error: BaseException) -> str:
    """Which limit an error tells of; what a WebAssembly system lacks counts as refused."""
    kind = next((word for kind, word in _NOTES.items() if isinstance(error, kind)), "")
    if isinstance(error, OSError) and not kind:
        return "processes" if "processes" in str(error) else _CODES.get(error.errno or 0, "")
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "processes"
    if isinstance(error, OverflowError) and ("index-sized" in str(error) or "ssize_t" in str(error)):
        return "memory"  # more than 32 bits can count: where there are 64 it is a MemoryError
    if isinstance(error, AttributeError) and error.obj is os:
        name = error.name or ""
        return "processes" if name.startswith(_STARTS) else "blocked" if name in _REFUSED else ""
    return kind


def run(call: Callable[[bytes], bytes], folder: str) -> NoReturn:
    """Runs the program that the host has for us, and ends with it.

    Args:
        call: bytes to the host, and its answer; an empty question fetches the program.
        folder: where it works.
    """
    order: dict[str, Any] = json.loads(call(b""))
    os.chdir(folder)
    sys.argv, sys.path[0:0] = [NAME, *order["args"]], [folder]
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    say, code = _Note(call), 1
    arguments: list[Any] = json.loads(order["arguments"])
    try:
        source = order["code"].encode("utf-8", "surrogatepass").decode()
        linecache.cache[NAME] = (len(source), None, source.splitlines(True), NAME)
        exec(compile(source, NAME, "exec", dont_inherit=True), module.__dict__)
        if order["entry"]:
            say.value(module.__dict__, order["entry"], arguments)
        code = 0
    except SystemExit as stop:
        code = _code(stop)
    except BaseException as error:
        say.note(error)
        _show(error)
    _end(code)


def _show(error: BaseException) -> None:
    """The traceback as the interpreter prints it, without our own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    try:  # noqa: SIM105 -- contextlib is not loaded
        sys.stdout.flush()
    except BaseException:
        pass
    depth, below = 0, trace
    while below is not None:
        depth, below = depth + 1, below.tb_next
    try:
        import traceback

        limit = None if depth <= _DEEP else -_SHOWN  # millions of frames would take longer to print than the program ran
        traceback.print_exception(type(error), error, trace, limit, sys.stderr)
    except BaseException:
        os.write(2, f"{type(error).__name__}: {_text(error)}\n".encode("utf-8", "backslashreplace"))


def _text(error: BaseException) -> str:
    try:
        return str(error)[:1000]
    except BaseException:
        return ""


def _code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def _end(code: int) -> NoReturn:
    """What an interpreter does last, but for taking itself apart, which takes as long as all the rest."""
    try:
        import atexit

        atexit._run_exitfuncs()  # pyright: ignore
    except BaseException as error:
        _show(error)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            code = code or 120
    os._exit(code)
