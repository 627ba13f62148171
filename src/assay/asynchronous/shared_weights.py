"""Weights in shared memory, for processes of one machine."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from multiprocessing.shared_memory import SharedMemory

import numpy as np

from assay.asynchronous.messages import Weights
from assay.core.errors import EngineError
from assay.core.manifest import Manifest

__all__ = ["SharedWeights"]

_ALIGN = 64
_KEPT = 3
"""Publications whose arrays stay: a process that is behind by more reads newer ones instead."""


class SharedWeights:
    """The arrays of the newest publications, each in a block of its own."""

    def __init__(self) -> None:
        self._blocks: deque[SharedMemory] = deque()
        self.newest: Weights | None = None

    def put(self, manifest: Manifest) -> Weights:
        """Copies a publication's arrays.

        Raises:
            EngineError: it is a delta, or has no arrays.
        """
        if manifest.payload is None or manifest.kind != "full":
            raise EngineError(f"weight version {manifest.version} is no full set of arrays, and sampler processes need one")
        arrays = {name: np.ascontiguousarray(array) for name, array in manifest.payload.items()}
        sizes = {name: -(-array.nbytes // _ALIGN) * _ALIGN for name, array in arrays.items()}
        block = SharedMemory(create=True, size=max(1, sum(sizes.values())))
        layout: dict[str, tuple[str, tuple[int, ...], int]] = {}
        start = 0
        for name, array in arrays.items():
            np.ndarray(array.shape, array.dtype, block.buf, start)[...] = array
            layout[name] = (array.dtype.str, array.shape, start)
            start += sizes[name]
        self._blocks.append(block)
        while len(self._blocks) > _KEPT:
            _free(self._blocks.popleft())
        self.newest = Weights(replace(manifest, payload=None), block.name, layout)
        return self.newest

    def close(self) -> None:
        """Frees all of it."""
        while self._blocks:
            _free(self._blocks.popleft())


def _free(block: SharedMemory) -> None:
    block.close()
    block.unlink()
