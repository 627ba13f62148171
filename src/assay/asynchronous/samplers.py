"""Looks after samplers: starts them, feeds them, hears them, and replaces those that died, hang, or serve wrong weights."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from assay.asynchronous.ledger_records import Lease
from assay.asynchronous.messages import (
    Heartbeat,
    LeasedGroup,
    LoadedVersion,
    NeedsFullWeights,
    NewWeights,
    SampledGroup,
    SamplerEnd,
    SamplerFailure,
    SamplerSettings,
    Weights,
)
from assay.asynchronous.sampler_speeds import SamplerSpeeds
from assay.asynchronous.spawner import SamplerHandle, Spawner
from assay.asynchronous.weight_check import Scores, WeightCheck
from assay.asynchronous.weight_delta import DeltaEncoder
from assay.core.errors import AssayError, EngineError
from assay.core.manifest import Manifest
from assay.core.rollout import Rollout
from assay.runtime.engine.settings import ServerEngineSpec

__all__ = ["Controller", "Samplers"]

SILENCE = 20.0
"""Seconds without a sign of life after which a sampler counts as hanging."""

START = 180.0
"""The same before the first: it loads libraries and a model."""

_DEATHS = 5
"""Ends of one sampler without a group in between after which the run gives up."""

_LOOK = 0.5
"""Seconds between two looks at who is silent."""


class Controller(Protocol):
    """Who knows what is to be sampled; called from the thread that looks after the samplers."""

    def join(self, name: str) -> int:
        """A sampler begins, and what it was leased before is open again: its epoch."""
        ...

    def lease(self, name: str, version: int, most: int) -> list[LeasedGroup]:
        """The next groups for a sampler that was sent that weight version last."""
        ...

    def put(self, lease: Lease, rollouts: tuple[Rollout, ...]) -> bool:
        """A sampler hands in a group; whether it was accepted."""
        ...

    def fail(self, error: Exception) -> None:
        """No more groups come."""
        ...


@dataclass(slots=True)
class _Sampler:
    """A sampler at work.

    Attributes:
        handle: to it.
        epoch: of its ledger.
        sent: version of the weights that it was sent last; it reads messages in order.
        version: of the weights that it serves; -1 before the first.
        heard: when it last gave a sign of life, by the monotonic clock.
        leases: what it has to sample, and since when.
        slow: whether it was last found slow.
    """

    handle: SamplerHandle
    epoch: int
    sent: int = -1
    version: int = -1
    heard: float = field(default_factory=time.monotonic)
    leases: dict[int, float] = field(default_factory=dict[int, float])
    slow: bool = False

    def update(self, weights: Weights) -> None:
        """Sends it weights."""
        self.handle.send(NewWeights(weights))
        self.sent = weights.manifest.version


class Samplers:
    """Keeps ``count`` samplers at work.

    Args:
        settings: of each; the log's name gets the sampler's in front.
        spawner: starts them.
        count: how many.
        share: groups that a sampler works on at a time.
        tell: hears sentences for the run's journal, from the thread that looks after the samplers.
        silence: seconds without a sign of life after which a sampler is replaced.
        deltas: makes weights travel as what changed; None for full sets.
        wanted: asked again and again how many samplers there are to be; None for ``count`` always.
    """

    def __init__(
        self,
        settings: SamplerSettings,
        spawner: Spawner,
        count: int,
        share: int,
        tell: Callable[[str], None],
        silence: float = SILENCE,
        *,
        deltas: DeltaEncoder | None = None,
        wanted: Callable[[], int] | None = None,
    ) -> None:
        self._settings, self._spawner, self._share = settings, spawner, share
        self._tell, self._silence, self._wanted = tell, silence, wanted or (lambda: count)
        self._inbox: queue.SimpleQueue[tuple[str, int, object]] = queue.SimpleQueue()
        self._samplers: dict[str, _Sampler] = {}
        self._deaths: dict[str, int] = {}
        self._leaving, self._began = set[str](), False
        self._deltas, self._check, self._speeds = deltas, WeightCheck(), SamplerSpeeds()
        self._weights: Weights | None = None
        self._full: Weights | None = None
        self._controller: Controller | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._look_after, name="samplers", daemon=True)

    # ---- asked from other threads

    def publish(self, manifest: Manifest, controller: Controller, learned: Scores = ()) -> None:
        """New weights, under which all samplers go on; the first ones start them. ``learned`` as of `WeightCheck.expect`."""
        self._check.expect(replace(manifest, payload=None), learned)
        delta = self._deltas.encode(manifest) if self._deltas else None
        self._weights, self._controller = delta or self._spawner.share(manifest), controller
        if self._thread.ident is None:
            self._thread.start()
        self._inbox.put(("", 0, NewWeights(self._weights)))

    @property
    def weight_bytes(self) -> int:
        """That each sampler was to read of the newest publication; 0 before the first."""
        return self._weights.nbytes if self._weights else 0

    def take_proved(self) -> float:
        """As `WeightCheck.take_share`."""
        return self._check.take_share()

    def wake(self) -> None:
        """There is something to sample."""
        self._inbox.put(("", 0, Heartbeat()))

    def close(self) -> None:
        """Ends them."""
        self._closed = True
        self.wake()
        if self._thread.ident is not None:
            self._thread.join()
        for sampler in self._samplers.values():
            sampler.handle.kill()
        self._spawner.close()

    # ---- the thread

    def _look_after(self) -> None:
        assert self._controller is not None
        try:
            while not self._closed:
                self._turn(self._controller)
        except Exception as error:
            self._controller.fail(error)

    def _turn(self, controller: Controller) -> None:
        with suppress(queue.Empty):
            name, epoch, message = self._inbox.get(timeout=_LOOK)
            while True:
                self._hear(controller, name, epoch, message)
                name, epoch, message = self._inbox.get_nowait()
        self._adjust(controller)
        now = time.monotonic()
        for name, sampler in list(self._samplers.items()):
            limit = START if sampler.version < 0 else self._silence
            if now - sampler.heard > limit:
                self._replace(controller, name, sampler, f"it gave no sign of life for {limit:.0f} s")
        for name, sampler in self._samplers.items():
            if name not in self._leaving:
                self._feed(controller, name, sampler)

    def _adjust(self, controller: Controller) -> None:
        """Starts samplers that are missing, and ends those that are too many once they have handed in what they were leased."""
        wanted = [f"sampler-{i}" for i in range(max(1, self._wanted()))]
        self._leaving = self._samplers.keys() - wanted
        for name in wanted:
            if name not in self._samplers:
                if self._began:
                    self._tell(f"{name} joins")
                self._start(name, controller)
        self._began = True
        for name in sorted(self._leaving):
            if not self._samplers[name].leases:
                self._samplers.pop(name).handle.kill()
                self._tell(f"{name} leaves")

    def _hear(self, controller: Controller, name: str, epoch: int, message: object) -> None:
        if isinstance(message, NewWeights):
            for sampler in self._samplers.values():
                if sampler.sent != message.weights.manifest.version:  # one that began meanwhile has them
                    sampler.update(message.weights)
            return
        sampler = self._samplers.get(name)
        if sampler is None or sampler.epoch != epoch:
            if isinstance(message, SampledGroup):  # of one that was given up: counted, and refused
                controller.put(message.lease, message.rollouts)
            return
        sampler.heard = time.monotonic()
        match message:
            case SampledGroup(lease, rollouts):
                if (began := sampler.leases.pop(lease.number, None)) is not None:
                    self._speeds.note(name, sampler.heard - began, sampler.heard)
                if controller.put(lease, rollouts):
                    self._deaths[name] = 0
            case LoadedVersion():
                sampler.version = message.version
                if why := self._check.judge(name, message):
                    self._replace(controller, name, sampler, why)
            case NeedsFullWeights(version, why):
                if self._weights is None or version != self._weights.manifest.version:
                    pass  # newer ones are on their way
                elif self._deltas is None:  # nobody else has them
                    self._replace(controller, name, sampler, why)
                else:
                    self._tell(f"{name} is sent all weights: {why}")
                    sampler.update(self._all_weights(again=version))
            case SamplerFailure(error, stack):
                raise error if isinstance(error, AssayError) else EngineError(f"{name} failed:\n{stack}")
            case SamplerEnd(why):
                self._replace(controller, name, sampler, why)
            case _:
                pass

    def _feed(self, controller: Controller, name: str, sampler: _Sampler) -> None:
        free, now = self._share - len(sampler.leases), time.monotonic()
        if sampler.version < 0 or free <= 0:
            return
        slow = self._speeds.slow(name)
        if slow and not sampler.slow:
            self._tell(f"{name} gets few groups: they take it several times as long as they take the others")
        sampler.slow = slow
        if slow and self._speeds.rests(name, now):
            return
        for sample in controller.lease(name, sampler.sent, 1 if slow else free):
            sampler.leases[sample.lease.number] = now
            sampler.handle.send(sample)

    def _start(self, name: str, controller: Controller) -> None:
        epoch, settings = controller.join(name), replace(self._settings, log=self._settings.log.with_name(f"{name}.log"))
        if settings.servers and isinstance(settings.engine, ServerEngineSpec):
            at = int(name.rpartition("-")[2]) % len(settings.servers)
            settings = replace(settings, engine=settings.engine.at(settings.servers[at]))
        self._check.forget(name)
        self._speeds.forget(name)
        sampler = _Sampler(self._spawner.spawn(name, epoch, settings, self._post), epoch)
        self._samplers[name] = sampler
        if self._weights is not None:
            sampler.update(self._all_weights())

    def _all_weights(self, again: int = -1) -> Weights:
        """The full set of the newest weights, made when first asked for; anew for version ``again``."""
        newest = self._deltas.newest if self._deltas else None
        if newest is None:
            assert self._weights is not None
            return self._weights
        if self._full is None or self._full.manifest.version != newest.version or newest.version == again:
            self._full = self._spawner.share(newest)
        return self._full

    def _post(self, name: str, epoch: int, message: object) -> None:
        self._inbox.put((name, epoch, message))

    def _replace(self, controller: Controller, name: str, sampler: _Sampler, why: str) -> None:
        """Another in its place; what it was leased is leased again, and what it may still hand in is refused."""
        sampler.handle.kill()
        self._deaths[name] = self._deaths.get(name, 0) + 1
        self._tell(f"{name} was replaced, and {len(sampler.leases)} groups are sampled again: {why}")
        if self._deaths[name] >= _DEATHS:
            raise EngineError(f"{name} ended {_DEATHS} times and sampled nothing in between. The last time {why}")
        self._start(name, controller)
