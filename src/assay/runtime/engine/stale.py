"""Samples that are old on purpose: an engine that serves the weights of some publications ago."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import Array
from assay.core.errors import CheckpointError, ConfigError, EngineError
from assay.core.import_path import filed_as
from assay.core.manifest import Manifest, manifest_of
from assay.core.protocols import Engine, EngineInfo, Request, SwapMode
from assay.core.rollout import Completion, Ids

__all__ = ["StaleEngine", "stale_engine"]

FILE = "lagged.safetensors"


@filed_as("assay.runtime.engine.stale:Lagged")
class StaleEngine:
    """Passes everything on to an engine but new weights, which wait until ``lag`` newer ones were published (implements
    `assay.core.protocols.Engine`).

    While there are fewer, the oldest are served. So a step samples with weights of a known age, as a sampler that works beside
    its learner would, but the same ones in every run.

    Args:
        engine: who decodes.
        lag: publications between the weights served and the newest, at least 1. As many copies of the weights are kept, and one.

    Raises:
        ConfigError: ``lag`` below 1.

    >>> import asyncio
    >>> from assay.core import manifest_of
    >>> from assay.runtime import DecoderShape, StaleEngine, NativeEngine, char_tokenizer, init_model
    >>> model = init_model(DecoderShape(vocab_size=12), char_tokenizer("0123456789"), seed=0)
    >>> arrays = {name: tensor.numpy() for name, tensor in model.tensors.items()}
    >>> engine = StaleEngine(NativeEngine(model), lag=2)
    >>> async def served(version):
    ...     await engine.swap(manifest_of(version, arrays))
    ...     return engine.info().version
    >>> [asyncio.run(served(version)) for version in range(5)]
    [0, 0, 0, 1, 2]
    """

    def __init__(self, engine: Engine, lag: int) -> None:
        if lag < 1:
            raise ConfigError(f"Lagged: lag={lag}; use at least 1, or the engine alone to serve the newest weights")
        self.engine, self.lag = engine, lag
        self._published: list[Manifest] = []
        self._served: Manifest | None = None

    # ---- weights

    async def swap(self, manifest: Manifest, mode: SwapMode = SwapMode.DRAIN) -> None:
        """Queues a copy of new weights, and serves those of ``lag`` publications ago, or the oldest there are.

        Raises:
            EngineError: a manifest without all arrays, or the engine refuses the weights that are due; nothing changed.
        """
        if manifest.kind != "full" or manifest.payload is None:
            raise EngineError(
                f"weight version {manifest.version} must wait {self.lag} publications, and it is a {manifest.kind} manifest "
                f"{'without arrays' if manifest.payload is None else 'on weights that will be gone'}: publish full ones"
            )
        copies = {name: np.array(array) for name, array in manifest.payload.items()}  # the learner's arrays go on changing
        waiting = [*self._published, replace(manifest, payload=copies)][-self.lag - 1 :]
        if waiting[0] is not self._served:
            await self.engine.swap(waiting[0], mode)
        self._published, self._served = waiting, waiting[0]

    @asynccontextmanager
    async def present(self) -> AsyncGenerator[None]:
        """Inside, the newest weights are served: for evaluation. Behind it those that were.

        Raises:
            EngineError: nothing was published yet.
        """
        if self._served is None:
            raise EngineError("the engine was asked for its newest weights before any were published: swap some in first")
        newest = self._published[-1]
        if newest is self._served:
            yield
            return
        await self.engine.swap(newest)
        try:
            yield
        finally:
            await self.engine.swap(self._served)

    def save(self, folder: Path) -> None:
        """Writes the weights that wait as ``lagged.safetensors``, all but the newest: these are the learner's own.

        Raises:
            OSError: the folder cannot be written.
        """
        from safetensors.numpy import save

        tensors: dict[str, Array] = {}
        for manifest in self._published[:-1]:
            tensors |= {f"{manifest.version}/{name}": array for name, array in (manifest.payload or {}).items()}
        (folder / FILE).write_bytes(save(tensors))

    def load(self, folder: Path) -> None:
        """Restores what `save` wrote; swap in the learner's weights next.

        Raises:
            CheckpointError: the file is missing or damaged.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            tensors = load((folder / FILE).read_bytes())
        except FileNotFoundError:
            raise CheckpointError(f"{folder / FILE} is missing: the weights that wait for their turn are lost") from None
        except SafetensorError as error:
            raise CheckpointError(f"{folder / FILE} is no safetensors file: {error}") from None
        versions: dict[int, dict[str, Array]] = {}
        for key, array in tensors.items():
            version, _, name = key.partition("/")
            versions.setdefault(int(version), {})[name] = array
        self._published, self._served = [_restore_manifest(version, versions[version]) for version in sorted(versions)], None

    # ---- what the engine does

    async def generate(self, request: Request) -> Completion:
        """As the engine does; the completion's spans name the version that sampled it."""
        return await self.engine.generate(request)

    async def abort(self, ids: Sequence[str]) -> None:
        """As the engine does."""
        await self.engine.abort(ids)

    async def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """As the engine does, under the weights that it serves."""
        return await self.engine.score(rows)

    async def checksums(self) -> Mapping[str, str] | None:
        """Of the weights that the engine serves."""
        return await self.engine.checksums()

    def info(self) -> EngineInfo:
        """Of the weights that the engine serves."""
        return self.engine.info()


def stale_engine(engine: Engine, lag: int) -> Engine:
    """The engine, or one that serves the weights of ``lag`` publications before where that is not 0.

    >>> from assay.runtime import DecoderShape, NativeEngine, char_tokenizer, init_model
    >>> engine = NativeEngine(init_model(DecoderShape(vocab_size=12), char_tokenizer("0123456789"), seed=0))
    >>> stale_engine(engine, 0) is engine, type(stale_engine(engine, 1)).__name__
    (True, 'StaleEngine')
    """
    return StaleEngine(engine, lag) if lag else engine


def _restore_manifest(version: int, arrays: Mapping[str, Array]) -> Manifest:
    """A manifest of arrays that were saved; those of 16 bits are patterns of bfloat16."""
    halves = bool(arrays) and all(array.dtype == np.uint16 for array in arrays.values())
    return manifest_of(version, arrays, dtype="bfloat16" if halves else None)
