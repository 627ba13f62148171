"""Samplers as processes of this machine."""

from __future__ import annotations

import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from assay.asynchronous.messages import SamplerEnd, SamplerSettings
from assay.asynchronous.settings_pickle import pickle_settings
from assay.asynchronous.shared_weights import SharedMemoryWeights, SharedWeights
from assay.asynchronous.spawner import Post
from assay.core.manifest import Manifest

__all__ = ["ProcessSpawner", "last_lines"]

_LINES = 8


class ProcessSpawner:
    """Implements `assay.asynchronous.spawner.Spawner`. Processes end with this one, however it ends: their connection closes."""

    def __init__(self) -> None:
        self._weights = SharedWeights()

    def spawn(self, name: str, epoch: int, settings: SamplerSettings, post: Post) -> _ProcessHandle:
        """As `Spawner.spawn`."""
        data = pickle_settings(settings)
        mine, theirs = socket.socketpair()
        settings.log.parent.mkdir(parents=True, exist_ok=True)
        with theirs, settings.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", f"from assay.asynchronous.worker import main; main({theirs.fileno()})"],
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "OMP_NUM_THREADS": str(settings.threads), "OMP_WAIT_POLICY": "PASSIVE"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        handle = _ProcessHandle(name, epoch, process, Connection(mine.detach()), settings.log, post)
        handle.send_bytes(pickle.dumps(sys.path))
        handle.send_bytes(data)
        return handle

    def share(self, manifest: Manifest) -> SharedMemoryWeights:
        """As `Spawner.share`."""
        return self._weights.put(manifest)

    def close(self) -> None:
        """As `Spawner.close`."""
        self._weights.close()


class _ProcessHandle:
    """Two threads, one that sends and one that hears: a process that does not read holds nobody up."""

    def __init__(
        self, name: str, epoch: int, process: subprocess.Popen[bytes], connection: Connection, log: Path, post: Post
    ) -> None:
        self._process, self._connection, self._log = process, connection, log
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._send, name=f"{name}-{epoch}-send", daemon=True),
            threading.Thread(target=self._hear, args=(name, epoch, post), name=f"{name}-{epoch}-hear", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def send(self, message: object) -> None:
        """As `SamplerHandle.send`."""
        self.send_bytes(pickle.dumps(message, protocol=5))

    def send_bytes(self, data: bytes) -> None:
        """A message that is bytes already."""
        self._outbox.put(data)

    def kill(self) -> None:
        """As `SamplerHandle.kill`."""
        self._process.kill()
        self._process.wait()
        self._outbox.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._connection.close()

    def _send(self) -> None:
        with suppress(OSError):
            while (data := self._outbox.get()) is not None:
                self._connection.send_bytes(data)

    def _hear(self, name: str, epoch: int, post: Post) -> None:
        try:
            while True:
                post(name, epoch, pickle.loads(self._connection.recv_bytes()))
        except (EOFError, OSError):
            post(name, epoch, SamplerEnd(f"it {self._how()}{last_lines(self._log)}"))
        except Exception as error:  # bytes that are no message
            post(name, epoch, SamplerEnd(f"what it sent cannot be read: {type(error).__name__}: {error}"))

    def _how(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(5.0)
            return f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return "closed its connection"


def last_lines(log: Path) -> str:
    """The last lines of what a sampler printed, to stand behind how it ended."""
    with suppress(OSError):
        found = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES:]
        return "; it printed last:\n" + "\n".join(found) if found else ""
    return ""
