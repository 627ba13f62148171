"""Weights on their way from a learner to an engine: rounded where they lie, copied once or not at all, digested once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from assay.core.canon import array_digests
from assay.core.columns import Array
from assay.core.errors import ConfigError
from assay.core.manifest import Manifest, TensorInfo, manifest_of
from assay.runtime.kernels.typed import array_of
from assay.runtime.learner.mixed import mixed_digests

__all__ = ["TensorsInPlace", "bits_of", "check_kind", "digests_of", "make_manifest", "served_dtype"]

SERVED = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(slots=True, eq=False)
class TensorsInPlace(Mapping[str, Array]):
    """The payload of a manifest whose tensors stay where they lie: an engine beside the learner copies them from there, rounding
    as it does; whoever asks for arrays gets copies in host memory, all made at the first time that one is asked for.

    Attributes:
        tensors: the live weights; a receiver takes them before the next step.
        dtype: that they are served in.
    """

    tensors: Mapping[str, Tensor]
    dtype: str
    _arrays: dict[str, Array] = field(default_factory=dict[str, Array])

    def __getitem__(self, name: str) -> Array:
        if not self._arrays:
            self._arrays.update(_arrays(self.tensors, self.dtype))
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


def make_manifest(version: int, weights: Mapping[str, Tensor], dtype: str, digests: str) -> Manifest:
    """A full manifest of weights as an engine takes them.

    Args:
        version: of the weights.
        weights: float32, on any device.
        dtype: that the engine serves: float32, or bfloat16 for the nearest, ties to even.
        digests: how its checksums are made (`EngineInfo.digests`): ``blake2b`` needs the bytes in host memory.

    Returns:
        A manifest whose arrays are views of the weights where these are on a CPU and stay float32, else copies; with ``mixed``
        digests its payload is a `TensorsInPlace`.

    Raises:
        ConfigError: another dtype or digest.
    """
    kind = served_dtype(dtype)
    if check_kind(digests) == "mixed":
        found = mixed_digests((name, tensor.detach().to(kind)) for name, tensor in weights.items())
        infos = {n: TensorInfo(_type_code(dtype), tuple(t.shape), found[n]) for n, t in weights.items()}
        return Manifest(version=version, tensors=infos, payload=TensorsInPlace(weights, dtype))
    return manifest_of(version, _arrays(weights, dtype), dtype=None if dtype == "float32" else dtype)


def digests_of(tensors: Mapping[str, Tensor], kind: str) -> dict[str, str]:
    """Of each tensor as it is served, by name."""
    if kind == "mixed":
        return mixed_digests((name, tensor.detach()) for name, tensor in tensors.items())
    return array_digests({name: bits_of(tensor.detach().cpu()) for name, tensor in tensors.items()})


def check_kind(digests: str) -> str:
    """The kind of digest; ConfigError for any but blake2b and mixed."""
    if digests not in ("blake2b", "mixed"):
        raise ConfigError(f"weights are digested by 'blake2b' or 'mixed', not by {digests!r}")
    return digests


def served_dtype(dtype: str) -> torch.dtype:
    """As torch calls it; ConfigError for any but float32 and bfloat16."""
    if dtype not in SERVED:
        raise ConfigError(f"weights are published as 'float32' or 'bfloat16', not as {dtype!r}")
    return SERVED[dtype]


def _type_code(dtype: str) -> str:
    """As `manifest_of` tells arrays of that type."""
    return "<f4" if dtype == "float32" else dtype


def _arrays(weights: Mapping[str, Tensor], dtype: str) -> dict[str, Array]:
    """In host memory. Copies from a device go on side by side; it is waited for once."""
    moved = {name: _home(tensor.detach().to(SERVED[dtype])) for name, tensor in weights.items()}
    if any(tensor.device.type == "cuda" for tensor in weights.values()):
        torch.cuda.synchronize()
    return {name: bits_of(tensor) for name, tensor in moved.items()}


def _home(tensor: Tensor) -> Tensor:
    return tensor.to("cpu", non_blocking=True)  # into pinned memory, which torch keeps for the next time


def bits_of(tensor: Tensor) -> Array:
    """A CPU tensor's memory as an array, of bfloat16 as bit patterns."""
    whole = tensor.detach().contiguous()
    return array_of(whole.view(cast(Any, torch).uint16) if whole.dtype == torch.bfloat16 else whole)
