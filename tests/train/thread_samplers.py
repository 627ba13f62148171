"""Samplers as threads of the test's own process, with faults on the way there and back."""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from assay.asynchronous.messages import SamplerEnd, SamplerSettings
from assay.asynchronous.settings_pickle import pickle_settings
from assay.asynchronous.shared_weights import SharedMemoryWeights, SharedWeights
from assay.asynchronous.spawner import Post
from assay.asynchronous.worker import run_sampler
from assay.core.manifest import Manifest

Change = Callable[[str, int, object], Iterable[object]]
"""What becomes of a message: name and epoch of the sampler, the message, and what arrives in its place."""


def as_it_is(name: str, epoch: int, message: object) -> Iterable[object]:
    return (message,)


@dataclass
class ThreadSpawner:
    """Implements `assay.asynchronous.spawner.Spawner`.

    Attributes:
        back, there: what becomes of messages of samplers, and of those to them.
        spawned: name and epoch of each sampler so far.
    """

    back: Change = as_it_is
    there: Change = as_it_is
    spawned: list[tuple[str, int]] = field(default_factory=list)
    weights: SharedWeights = field(default_factory=SharedWeights)

    def spawn(self, name: str, epoch: int, settings: SamplerSettings, post: Post) -> ThreadHandle:
        self.spawned.append((name, epoch))
        return ThreadHandle(self, name, epoch, pickle_settings(settings), post)

    def share(self, manifest: Manifest) -> SharedMemoryWeights:
        return self.weights.put(manifest)

    def close(self) -> None:
        self.weights.close()


class ThreadHandle:
    def __init__(self, spawner: ThreadSpawner, name: str, epoch: int, settings: bytes, post: Post) -> None:
        self.spawner, self.name, self.epoch, self.post = spawner, name, epoch, post
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.run, args=(settings,), daemon=True)
        self.thread.start()

    def run(self, settings: bytes) -> None:
        run_sampler(settings, self.receive, self.say)
        self.post(self.name, self.epoch, SamplerEnd("its thread ended"))

    def receive(self) -> object:
        message = self.inbox.get()
        if message is None:
            raise EOFError
        return pickle.loads(message)

    def say(self, message: object) -> None:
        for changed in self.spawner.back(self.name, self.epoch, message):
            self.post(self.name, self.epoch, changed)

    def send(self, message: object) -> None:
        for changed in self.spawner.there(self.name, self.epoch, message):
            self.inbox.put(pickle.dumps(changed))

    def kill(self) -> None:
        self.inbox.put(None)
