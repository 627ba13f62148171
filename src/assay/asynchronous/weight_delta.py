"""Weights as what changed since the version before: exact, and a hundredth of the bytes at the learning rates of RL.

In bfloat16 most weights are the same after an update: Adam moves a weight by about ``0.2 * lr``, and where that is less than half
the distance to the next number nothing changes. Of each tensor travel the places that changed, as gaps, and by how many bit
patterns. Receivers check the base that they hold before and the digests of all tensors after, on a copy, so that no wrong weights
are ever served: they ask for the full set instead. SparseRL-Sync (arXiv 2605.07330), with gaps instead of its 32-bit places.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import Array
from assay.core.errors import DataError, EngineError
from assay.core.manifest import Manifest

__all__ = ["DeltaEncoder", "WeightDelta", "apply_delta", "encode_delta"]

_HEADER = struct.Struct("<cQQQ")
"""Form of what follows, and how many places changed, gaps are long, and steps are long."""
_GAPS, _DENSE = b"G", b"D"
_LONG_GAP, _LONG_STEP = 255, -128
_LEVEL = 3
"""Of zlib: higher ones take several times as long for one byte in twenty."""
_WORDS = {2: np.dtype("<u2"), 4: np.dtype("<u4")}


def _bits(array: Array) -> NDArray[np.unsignedinteger[Any]]:
    """The bit patterns of an array, flat; NaNs and zeros with a sign are told apart by them alone."""
    if array.dtype.itemsize not in _WORDS:
        raise DataError(f"a delta is made of numbers of 2 or 4 bytes, not of {array.dtype}; send the full set")
    return np.ascontiguousarray(array).reshape(-1).view(_WORDS[array.dtype.itemsize])


def encode_delta(old: Array, new: Array) -> bytes:
    """What changed from ``old`` to ``new``, bit by bit; empty where nothing did, and all of ``new`` where that is shorter.

    Each changed place is told by the number of unchanged ones before it, in a byte (255: a longer one, in four bytes elsewhere),
    and by the difference of the two bit patterns, in a byte (-128: the new pattern itself, elsewhere). zlib compresses both.

    Raises:
        DataError: other shapes or types than each other's, or numbers that are not of 2 or 4 bytes.

    >>> old = np.zeros(1000, np.float32)
    >>> new = old.copy()
    >>> new[[7, 900]] = 1.0, -0.0
    >>> delta = encode_delta(old, new)
    >>> len(delta), bool((apply_delta(old, delta).view(np.uint32) == new.view(np.uint32)).all())
    (46, True)
    """
    if old.shape != new.shape or old.dtype != new.dtype:
        raise DataError(f"a delta from {old.dtype}{list(old.shape)} to {new.dtype}{list(new.shape)}: tensors keep type and shape")
    before, after = _bits(old), _bits(new)
    places = np.flatnonzero(before != after)
    if not len(places):
        return b""
    dense = after.tobytes()
    if len(places) * 2 < len(dense):
        gaps = np.diff(places, prepend=-1) - 1
        long = gaps >= _LONG_GAP
        steps = _to_signed(after[places] - before[places])
        far = (steps <= _LONG_STEP) | (steps > 127)
        if not long.any() or int(gaps.max()) < 1 << 32:
            body = b"".join(
                (
                    np.where(long, _LONG_GAP, gaps).astype(np.uint8).tobytes(),
                    gaps[long].astype("<u4").tobytes(),
                    np.where(far, _LONG_STEP, steps).astype(np.int8).tobytes(),
                    after[places][far].tobytes(),
                )
            )
            made = _HEADER.pack(_GAPS, len(places), int(long.sum()), int(far.sum())) + zlib.compress(body, _LEVEL)
            if len(made) < len(dense):
                return made
    return _HEADER.pack(_DENSE, len(after), 0, 0) + dense


def _to_signed(words: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:
    """Differences of bit patterns, which went round at 0, with a sign."""
    return words.view(np.dtype(f"<i{words.dtype.itemsize}")).astype(np.int64)


def apply_delta(old: Array, delta: bytes) -> Array:
    """A new array: what `encode_delta` was given as ``new``.

    Raises:
        EngineError: the bytes are no delta of such an array. Whether the result is right only its digest tells.
    """
    if not delta:
        return old
    after = _bits(old).copy()
    try:
        form, count, longs, fars = _HEADER.unpack_from(delta)
        if form == _DENSE:
            after[:] = np.frombuffer(delta, after.dtype, count, _HEADER.size)
        else:
            _scatter(after, zlib.decompress(delta[_HEADER.size :]), count, longs, fars)
    except (struct.error, ValueError, IndexError, zlib.error) as error:
        raise EngineError(f"a delta of {old.dtype}{list(old.shape)} is damaged: {error}") from None
    return after.view(old.dtype).reshape(old.shape)


def _scatter(after: NDArray[np.unsignedinteger[Any]], body: bytes, count: int, longs: int, fars: int) -> None:
    sizes = (count, 4 * longs, count, after.dtype.itemsize * fars)
    if len(body) != sum(sizes):
        raise ValueError(f"{len(body)} bytes where its header tells of {sum(sizes)}")
    ends = np.cumsum(sizes)
    gaps = np.frombuffer(body[: ends[0]], np.uint8).astype(np.int64)
    gaps[gaps == _LONG_GAP] = np.frombuffer(body[ends[0] : ends[1]], "<u4")
    steps = np.frombuffer(body[ends[1] : ends[2]], np.int8)
    places = np.cumsum(gaps + 1) - 1
    changed = after[places] + steps.astype(after.dtype)  # goes round at 0, as the difference did
    changed[steps == _LONG_STEP] = np.frombuffer(body[ends[2] :], after.dtype)
    after[places] = changed


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightDelta:
    """New weights as what changed; implements `assay.asynchronous.messages.Weights` for those who hold the base.

    SparseRL-Sync (arXiv 2605.07330): of bit patterns, ``new[p] = old[p] + step`` at the places ``p`` that changed, ``new = old``
    elsewhere; places are ``p_i = p_{i-1} + 1 + gap_i``.

    Attributes:
        manifest: version and digests of the result, without arrays.
        base: `Manifest.digest` of the weights that it changes.
        payload: of each tensor that changed, by `encode_delta`.
    """

    manifest: Manifest
    base: str
    payload: Mapping[str, bytes]

    @property
    def nbytes(self) -> int:
        """Bytes of the payload."""
        return sum(map(len, self.payload.values()))

    def arrays(self) -> None:
        """None: only `apply` tells them."""

    def apply(self, held: Manifest, digests: Callable[[Manifest], Mapping[str, str]]) -> Manifest:
        """The result with its arrays, checked; those that are held stay as they are. Twice is as once.

        Args:
            held: weights with their arrays.
            digests: computed from the arrays of a manifest, as its own digests were.

        Raises:
            EngineError: they are another base, or the bytes were damaged.
        """
        if held.payload is None or held.digest not in (self.base, self.manifest.digest):
            raise EngineError(
                f"weight version {self.manifest.version} came as what changed since {self.base}, and version {held.version} is "
                f"{held.digest}"
            )
        if held.digest == self.manifest.digest:
            return replace(self.manifest, payload=held.payload)
        arrays = {name: apply_delta(array, self.payload.get(name, b"")) for name, array in held.payload.items()}
        made = replace(self.manifest, payload=arrays)
        found = digests(made)
        if wrong := [name for name, info in self.manifest.tensors.items() if found.get(name) != info.digest]:
            raise EngineError(f"weight version {self.manifest.version} arrived damaged: {', '.join(wrong[:3])}")
        return made


class DeltaEncoder:
    """Remembers what was published last, and tells what changed since.

    Args:
        full_every: publications of which one is the full set; the first is.
    """

    def __init__(self, full_every: int) -> None:
        self._full_every, self._count = full_every, 0
        self._last: Manifest | None = None

    def encode(self, manifest: Manifest) -> WeightDelta | None:
        """A delta on the publication before; None where the full set is to be sent, which is then not longer.

        Raises:
            EngineError: no full set of arrays.
        """
        if manifest.payload is None or manifest.kind != "full":
            raise EngineError(f"weight version {manifest.version} is no full set of arrays, and samplers need one")
        arrays = {name: np.array(array) for name, array in manifest.payload.items()}  # the learner goes on changing its own
        last, self._last = self._last, replace(manifest, payload=arrays)
        self._count += 1
        if (
            last is None
            or last.payload is None
            or (self._count - 1) % self._full_every == 0
            or last.tensors.keys() != arrays.keys()
        ):
            return None
        found = {name: encode_delta(last.payload[name], array) for name, array in arrays.items()}
        made = WeightDelta(
            manifest=replace(manifest, payload=None), base=last.digest, payload={n: d for n, d in found.items() if d}
        )
        return made if made.nbytes < sum(array.nbytes for array in arrays.values()) else None

    @property
    def newest(self) -> Manifest | None:
        """What was published last, with arrays that nobody changes."""
        return self._last
