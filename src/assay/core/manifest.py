"""A version of the weights, as published by a learner and received by an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from assay.core.canon import array_digest, digest
from assay.core.columns import Array

__all__ = ["Manifest", "TensorInfo", "manifest_of"]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Identity of one tensor: dtype string, shape, digest of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A weight version.

    Attributes:
        version: counts updates; 0 is what the run started from.
        tensors: name to identity.
        kind: ``full`` or ``delta``.
        base: digest of the version that a delta applies to; None for a full one.
        payload: the arrays, when they travel in process; not part of the identity.
    """

    version: int
    tensors: Mapping[str, TensorInfo]
    kind: str = "full"
    base: str | None = None
    payload: Mapping[str, Array] | None = field(default=None, compare=False, repr=False)

    @property
    def digest(self) -> str:
        """Digest over all tensors, in name order."""
        return digest({name: [t.dtype, t.shape, t.digest] for name, t in self.tensors.items()})


def manifest_of(version: int, arrays: Mapping[str, Array]) -> Manifest:
    """A full manifest of in-process arrays.

    >>> manifest_of(1, {"w": np.zeros(2, np.float32)}).tensors["w"].shape
    (2,)
    """
    tensors = {n: TensorInfo(a.dtype.str, tuple(a.shape), array_digest(np.asarray(a))) for n, a in arrays.items()}
    return Manifest(version=version, tensors=tensors, payload=arrays)
