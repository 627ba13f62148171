"""What this process has compiled of late: equal answers are compiled once, as the samples of a group often are."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

from assay.sandbox.compiled_program import CompiledProgram
from assay.sandbox.sandbox import Sandbox
from assay.sandbox.toolchain import Language

__all__ = ["build"]

_MOST = 64 << 20
"""Bytes of compiled programs and their sources that are kept."""

_Key = tuple[str, Language, str]


class _Builds:
    """The latest, up to so many bytes; a forked process begins with none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.size = 0
        self.known: OrderedDict[_Key, CompiledProgram] = OrderedDict()

    def find(self, key: _Key) -> CompiledProgram | None:
        with self.lock:
            if key in self.known:
                self.known.move_to_end(key)
            return self.known.get(key)

    def add(self, key: _Key, built: CompiledProgram) -> None:
        with self.lock:
            if key in self.known:  # another thread was faster
                return
            self.known[key] = built
            self.size += _weight(key, built)
            while self.size > _MOST:
                self.size -= _weight(*self.known.popitem(last=False))


_mine = _Builds()
os.register_at_fork(after_in_child=lambda: _mine.__init__())


def build(sandbox: Sandbox, language: Language, source: str) -> CompiledProgram:
    """The program, compiled now or lately by the same backend.

    What failed by a limit or by the sandbox is not kept: a busy machine may have been the reason.

    Args:
        sandbox: one that has the language.
        language: what it is written in.
        source: the program.
    """
    key = (sandbox.backend.name, language, source)
    found = _mine.find(key)
    if found is not None:
        return found
    built = sandbox.compile(language, source)
    if built.result is not None and built.result.detail in ("", "error"):
        _mine.add(key, built)
    return built


def _weight(key: _Key, built: CompiledProgram) -> int:
    said = 0 if built.result is None else len(built.result.stderr) + len(built.result.stdout)
    return len(key[2]) + said + sum(map(len, built.files.values()))
