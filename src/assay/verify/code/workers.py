"""The sandboxes of this process: one for each way of containing programs, shared by all verifiers, started when first asked."""

from __future__ import annotations

import atexit
import os
import threading

from assay.core.errors import ConfigError, SandboxError
from assay.sandbox.sandbox import Sandbox
from assay.sandbox.toolchain import Language

__all__ = ["close_sandboxes", "sandbox_of"]


class _Sandboxes:
    """What one process has; a forked process begins with none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.known: dict[tuple[str, int, bool, Language | None, tuple[str, ...]], Sandbox] = {}

    def close(self) -> None:
        with self.lock:
            closing, self.known = self.known, {}
        for sandbox in closing.values():
            sandbox.close()


_mine = _Sandboxes()
os.register_at_fork(after_in_child=lambda: _mine.__init__())  # the parent's workers are its own; its lock may be held


def sandbox_of(
    backend: str = "auto",
    workers: int = 2,
    *,
    allow_unsafe: bool = False,
    language: Language | None = None,
    reads: tuple[str, ...] = (),
) -> Sandbox:
    """The sandbox of that kind of this process; any thread may use it.

    It is made when first asked for, and closed with the process or by `close_sandboxes`. A process that is forked gets its own.

    Args:
        backend: as `assay.sandbox.Sandbox` takes it.
        workers: how many programs run at once.
        allow_unsafe: accept a level that contains nothing.
        language: what programs are written in, besides Python.
        reads: host paths that programs may read besides Python's own and the language's.

    Raises:
        ConfigError: nothing here contains programs, with the probe's text; or not those of that language.
        ToolchainError: the language's compiler or interpreter is not installed.

    >>> sandbox_of(workers=1) is sandbox_of(workers=1)
    True
    """
    opened = language if language is not None and language.run else None  # Python needs nothing more to be seen
    key = (backend, workers, allow_unsafe, opened, reads)
    with _mine.lock:
        if key not in _mine.known:
            try:
                more = () if opened is None else (opened,)
                _mine.known[key] = Sandbox(backend, workers=workers, languages=more, allow_unsafe=allow_unsafe, reads=reads)
            except SandboxError as error:
                raise ConfigError(
                    f"a verifier of programs cannot run here: {error}\nIf you accept programs that nothing contains, give the "
                    "verifier allow_unsafe=True; every score is then tagged"
                ) from error
        return _mine.known[key]


def close_sandboxes() -> None:
    """Ends this process's sandboxes and what they run; the next program starts another."""
    _mine.close()


atexit.register(close_sandboxes)
