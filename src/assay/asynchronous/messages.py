"""What a controller and its sampler processes say to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.asynchronous.ledger import Lease
from assay.core.manifest import Manifest
from assay.core.protocols import SamplerSpec, TaskSource
from assay.core.rollout import Rollout, Sampling
from assay.core.task import Context

if TYPE_CHECKING:
    from assay.runtime.engine.settings import EngineSpec

__all__ = ["Beat", "Failed", "Sample", "Sampled", "SamplerSettings", "Serving", "Weights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerSettings:
    """What a sampler process is built from.

    Attributes:
        model: folder of the model; the weights that it samples with come later.
        engine: what samples.
        sampler: contexts to rollouts.
        tasks, sampling, seed, max_turns, deadline: as of `assay.core.protocols.SamplerParts`.
        threads: of torch.
        log: file for what the process prints.
    """

    model: Path
    engine: EngineSpec
    sampler: SamplerSpec
    tasks: TaskSource
    sampling: Sampling
    seed: int
    max_turns: int
    deadline: float
    threads: int
    log: Path


@dataclass(frozen=True, slots=True)
class Weights:
    """New weights, which lie in shared memory.

    Attributes:
        manifest: their version and digests, without arrays.
        memory: name of the shared memory.
        layout: dtype, shape and first byte of each array.
    """

    manifest: Manifest
    memory: str
    layout: Mapping[str, tuple[str, tuple[int, ...], int]]


@dataclass(frozen=True, slots=True)
class Sample:
    """``n`` rollouts of a context are wanted."""

    lease: Lease
    context: Context
    n: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """The rollouts of a lease."""

    lease: Lease
    rollouts: tuple[Rollout, ...]


@dataclass(frozen=True, slots=True)
class Serving:
    """Weights were loaded.

    Attributes:
        version: of the weights.
        checksums: digests of what the engine serves, as of `assay.core.protocols.Engine.checksums`.
    """

    version: int
    checksums: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The process cannot go on.

    Attributes:
        error: an error that the run is to end with, because another process would meet it again; None for any other.
        told: the stack.
    """

    error: Exception | None
    told: str
