"""What a controller and its sampler processes say to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from assay.asynchronous.ledger_records import Lease
from assay.core.manifest import Manifest
from assay.core.protocols import SamplerSpec, TaskSource
from assay.core.rollout import Ids, Rollout, Sampling
from assay.core.task import Context

if TYPE_CHECKING:
    from assay.core.columns import Array
    from assay.runtime.engine.settings import ModelEngineSpec

__all__ = [
    "Heartbeat",
    "SamplerEnd",
    "SamplerFailure",
    "NewWeights",
    "GroupRequest",
    "NeedsFullWeights",
    "LeasedGroup",
    "SampledGroup",
    "SamplerSettings",
    "LoadedVersion",
    "Weights",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerSettings:
    """What a sampler process is built from.

    Attributes:
        model: folder of the model; the weights that it samples with come later.
        engine: what samples.
        sampler: contexts to rollouts.
        tasks, seed, deadline, pictures: as of `assay.core.protocols.SamplerParts`.
        device: ``cpu``, ``cuda``, or ``auto`` for CUDA where there is one.
        threads: of torch.
        log: file for what the process prints.
        deltas: weights may come as what changed, so the process keeps those that it has.
        probes: rows of ids that the engine scores after each update; none where its checksums tell of every tensor.
        servers: addresses of servers, one for each sampler; none where samplers serve the model themselves.
    """

    model: Path
    engine: ModelEngineSpec
    sampler: SamplerSpec
    tasks: TaskSource
    seed: int
    deadline: float
    device: str
    threads: int
    log: Path
    pictures: Literal["refuse", "placeholder"] = "refuse"
    deltas: bool = False
    probes: tuple[Ids, ...] = ()
    servers: tuple[str, ...] = ()


class Weights(Protocol):
    """New weights, which lie where a sampler can read them."""

    @property
    def manifest(self) -> Manifest:
        """Their version and digests, without arrays."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes that a sampler reads."""
        ...

    def arrays(self) -> Mapping[str, Array] | None:
        """The arrays by name; None where newer ones have replaced them."""
        ...


@dataclass(frozen=True, slots=True)
class NewWeights:
    """Samplers are to go on with these weights."""

    weights: Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRequest:
    """A group that is wanted: a context, how many rollouts of it, and how they are sampled."""

    context: Context
    n: int
    sampling: Sampling
    max_turns: int


@dataclass(frozen=True, slots=True)
class LeasedGroup:
    """A group is leased to the sampler."""

    lease: Lease
    request: GroupRequest


@dataclass(frozen=True, slots=True)
class SampledGroup:
    """The rollouts of a lease."""

    lease: Lease
    rollouts: tuple[Rollout, ...]


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """Weights were loaded.

    Attributes:
        version: of the weights.
        checksums: digests of what the engine serves, as of `assay.core.protocols.Engine.checksums`.
        scores: log-probabilities of `SamplerSettings.probes` under these weights, through the engine's own path.
        dtype: that the engine serves.
    """

    version: int
    checksums: Mapping[str, str] | None
    scores: tuple[tuple[float, ...], ...] = ()
    dtype: str = "float32"


@dataclass(frozen=True, slots=True)
class NeedsFullWeights:
    """What changed cannot be applied to what the sampler holds; it samples nothing new before the full set has come.

    Attributes:
        version: that it could not make.
        why: in a sentence.
    """

    version: int
    why: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life."""


@dataclass(frozen=True, slots=True)
class SamplerFailure:
    """The process cannot go on.

    Attributes:
        error: an error that the run is to end with, because another process would meet it again; None for any other.
        stack: the stack.
    """

    error: Exception | None
    stack: str


@dataclass(frozen=True, slots=True)
class SamplerEnd:
    """The process is gone.

    Attributes:
        why: how it ended, with the last lines that it printed.
    """

    why: str
