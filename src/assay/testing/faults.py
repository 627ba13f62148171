"""Engines that serve the wrong weights, as real systems have done: a proof of weights must stop a run that meets one. And one
whose log-probabilities are not those that it sampled under: the comparison with the learner must tell.

Each wraps an engine and tampers with what a weight swap hands it. The wrapped engine takes the tampered arrays in good faith,
and its checksums are those of the arrays that it really serves.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import Array
from assay.core.errors import ConfigError
from assay.core.manifest import Manifest, manifest_of
from assay.core.protocols import Engine, EngineInfo, Request, SwapMode
from assay.core.rollout import Completion, Ids

__all__ = ["BaseWeights", "StaleModel", "StaleTensor", "WrongLogprobs", "WrongTiedHead"]

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"

Arrays = dict[str, Array]


class _Faulty:
    """An engine that passes everything on but the weights; those go through ``tamper``.

    Args:
        engine: what is wrapped.
        healthy: swaps that pass untouched before the fault sets in.
    """

    def __init__(self, engine: Engine, healthy: int = 1) -> None:
        self.engine = engine
        self.healthy = healthy
        self.swaps = 0
        self.before: Arrays = {}

    async def generate(self, request: Request) -> Completion:
        """As the wrapped engine does."""
        return await self.engine.generate(request)

    async def abort(self, ids: Sequence[str]) -> None:
        """As the wrapped engine does."""
        await self.engine.abort(ids)

    async def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """As the wrapped engine does."""
        return await self.engine.score(rows)

    async def checksums(self) -> Mapping[str, str] | None:
        """As the wrapped engine does."""
        return await self.engine.checksums()

    def info(self) -> EngineInfo:
        """As the wrapped engine does."""
        return self.engine.info()

    async def swap(self, manifest: Manifest, mode: SwapMode = SwapMode.DRAIN) -> None:
        """Hands over tampered arrays under the new version's number.

        Raises:
            ConfigError: the manifest carries no arrays to tamper with.
        """
        if manifest.payload is None:
            raise ConfigError(f"weight version {manifest.version} carries no arrays; a planted fault needs them in process")
        now = {name: np.array(array) for name, array in manifest.payload.items()}
        if self.swaps < self.healthy:
            await self.engine.swap(manifest, mode)
        else:
            await self.apply(manifest, self.tamper(now), mode)
        self.swaps += 1
        self.remember(now)

    def tamper(self, now: Arrays) -> Arrays:
        """The arrays that the wrapped engine gets."""
        return now

    async def apply(self, manifest: Manifest, arrays: Arrays, mode: SwapMode) -> None:
        """Hands the arrays over."""
        halves = all(info.dtype == "bfloat16" for info in manifest.tensors.values())
        await self.engine.swap(manifest_of(manifest.version, arrays, dtype="bfloat16" if halves else None), mode)

    def remember(self, now: Arrays) -> None:
        """Keeps what later swaps go wrong with: the arrays of the last version."""
        self.before = now


class StaleTensor(_Faulty):
    """One tensor is not updated: it stays as it was one version before.

    Args:
        engine: what is wrapped.
        name: of the tensor.
        healthy: swaps that pass untouched first; at least 1, or there is no older version.
    """

    def __init__(self, engine: Engine, name: str, healthy: int = 1) -> None:
        super().__init__(engine, _at_least_one(healthy))
        self.name = name

    def tamper(self, now: Arrays) -> Arrays:
        """All new but one; raises ConfigError when there is no such tensor."""
        if self.name not in now:
            raise ConfigError(f"no tensor {self.name!r} to keep stale; the model has {sorted(now)[:6]}, ...")
        return {**now, self.name: self.before[self.name]}


class StaleModel(_Faulty):
    """The whole model is one step behind.

    Args:
        engine: what is wrapped.
        healthy: swaps that pass untouched first; at least 1.
    """

    def __init__(self, engine: Engine, healthy: int = 1) -> None:
        super().__init__(engine, _at_least_one(healthy))

    def tamper(self, now: Arrays) -> Arrays:
        """The last version."""
        return self.before


class BaseWeights(_Faulty):
    """Updates never arrive: the weights of the first swap are served for ever.

    Args:
        engine: what is wrapped.
        healthy: swaps that pass untouched first; at least 1.
    """

    def __init__(self, engine: Engine, healthy: int = 1) -> None:
        super().__init__(engine, _at_least_one(healthy))

    def tamper(self, now: Arrays) -> Arrays:
        """The first version."""
        return self.before

    def remember(self, now: Arrays) -> None:
        """Only the first."""
        self.before = self.before or now


class WrongTiedHead(_Faulty):
    """The tie is broken: the embedding is updated, the head that shares it is not.

    An engine that takes a separate ``lm_head.weight`` for a tied model gets the old embedding there. The native engine takes
    none, so its own table of served arrays is untied instead.

    Args:
        engine: what is wrapped.
        healthy: swaps that pass untouched first; at least 1.
    """

    def __init__(self, engine: Engine, healthy: int = 1) -> None:
        super().__init__(engine, _at_least_one(healthy))

    def tamper(self, now: Arrays) -> Arrays:
        """A head of its own: the embedding of the last version; raises ConfigError when the model has no tied head."""
        if HEAD in now or EMBEDDING not in now:
            raise ConfigError("the model has no tied head that could be wrong; use StaleTensor(engine, 'lm_head.weight')")
        return {**now, HEAD: self.before[EMBEDDING]}

    async def apply(self, manifest: Manifest, arrays: Arrays, mode: SwapMode) -> None:
        """Into the served arrays where the engine shows them, else through its swap."""
        tensors: Any = getattr(getattr(self.engine, "weights", None), "tensors", None)
        if tensors is None:
            await super().apply(manifest, arrays, mode)
            return
        await self.engine.swap(manifest, mode)
        old = tensors[EMBEDDING].clone()
        old.numpy()[...] = arrays[HEAD]
        tensors[HEAD] = old
        served: Any = vars(self.engine)["served"]
        served.load({})  # where the engine multiplies with another form of its table


def _at_least_one(healthy: int) -> int:
    if healthy < 1:
        raise ConfigError(f"healthy={healthy}: the fault needs one version before it; use at least 1")
    return healthy


class WrongLogprobs(_Faulty):
    """What it says of the tokens that it samples is off, by turns up and down.

    Args:
        engine: what is wrapped.
        by: nats.
        since: weight version from which on.
    """

    def __init__(self, engine: Engine, by: float, since: int = 0) -> None:
        super().__init__(engine, healthy=sys.maxsize)
        self.by, self.since = by, since

    async def generate(self, request: Request) -> Completion:
        """The wrapped engine's tokens."""
        made = await self.engine.generate(request)
        if self.info().version < self.since:
            return made
        off = np.where(np.arange(len(made.ids)) % 2, -self.by, self.by).astype(np.float32)
        return replace(made, logp_engine=made.logp_engine + off)
