"""What a sampler process does with weights that arrive: full sets, or what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.asynchronous.messages import LoadedVersion, NeedsFullWeights, Weights
from assay.asynchronous.weight_delta import WeightDelta
from assay.core.errors import EngineError
from assay.core.manifest import Manifest
from assay.core.protocols import SwapMode

if TYPE_CHECKING:
    from assay.core.protocols import Engine
    from assay.core.rollout import Ids

__all__ = ["WeightLoader"]


class WeightLoader:
    """Hands weights to an engine, and tells what it serves then.

    Args:
        engine: that samples.
        keep: remember the arrays, for what changes in them later.
        probes: rows that the engine is to score after each update; none where its checksums tell of all tensors.

    Attributes:
        whole: false from a delta that could not be applied until the full set comes.
    """

    def __init__(self, engine: Engine, keep: bool = False, probes: Sequence[Ids] = ()) -> None:
        self._engine, self._keep, self._probes = engine, keep, probes
        self._held: Manifest | None = None
        self.whole = True

    async def load(self, weights: Weights) -> LoadedVersion | NeedsFullWeights:
        """What to answer.

        Raises:
            EngineError: the engine does not take them.
        """
        from assay.runtime.engine.sampling import digests_of_arrays

        if isinstance(weights, WeightDelta):
            version = weights.manifest.version
            if self._held is None:
                return self._refuse(version, f"version {version} came as what changed, and nothing was there")
            try:
                manifest = weights.apply(self._held, digests_of_arrays)
            except EngineError as error:
                return self._refuse(version, str(error))
        else:
            arrays = weights.arrays()
            if arrays is None:
                return self._refuse(weights.manifest.version, f"the arrays of version {weights.manifest.version} are gone")
            manifest = replace(weights.manifest, payload=arrays)
        self._held, self.whole = manifest if self._keep else None, True
        return await self._serve(manifest)

    def _refuse(self, version: int, why: str) -> NeedsFullWeights:
        self.whole = False
        return NeedsFullWeights(version, why)

    async def _serve(self, manifest: Manifest) -> LoadedVersion:
        from assay.runtime.engine.sampling import as_served

        made = as_served(manifest, self._engine.info())
        await self._engine.swap(made, SwapMode.KEEP)
        told = await self._engine.checksums()
        if told is not None and made is not manifest:  # digested anew: said in the words of the publication
            told = {
                n: manifest.tensors[n].digest if found == made.tensors[n].digest else found
                for n, found in told.items()
                if n in made.tensors
            }
        scores = await self._engine.score(list(self._probes)) if self._probes else ()
        return LoadedVersion(
            manifest.version, told, tuple(tuple(float(x) for x in row) for row in scores), self._engine.info().dtype
        )
