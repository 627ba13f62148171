"""A version of the weights, as published by a learner and received by an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from assay.core.canon import array_digest, digest
from assay.core.columns import Array
from assay.core.errors import DataError

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
        kind: ``full``: all tensors; ``delta``: only those that differ from an earlier version's.
        base: digest of all tensors of the version that a delta applies to; None for a full one.
        payload: the arrays, when they travel in process; not part of the identity.

    Raises:
        DataError: another kind, a delta without base, or a full manifest with one.
    """

    version: int
    tensors: Mapping[str, TensorInfo]
    kind: str = "full"
    base: str | None = None
    payload: Mapping[str, Array] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in ("full", "delta") or (self.kind == "delta") != (self.base is not None):
            raise DataError(
                f"weight version {self.version}: kind={self.kind!r} with base={self.base!r}; a 'full' manifest has no base, a "
                "'delta' has the digest of the version that it changes"
            )

    @property
    def digest(self) -> str:
        """Digest over the tensors that it names, in name order; of a full manifest it is what a delta's ``base`` means."""
        return digest({name: [t.dtype, t.shape, t.digest] for name, t in self.tensors.items()})


def manifest_of(version: int, arrays: Mapping[str, Array], *, base: str | None = None) -> Manifest:
    """A manifest of in-process arrays: a full one, or with ``base`` a delta on the version of that digest.

    >>> full = manifest_of(1, {"w": np.zeros(2, np.float32), "b": np.zeros(1, np.float32)})
    >>> full.tensors["w"].shape, full.kind
    ((2,), 'full')
    >>> manifest_of(2, {"b": np.ones(1, np.float32)}, base=full.digest).kind
    'delta'
    """
    tensors = {n: TensorInfo(a.dtype.str, tuple(a.shape), array_digest(np.asarray(a))) for n, a in arrays.items()}
    return Manifest(version=version, tensors=tensors, kind="full" if base is None else "delta", base=base, payload=arrays)
