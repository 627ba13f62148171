"""Rollouts that come about while the learner works: the ledger, the samplers, and the thread that looks after both."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from assay.asynchronous.accepted_log import AcceptedLog, Taken
from assay.asynchronous.ledger import Ack, Ledger
from assay.asynchronous.messages import Beat, Failed, Sample, Sampled, SamplerSettings, Serving, Weights
from assay.asynchronous.processes import Ended, Sampler, Spawner
from assay.asynchronous.shared_weights import SharedWeights
from assay.core.errors import EngineError
from assay.core.manifest import Manifest
from assay.core.rollout import Rollout
from assay.core.task import Context
from assay.core.wire import rollout_from_wire, rollout_to_wire

__all__ = ["Order", "RolloutQueue"]

SILENCE = 20.0
"""Seconds without a sign of life after which a sampler counts as hanging."""
START = 120.0
"""The same before the first: it loads libraries and a model."""
_LOOK = 0.5
_DEATHS = 5
"""Ends of one sampler without a group in between after which the run gives up."""


@dataclass(frozen=True, slots=True)
class Order:
    """A group that is wanted: a context, and how many rollouts of it."""

    context: Context
    n: int


class RolloutQueue:
    """Has admitted groups sampled elsewhere, and gives them out for steps, each once.

    Args:
        settings: of each sampler; its log's name gets the sampler's in front.
        spawner: starts them.
        samplers: how many.
        ledger: which groups are wanted.
        log: of what was accepted and taken.
        share: groups that a sampler works on at a time.
        silence: seconds without a sign of life after which a sampler is replaced.
        tell: hears sentences for the run's journal, from the thread that looks after the samplers.
    """

    def __init__(
        self,
        settings: SamplerSettings,
        spawner: Spawner,
        samplers: int,
        ledger: Ledger,
        log: AcceptedLog,
        share: int,
        silence: float = SILENCE,
        tell: Callable[[str], None] = print,
    ) -> None:
        self._settings, self._spawner, self._count = settings, spawner, samplers
        self._ledger, self._log, self._share, self._silence, self._tell = ledger, log, share, silence, tell
        self._changed = threading.Condition()
        self._inbox: queue.SimpleQueue[tuple[str, int, object]] = queue.SimpleQueue()
        self._orders: dict[str, Order] = {}
        self._found: dict[str, tuple[Rollout, ...]] = {}
        self._publications: dict[int, int] = {}
        self._version = -1
        self._weights = SharedWeights()
        self._samplers: dict[str, Sampler] = {}
        self._deaths: dict[str, int] = {}
        self._error: Exception | None = None
        self._closed = False
        self._saved = 0
        self._thread = threading.Thread(target=self._look_after, name="rollout-queue", daemon=True)

    # ---- what the driver asks

    def missing(self, groups: int) -> int:
        """Groups that may be admitted before a step that takes ``groups``."""
        with self._changed:
            return (self._ledger.eta + 1) * groups - self._ledger.waiting

    def admit(self, orders: Sequence[Order]) -> None:
        """Groups to sample from now on; those that an earlier process accepted are there at once."""
        with self._changed:
            self._ledger.admit([o.context.key for o in orders], self._version)
            for order in orders:
                self._orders[order.context.key] = order
                self._restore(order.context.key)
        self._wake()

    def _restore(self, key: str) -> None:
        found = self._log.accepted(key)
        if found is not None:
            oldest, self._found[key] = found
            self._ledger.restore(key, oldest)

    def publish(self, manifest: Manifest) -> None:
        """New weights, under which all samplers go on."""
        with self._changed:
            self._version += 1
            self._publications[manifest.version] = self._version
            weights = self._weights.put(manifest)
            for sampler in self._samplers.values():
                sampler.handle.send(weights)
            if self._thread.ident is None:
                self._thread.start()
        self._wake()

    async def take(self, n: int) -> Taken:
        """The ``n`` groups that the next step learns from, in order of admission; without keys, what was thrown away instead, for
        which others are to be admitted.

        Raises:
            EngineError: a sampler ended again and again; or whatever error a sampler ended with that another would meet too.
        """
        taken = self._log.taken(self._version)
        if taken is not None:
            with self._changed:
                self._ledger.take_again(taken.keys, taken.dropped, self._version)
            return taken
        taken = await asyncio.to_thread(self._wait, n)
        self._log.write_taken(self._version, taken)
        return taken

    def _wait(self, n: int) -> Taken:
        with self._changed:
            while True:
                if self._error is not None:
                    raise self._error
                if dropped := self._ledger.drop_old(self._version):
                    return Taken((), tuple(dropped))
                if (keys := self._ledger.take(n, self._version)) is not None:
                    place = {key: at for at, key in enumerate(self._ledger.entries)}
                    return Taken(tuple(sorted(keys, key=place.__getitem__)))
                self._changed.wait(_LOOK)

    def rollouts(self, key: str) -> tuple[Rollout, ...]:
        """Of a group that was taken; given once."""
        with self._changed:
            return self._found.pop(key)

    def _oldest(self, rollouts: Sequence[Rollout]) -> int:
        """Publication whose weights sampled the oldest token."""
        versions = [s.version for r in rollouts for c in r.calls for s in c.completion.spans]
        return min([self._publications[v] for v in versions], default=self._version)

    # ---- the thread

    def _wake(self) -> None:
        self._inbox.put(("", 0, Beat()))

    def _look_after(self) -> None:
        try:
            with self._changed:
                for i in range(self._count):
                    self._start(f"sampler-{i}")
            while not self._closed:
                self._turn()
        except Exception as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _turn(self) -> None:
        with suppress(queue.Empty):
            name, epoch, message = self._inbox.get(timeout=_LOOK)
            while True:
                with self._changed:
                    sampler = self._samplers.get(name)
                    if sampler is not None and sampler.epoch == epoch:
                        self._hear(name, sampler, message)
                    elif isinstance(message, Sampled):  # from one that was given up
                        self._ledger.put(message.lease, self._oldest(message.rollouts))
                name, epoch, message = self._inbox.get_nowait()
        now = time.monotonic()
        with self._changed:
            for name, sampler in list(self._samplers.items()):
                limit = START if sampler.version < 0 else self._silence
                if now - sampler.heard > limit:
                    self._replace(name, sampler, f"no sign of life for {limit:.0f} s")
            self._hand_out()

    def _hear(self, name: str, sampler: Sampler, message: object) -> None:
        sampler.heard = time.monotonic()
        match message:
            case Sampled(lease, rollouts):
                sampler.leases.pop(lease.number, None)
                oldest = self._oldest(rollouts)
                if self._ledger.put(lease, oldest) is Ack.ACCEPTED:
                    self._deaths[name] = 0
                    self._found[lease.key] = rollouts
                    self._log.write_accepted(lease.key, oldest, rollouts)
                    self._changed.notify_all()
            case Serving(version, checksums):
                sampler.version = self._publications[version]
                if wrong := _differing(self._weights.newest, version, checksums):
                    self._replace(name, sampler, f"it serves other weights than version {version} has: {', '.join(wrong[:3])}")
            case Failed(error, told):
                raise error if error is not None else EngineError(f"{name} failed:\n{told}")
            case Ended(why):
                self._replace(name, sampler, why)
            case _:
                pass

    def _hand_out(self) -> None:
        for name, sampler in self._samplers.items():
            free = self._share - len(sampler.leases)
            if sampler.version < 0 or free <= 0:
                continue
            for lease in self._ledger.lease(name, sampler.version, free):
                sampler.leases[lease.number] = lease
                order = self._orders[lease.key]
                sampler.handle.send(Sample(lease, order.context, order.n))

    def _start(self, name: str) -> None:
        from dataclasses import replace

        epoch, log = self._ledger.join(name), self._settings.log
        settings = replace(self._settings, log=log.with_name(f"{name}.log"))
        sampler = Sampler(self._spawner.spawn(name, epoch, settings, self._post), epoch)
        self._samplers[name] = sampler
        if self._weights.newest is not None:
            sampler.handle.send(self._weights.newest)

    def _post(self, name: str, epoch: int, message: object) -> None:
        self._inbox.put((name, epoch, message))

    def _replace(self, name: str, sampler: Sampler, why: str) -> None:
        """Another in its place; what it was leased is leased again, and what it may still hand in is refused."""
        sampler.handle.kill()
        self._deaths[name] = self._deaths.get(name, 0) + 1
        self._tell(f"{name} was replaced, and {len(sampler.leases)} groups are sampled again: {why}")
        if self._deaths[name] >= _DEATHS:
            raise EngineError(f"{name} ended {_DEATHS} times and sampled nothing in between. The last time {why}")
        self._start(name)

    # ---- checkpoints

    def state_dict(self, step: int) -> dict[str, Any]:
        """JSON-able; the log goes on in a new file."""
        with self._changed:
            self._log.begin(step)
            return {
                "ledger": self._ledger.dump(),
                "version": self._version,
                "publications": sorted(self._publications.items())[-4 * (self._ledger.eta + 2) :],
                "found": {key: [rollout_to_wire(r) for r in rollouts] for key, rollouts in self._found.items()},
            }

    def load_state_dict(self, state: Mapping[str, Any], orders: Sequence[Order]) -> None:
        """Restores `state_dict`, before anything is published.

        Args:
            state: of the checkpoint.
            orders: what it waits for.
        """
        with self._changed:
            self._ledger.load(state["ledger"])
            self._version = int(state["version"]) - 1  # which is published again
            self._publications = {int(version): int(at) for version, at in state["publications"]}
            self._found = {key: tuple(rollout_from_wire(w) for w in wires) for key, wires in state["found"].items()}
            for order in orders:
                self._orders[order.context.key] = order
                self._restore(order.context.key)

    def commit(self, step: int) -> None:
        """A checkpoint is whole: what its steps took is forgotten, and files of the log that neither it nor the one before needs."""
        with self._changed:
            for key in self._ledger.commit():
                self._orders.pop(key, None)
        self._log.remove_before(self._saved)
        self._saved = step

    def counts(self) -> dict[str, int]:
        """How often groups were dropped, leased again, or handed in twice or too late."""
        with self._changed:
            return dict(self._ledger.counts)

    def close(self) -> None:
        """Ends the samplers."""
        self._closed = True
        self._wake()
        if self._thread.is_alive():
            self._thread.join()
        for sampler in self._samplers.values():
            sampler.handle.kill()
        self._weights.close()
        self._log.close()


def _differing(weights: Weights | None, version: int, checksums: Mapping[str, str] | None) -> list[str]:
    """Tensors of which a sampler serves other numbers than were published."""
    if weights is None or checksums is None or weights.manifest.version != version:
        return []
    return [name for name, info in weights.manifest.tensors.items() if checksums.get(name, info.digest) != info.digest]
