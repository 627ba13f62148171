"""A version of the weights, as published by a learner and received by an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from assay.core.canon import array_digests, digest
from assay.core.columns import Array
from assay.core.errors import DataError
from assay.core.util.renamed import RenamedMembers

__all__ = ["Manifest", "TensorInfo", "manifest_of"]

MIXED = "mixed:"
"""Begins digests that a device computed (`assay.runtime.learner.mixed`); those of `array_digest` have nothing before them."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Identity of one tensor: dtype string, shape, digest of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(RenamedMembers):
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

    renamed_members: ClassVar[Mapping[str, str]] = {"rounded": "round_to"}

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

    def round_to(self, dtype: str) -> Manifest:
        """The same weights as an engine takes them that serves ``dtype``: ``bfloat16`` arrays are uint16 bit patterns, rounded to
        the nearest, ties to even; their `TensorInfo.dtype` says so.

        Raises:
            DataError: another dtype, a delta, or a payload that is missing or not float32.

        >>> made = manifest_of(1, {"w": np.array([1.0, 1.00390625, -2.0078125], np.float32)}).round_to("bfloat16")
        >>> made.tensors["w"].dtype, [hex(bits) for bits in made.payload["w"].tolist()]
        ('bfloat16', ['0x3f80', '0x3f80', '0xc000'])
        """
        if dtype == "float32":
            return self
        if dtype != "bfloat16":
            raise DataError(f"weight version {self.version} cannot be rounded to {dtype!r}; engines serve float32 or bfloat16")
        if self.payload is None or self.kind != "full":
            raise DataError(f"weight version {self.version} is no full set of arrays, so it cannot be rounded")
        arrays = {name: bfloat16_bits(name, array) for name, array in self.payload.items()}
        return replace(self, tensors=manifest_of(self.version, arrays, dtype=dtype).tensors, payload=arrays)

    @property
    def digest(self) -> str:
        """Digest over the tensors that it names, in name order; of a full manifest it is what a delta's ``base`` means."""
        return digest({name: [t.dtype, t.shape, t.digest] for name, t in self.tensors.items()})


def digest_kind(digests: Iterable[str]) -> str:
    """How digests of tensors are made, as `EngineInfo.digests` says it; two of different kinds tell nothing about each other.

    >>> digest_kind(["mixed:0b", "mixed:1c"]), digest_kind(["0b"])
    ('mixed', 'blake2b')
    """
    return "mixed" if any(digest.startswith(MIXED) for digest in digests) else "blake2b"


def bfloat16_bits(name: str, array: Array) -> Array:
    """Bit patterns of float32 numbers rounded to bfloat16; DataError names a tensor that is not float32."""
    if array.dtype != np.float32:
        raise DataError(f"tensor {name!r} is {array.dtype}; only float32 is rounded to bfloat16")
    bits = np.ascontiguousarray(array).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(array), np.uint32(0x7FC0), kept).astype(np.uint16)


def manifest_of(version: int, arrays: Mapping[str, Array], *, base: str | None = None, dtype: str | None = None) -> Manifest:
    """A manifest of in-process arrays: a full one, or with ``base`` a delta on the version of that digest.

    Args:
        version, arrays, base: as `Manifest` has them.
        dtype: what arrays of bit patterns stand for, ``bfloat16``; None for their own type.

    >>> full = manifest_of(1, {"w": np.zeros(2, np.float32), "b": np.zeros(1, np.float32)})
    >>> full.tensors["w"].shape, full.kind
    ((2,), 'full')
    >>> manifest_of(2, {"b": np.ones(1, np.float32)}, base=full.digest).kind
    'delta'
    """
    digests = array_digests({n: np.asarray(a) for n, a in arrays.items()})
    tensors = {n: TensorInfo(dtype or a.dtype.str, tuple(a.shape), digests[n]) for n, a in arrays.items()}
    return Manifest(version=version, tensors=tensors, kind="full" if base is None else "delta", base=base, payload=arrays)
