"""A Python program in this process: as the interpreter would run it, or one function's value, or turn by turn."""

from __future__ import annotations

import ast
import atexit
import errno
import json
import os
import struct
import sys
import threading
import traceback
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn

__all__ = ["NAME", "open_streams", "run"]

NAME = "program.py"
_NOTES = {MemoryError: "memory", PermissionError: "blocked", BlockingIOError: "processes"}
_DEEP, _SHOWN = 1000, 50
_DISK = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}


def run(header: dict[str, Any], blobs: list[bytes], channel: int) -> NoReturn:
    """Runs a program and ends with it.

    Args:
        header: ``mode`` is ``run``, ``call`` or ``scope``; ``args`` are its arguments; ``entry`` and ``arguments`` (as JSON)
            the call's.
        blobs: the first is its source.
        channel: where notes and values go; turns come from there.
    """
    del blobs[1:]
    sys.argv = [NAME, *header["args"]]
    sys.path.insert(0, os.getcwd())
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    if header["mode"] == "scope":
        _turns(module, channel)
    say, code = _Note(channel), 1
    arguments: list[Any] = json.loads(header["arguments"]) if header["mode"] == "call" else []
    try:
        source = blobs[0].decode()
        _remember(NAME, source)
        exec(compile(source, NAME, "exec", dont_inherit=True), module.__dict__)
        if header["mode"] == "call":
            say.value(module.__dict__, header["entry"], arguments)
        code = 0
    except SystemExit as stop:
        code = _code(stop)
    except BaseException as error:
        say.note(error)
        _show(error)
    _end(code)


class _Note:
    """What the program says of itself. It could say anything: it can only turn an error into another, or be its value."""

    def __init__(self, channel: int) -> None:
        self._channel, self._send, self._encode = channel, os.write, json.dumps

    def note(self, error: BaseException) -> None:
        kind = next((word for kind, word in _NOTES.items() if isinstance(error, kind)), "")
        if isinstance(error, OSError) and error.errno in _DISK:
            kind = "disk"
        if isinstance(error, RuntimeError) and "start new thread" in str(error):
            kind = "processes"
        if kind:
            self._write({"note": kind})

    def value(self, names: dict[str, Any], entry: str, arguments: list[Any]) -> None:
        if not callable(names.get(entry)):
            raise NameError(f"the program defines no function {entry!r}")
        self._write({"value": names[entry](*arguments)})

    def _write(self, message: dict[str, Any]) -> None:
        data = self._encode(message, allow_nan=True).encode()
        while data:
            data = data[self._send(self._channel, data) :]


def open_streams() -> None:
    """The streams of programs to come, made by the zygote once over files of the kinds that programs get: they keep in mind
    whether these can be sought, never what lies in them.
    """
    kept = [os.dup(number) for number in range(3)]
    given, (near, far) = os.memfd_create("streams"), os.pipe()
    for number, source in enumerate((given, far, far)):
        os.dup2(source, number)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    for number, source in enumerate(kept):
        os.dup2(source, number)
    for number in (*kept, given, near, far):
        os.close(number)


def _show(error: BaseException) -> None:
    """The traceback as the interpreter prints it, without our own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    with suppress(BaseException):
        sys.stdout.flush()
    depth, below = 0, trace
    while below is not None:
        depth, below = depth + 1, below.tb_next
    try:
        limit = None if depth <= _DEEP else -_SHOWN  # millions of frames would take longer to print than the program ran
        traceback.print_exception(type(error), error, trace, limit, sys.stderr)
    except BaseException:
        os.write(2, f"{type(error).__name__}\n".encode())


def _code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def _end(code: int) -> NoReturn:
    """What an interpreter does last: other threads, exit functions, buffers."""
    try:
        threading._shutdown()  # pyright: ignore
        atexit._run_exitfuncs()  # pyright: ignore
    except BaseException as error:
        _show(error)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            code = code or 120
    os._exit(code)


def _remember(name: str, source: str) -> None:
    """So that tracebacks show the program's lines."""
    import linecache

    linecache.cache[name] = (len(source), None, source.splitlines(True), name)


def _turns(module: ModuleType, channel: int) -> NoReturn:
    """Pieces of code in one namespace until the channel closes; the value of a last expression is shown, as in a notebook."""
    number = 0
    while True:
        size, turn = struct.unpack("<QQ", _exactly(channel, 16))
        source = _exactly(channel, size).decode()
        number += 1
        name, told = f"turn {number}", {"turn": turn, "error": ""}
        try:
            _remember(name, source)
            for piece, mode in _pieces(source, name):
                exec(compile(piece, name, mode, dont_inherit=True), module.__dict__)
        except SystemExit as stop:
            _end(_code(stop))
        except BaseException as error:
            _show(error)
            told["error"] = type(error).__name__
        for stream in (sys.stdout, sys.stderr):
            with suppress(BaseException):
                stream.flush()
        data = json.dumps(told).encode()
        os.write(channel, len(data).to_bytes(8, "little") + data)


def _pieces(source: str, name: str) -> list[tuple[Any, str]]:
    tree = ast.parse(source, name)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return [(tree, "exec")]
    last = tree.body.pop()
    return [(tree, "exec"), (ast.Interactive([last]), "single")]


def _exactly(channel: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = os.read(channel, size - len(data))
        if not more:
            _end(0)
        data += more
    return data
