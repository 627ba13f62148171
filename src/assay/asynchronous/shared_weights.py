"""Weights in memory that processes of one machine share."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from assay.core.columns import Array
from assay.core.errors import EngineError
from assay.core.manifest import Manifest

__all__ = ["PUBLICATIONS", "SharedMemoryWeights", "SharedWeights"]

_ALIGN = 64
PUBLICATIONS = 3
"""Publications whose arrays stay: a process that is behind by more reads newer ones instead."""


@dataclass(frozen=True, slots=True)
class SharedMemoryWeights:
    """Weights in a file of memory; implements `assay.asynchronous.messages.Weights`.

    Attributes:
        manifest: their version and digests, without arrays.
        place: path at which processes of this machine open the file.
        layout: dtype, shape and first byte of each array.
    """

    manifest: Manifest
    place: str
    layout: Mapping[str, tuple[str, tuple[int, ...], int]]

    @property
    def nbytes(self) -> int:
        """As of `Weights.nbytes`."""
        return _bytes(self.layout)

    def arrays(self) -> dict[str, Array] | None:
        """As of `Weights.arrays`. Pages are shared until they are written to."""
        try:
            with open(self.place, "rb") as file:
                memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except (OSError, ValueError):
            return None
        if int.from_bytes(memory[:8], "little") != self.manifest.version:  # the number of a closed file was given to another
            return None
        return {name: np.ndarray(shape, dtype, memory, start) for name, (dtype, shape, start) in self.layout.items()}


def _bytes(layout: Mapping[str, tuple[str, tuple[int, ...], int]]) -> int:
    return sum(np.dtype(dtype).itemsize * math.prod(shape) for dtype, shape, _ in layout.values())


class SharedWeights:
    """The arrays of the newest publications, each in a file of memory, which goes with this process however it ends."""

    def __init__(self) -> None:
        self._files: deque[_MemoryFile] = deque()

    def put(self, manifest: Manifest) -> SharedMemoryWeights:
        """Copies a publication's arrays.

        Raises:
            EngineError: it is a delta, or has no arrays.
        """
        if manifest.payload is None or manifest.kind != "full":
            raise EngineError(f"weight version {manifest.version} is no full set of arrays, and sampler processes need one")
        arrays = {name: np.ascontiguousarray(array) for name, array in manifest.payload.items()}
        layout: dict[str, tuple[str, tuple[int, ...], int]] = {}
        end = _ALIGN
        for name, array in arrays.items():
            layout[name] = (array.dtype.str, array.shape, end)
            end += -(-array.nbytes // _ALIGN) * _ALIGN
        file = _MemoryFile(end)
        with mmap.mmap(file.handle, end) as memory:
            for name, array in arrays.items():
                np.ndarray(array.shape, array.dtype, memory, layout[name][2])[...] = array
            memory[:8] = manifest.version.to_bytes(8, "little")
        self._files.append(file)
        while len(self._files) > PUBLICATIONS:
            self._files.popleft().close()
        return SharedMemoryWeights(replace(manifest, payload=None), file.place, layout)

    def close(self) -> None:
        """Frees all of it."""
        while self._files:
            self._files.popleft().close()


class _MemoryFile:
    """A file without a name where the system has such files, so that a kill leaves nothing behind; else a temporary one."""

    def __init__(self, size: int) -> None:
        if hasattr(os, "memfd_create"):
            self.handle, self.place = os.memfd_create("assay-weights"), ""
            self.place = f"/proc/{os.getpid()}/fd/{self.handle}"
        else:
            self.handle, self.place = tempfile.mkstemp(prefix="assay-weights-")
        os.truncate(self.handle, size)

    def close(self) -> None:
        """Frees the memory when the last process that reads it lets go of it."""
        os.close(self.handle)
        if not self.place.startswith("/proc/"):
            os.unlink(self.place)
