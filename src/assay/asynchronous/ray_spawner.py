"""Samplers as actors of a Ray cluster, on whatever machines it has."""

from __future__ import annotations

import os
import pickle
import queue
import re
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from assay.asynchronous.messages import Heartbeat, SamplerEnd, SamplerSettings
from assay.asynchronous.settings_pickle import pickle_settings
from assay.asynchronous.spawner import Post
from assay.asynchronous.worker import BEAT, run_sampler
from assay.core.columns import Array
from assay.core.errors import ConfigError, EngineError, MissingExtraError
from assay.core.manifest import Manifest

__all__ = ["RaySpawner"]


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError:
        raise MissingExtraError("ray", "ray") from None


@dataclass(frozen=True, slots=True)
class RayWeights:
    """Weights in Ray's object store; implements `assay.asynchronous.messages.Weights`.

    Attributes:
        manifest: their version and digests, without arrays.
        store: reference to the arrays by name.
        nbytes: of the arrays.
    """

    manifest: Manifest
    store: Any
    nbytes: int

    def arrays(self) -> Mapping[str, Array] | None:
        """As of `Weights.arrays`."""
        ray = _ray()
        try:
            found: Mapping[str, Array] = ray.get(self.store)
        except ray.exceptions.ObjectLostError:  # its owner has let go of it, or the machine that had it is gone
            return None
        return {name: np.array(array) for name, array in found.items()}  # those of the store cannot be written to


class RaySpawner:
    """Implements `assay.asynchronous.spawner.Spawner`.

    Uses the cluster that ``RAY_ADDRESS`` names, or the one that this process is connected to; without either it starts one of
    this machine, which ends with the run. A sampler is an actor with as many CPUs as it has threads, and a GPU where it samples
    on CUDA. Ray never restarts it: which groups are sampled again is the ledger's affair.

    Raises:
        MissingExtraError: Ray is not installed.
    """

    def __init__(self) -> None:
        self._ray = _ray()
        self._own = not self._ray.is_initialized()
        if self._own:
            _check_address(os.environ.get("RAY_ADDRESS", ""))
            self._ray.init(include_dashboard=False, log_to_driver=False, logging_level="error", namespace="assay")
        self._local = self._own and "RAY_ADDRESS" not in os.environ
        self._actor = self._ray.remote(SamplerActor)
        self._models: dict[Path, Any] = {}
        self._shared: list[Any] = []

    def spawn(self, name: str, epoch: int, settings: SamplerSettings, post: Post) -> _RayHandle:
        """As `Spawner.spawn`."""
        cpus = 0 if self._local else settings.threads
        gpus = 1 if settings.device == "cuda" else 0
        there = self._ray.cluster_resources()
        if there.get("CPU", 0) < cpus or there.get("GPU", 0) < gpus:
            raise ConfigError(
                f"a sampler asks for {cpus} CPUs and {gpus} GPUs, and the Ray cluster has {there.get('CPU', 0):g} and "
                f"{there.get('GPU', 0):g}; lower Asynchronous.threads, or add machines"
            )
        if settings.model not in self._models:
            files = {p.relative_to(settings.model).as_posix(): p.read_bytes() for p in settings.model.rglob("*") if p.is_file()}
            self._models[settings.model] = self._ray.put(files)
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_concurrency": 3, "scheduling_strategy": "SPREAD"}
        data = pickle_settings(replace(settings, model=Path()))
        actor = self._actor.options(**options).remote(self._models[settings.model], data, sys.path, settings.threads)
        return _RayHandle(self._ray, name, epoch, actor, post)

    def share(self, manifest: Manifest) -> RayWeights:
        """As `Spawner.share`."""
        if manifest.payload is None or manifest.kind != "full":
            raise EngineError(f"weight version {manifest.version} is no full set of arrays, and samplers need one")
        arrays = {name: np.ascontiguousarray(array) for name, array in manifest.payload.items()}
        store = self._ray.put(arrays)
        self._shared = [*self._shared[-2:], store]  # a sampler that is behind by more reads newer ones instead
        return RayWeights(replace(manifest, payload=None), store, sum(array.nbytes for array in arrays.values()))

    def close(self) -> None:
        """As `Spawner.close`."""
        self._shared, self._models = [], {}
        if self._own:
            self._ray.shutdown()


