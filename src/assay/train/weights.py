"""A stage's weights between learner and engine: publication, proof, and older weights that are served on purpose."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from assay.core.manifest import Manifest
from assay.core.protocols import Engine, Learner, ServesOldWeights, SharesStates
from assay.core.timing import span
from assay.train.proof import WeightProof

__all__ = ["ServedWeights", "WeightSubscriber"]


class WeightSubscriber(Protocol):
    """Who gets each publication of weights besides the engine."""

    def publish(self, manifest: Manifest) -> None:
        """New weights."""
        ...

    def close(self) -> None:
        """The stage ends."""
        ...


@dataclass(slots=True, kw_only=True)
class ServedWeights:
    """The policy's two halves, and what is known of the weights between them.

    Attributes:
        learner, engine: what trains, and what samples.
        proof: checks the engine's weights; None when switched off.
        proved: state of the last weight proof.
        version: of the weights published last.
        subscribers: who else gets each publication of weights; they end with the stage.
    """

    learner: Learner
    engine: Engine
    proof: WeightProof | None = None
    proved: bool = False
    version: int = 0
    subscribers: list[WeightSubscriber] = field(default_factory=list["WeightSubscriber"])

    async def publish(self) -> None:
        """Hands the learner's present weights to the engine, and proves that they arrived."""
        with span("publish"):
            manifest = await self.serve()
        with span("proof"):
            self.proved = await self.proof.check(manifest, self.engine, self.learner) if self.proof else False

    async def serve(self) -> Manifest:
        """Hands the learner's present weights to the engine."""
        manifest = self.publish_weights()
        await self.engine.swap(manifest)
        for subscriber in self.subscribers:
            subscriber.publish(manifest)
        self.version = manifest.version
        return manifest

    def publish_weights(self) -> Manifest:
        """The learner's present weights as the engine takes them."""
        info = self.engine.info()
        return self.learner.publish(info.dtype, info.digests)

    @property
    def stale(self) -> ServesOldWeights | None:
        """The engine, where it serves weights that are old on purpose."""
        return self.engine if isinstance(self.engine, ServesOldWeights) else None

    @asynccontextmanager
    async def present(self) -> AsyncGenerator[None]:
        """Inside, the engine serves the newest weights even where it lags; behind it those that are due, proved again."""
        stale = self.stale
        if stale is None:
            yield
            return
        async with stale.present():
            yield
        if self.proof:
            await self.proof.due(self.engine)

    async def calibrate(self) -> None:
        """Has the proof of weights find out what the engine can tell, before the first step."""
        if self.proof:
            async with self.present():
                await self.proof.calibrate(self.publish_weights(), self.stale.engine if self.stale else self.engine, self.learner)

    def record_states(self) -> AbstractContextManager[None]:
        """Inside, what the engine computes of what it samples is kept for the gradient pass, where both can (`Native.recall`)."""
        return self.engine.record_states() if isinstance(self.engine, SharesStates) else nullcontext()

    def save(self, folder: Path) -> None:
        """Writes the learner's files, and the weights that wait for their turn in the engine."""
        self.learner.save(folder)
        if (stale := self.stale) is not None:
            stale.save(folder)

    def load(self, folder: Path) -> None:
        """Reads what `save` wrote."""
        self.learner.load(folder)
        if (stale := self.stale) is not None:
            stale.load(folder)
