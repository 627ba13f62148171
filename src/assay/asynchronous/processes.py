"""Sampler processes behind handles: started, fed, heard, and ended."""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from assay.asynchronous.ledger import Lease
from assay.asynchronous.messages import SamplerSettings
from assay.asynchronous.worker import run_sampler

__all__ = ["Ended", "Process", "SamplerHandle", "Spawner"]

Post = Callable[[str, int, object], None]
"""Where messages go: name and epoch of the sampler, and what it says."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A sampler is gone.

    Attributes:
        why: how it ended, with the last lines that it printed.
    """

    why: str


class SamplerHandle(Protocol):
    """A sampler that runs somewhere."""

    def send(self, message: object) -> None:
        """Never blocks for long and never raises: that a sampler is gone is heard as `Ended`."""
        ...

    def kill(self) -> None:
        """Ends it at once, wherever it hangs."""
        ...


class Spawner(Protocol):
    """Starts samplers."""

    def spawn(self, name: str, epoch: int, settings: SamplerSettings, post: Post) -> SamplerHandle:
        """A sampler; what it says goes to ``post``, from any thread, and last an `Ended`."""
        ...


class Process:
    """Samplers are processes of this machine (implements `Spawner`)."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")

    def spawn(self, name: str, epoch: int, settings: SamplerSettings, post: Post) -> SamplerHandle:
        """As `Spawner.spawn`."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=run_sampler, args=(theirs, settings), name=name, daemon=True)
        process.start()
        theirs.close()
        return _ProcessHandle(name, epoch, process, ours, settings.log, post)


class _ProcessHandle:
    """Two threads, one that sends and one that hears: a process that does not read holds nobody up."""

    def __init__(self, name: str, epoch: int, process: BaseProcess, connection: Connection, log: Path, post: Post) -> None:
        self._process, self._connection, self._log = process, connection, log
        self._outbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        for work in (self._send, lambda: self._hear(name, epoch, post)):
            threading.Thread(target=work, name=f"{name}-{epoch}", daemon=True).start()

    def send(self, message: object) -> None:
        """As `SamplerHandle.send`."""
        self._outbox.put(message)

    def kill(self) -> None:
        """As `SamplerHandle.kill`."""
        self._outbox.put(None)
        self._process.kill()
        self._process.join()

    def _send(self) -> None:
        with suppress(OSError):
            while (message := self._outbox.get()) is not None:
                self._connection.send(message)

    def _hear(self, name: str, epoch: int, post: Post) -> None:
        try:
            while True:
                post(name, epoch, self._connection.recv())
        except (EOFError, OSError):
            self._process.join(5.0)
            post(name, epoch, Ended(f"it ended with exit code {self._process.exitcode}{_last_lines(self._log)}"))
        except Exception as error:  # bytes that are no message
            post(name, epoch, Ended(f"what it sent cannot be read: {type(error).__name__}: {error}"))


def _last_lines(log: Path, lines: int = 8) -> str:
    with suppress(OSError):
        found = log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
        return "; it printed last:\n" + "\n".join(found) if found else ""
    return ""


@dataclass(slots=True)
class Sampler:
    """What the controller knows of a sampler.

    Attributes:
        handle: to it.
        epoch: of its ledger.
        version: publication that it serves; -1 before the first.
        heard: when it last gave a sign of life, by the monotonic clock.
        leases: what it has to sample.
    """

    handle: SamplerHandle
    epoch: int
    version: int = -1
    heard: float = field(default_factory=time.monotonic)
    leases: dict[int, Lease] = field(default_factory=dict[int, Lease])