def _check_address(address: str) -> None:
    """Raises EngineError where nobody answers at ``HOST:PORT``; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():  # none, or a form that only Ray can read
        return
    try:
        socket.create_connection((host, int(port)), timeout=10.0).close()
    except OSError as error:
        raise EngineError(
            f"RAY_ADDRESS={address}: no Ray cluster answers there ({error}); start one with 'ray start --head', or leave the "
            "variable out to have one started on this machine"
        ) from None


class SamplerActor:
    """The sampler, in a process that Ray has started: a thread samples, calls bring and take messages.

    Args:
        files: of the model, by name.
        settings: a pickle of `SamplerSettings`.
        paths: where the run finds modules, for the user's own.
        threads: of torch.
    """

    def __init__(self, files: Mapping[str, bytes], settings: bytes, paths: Sequence[str], threads: int) -> None:
        sys.path += [path for path in paths if path not in sys.path]
        os.environ.update(OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="PASSIVE")  # before torch is loaded
        self._folder = tempfile.TemporaryDirectory(prefix="assay-sampler-")
        for name, content in files.items():
            place = Path(self._folder.name, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        made = replace(pickle.loads(settings), model=Path(self._folder.name))
        self._lock, self._early, self._next = threading.Lock(), dict[int, object](), 0
        self._incoming: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._outgoing: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(pickle.dumps(made),), daemon=True)
        self._thread.start()

    def _run(self, settings: bytes) -> None:
        status = run_sampler(settings, self._incoming.get, self._outgoing.put)
        self._outgoing.put(SamplerEnd(f"it ended with status {status}"))

    def send(self, number: int, message: object) -> None:
        """A message for the sampler; calls of an actor with several threads may come in any order."""
        with self._lock:
            self._early[number] = message
            while self._next in self._early:
                self._incoming.put(self._early.pop(self._next))
                self._next += 1

    def receive(self) -> list[object]:
        """What the sampler says next; a sign of life where it says nothing for a while."""
        try:
            found = [self._outgoing.get(timeout=BEAT)]
        except queue.Empty:
            return [Heartbeat()]
        while not self._outgoing.empty():
            found.append(self._outgoing.get())
        return found


class _RayHandle:
    """An actor, and the thread that hears it."""

    def __init__(self, ray: Any, name: str, epoch: int, actor: Any, post: Post) -> None:
        self._ray, self._actor, self._sent = ray, actor, 0
        self._thread = threading.Thread(target=self._hear, args=(name, epoch, post), name=f"{name}-{epoch}", daemon=True)
        self._thread.start()

    def send(self, message: object) -> None:
        """As `SamplerHandle.send`."""
        self._actor.send.remote(self._sent, message)
        self._sent += 1

    def kill(self) -> None:
        """As `SamplerHandle.kill`."""
        self._ray.kill(self._actor, no_restart=True)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _hear(self, name: str, epoch: int, post: Post) -> None:
        try:
            while True:
                for message in self._ray.get(self._actor.receive.remote()):
                    post(name, epoch, message)
                    if isinstance(message, SamplerEnd):
                        return
        except Exception as error:  # the actor died, or the cluster is gone
            post(name, epoch, SamplerEnd(_error_text(error)))


def _error_text(error: Exception) -> str:
    """What Ray says of an actor's end: its last line, where it has the stack of an error; else its first sentence."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines() if line.strip()]
    stack = any(line.startswith("File ") for line in lines)
    return (lines[-1] if stack else lines[0])[:400] if lines else type(error).__name__
