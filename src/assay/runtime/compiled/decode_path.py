"""The compiled decode path behind the running batch: it draws too, several tokens for each row at a time."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from ctypes import POINTER, c_int32, c_int64, c_void_p
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from assay.core.columns import Array
from assay.core.errors import EngineError
from assay.core.manifest import Manifest
from assay.core.rollout import Ids, ids_of
from assay.runtime.compiled.activation_cache import ActivationCache
from assay.runtime.compiled.calls import NO_MEMORY, Sizes, angles, declare_functions
from assay.runtime.engine.backend import StepOutcome
from assay.runtime.engine.sequences import ColumnKind, SlotTable
from assay.runtime.engine.weights import HEAD, ServedWeights
from assay.runtime.settings import DecoderShape

__all__ = ["TOKENS", "CompiledRunner", "Prompts"]

TOKENS = 16
"""Most tokens that a row goes on by before requests may join or leave."""


class _Table(ctypes.Structure):
    _arrays = (
        "token",
        "position",
        "count",
        "limit",
        "top_k",
        "stop",
        "temperature",
        "top_p",
        "min_p",
        "uniform",
        "ids",
        "logp",
        "entropy",
    )
    _fields_ = [
        *((name, c_void_p) for name in _arrays),
        ("width", c_int64),
        ("stops", c_int64),
        ("support", c_void_p),
        ("bytes", c_int64),
        ("room", c_int64),
    ]

    @classmethod
    def of(cls, table: SlotTable, bits: NDArray[np.uint8] | None) -> _Table:
        support = (0, 0, 1) if bits is None else (_address(bits), bits.shape[2], bits.shape[1])
        arrays = (_address(getattr(table, name)) for name in cls._arrays)
        return cls(*arrays, table.ids.shape[1], table.stop.shape[1], *support)


_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "assay_engine": (c_void_p, [POINTER(Sizes), c_void_p, c_void_p, c_int32, c_int32]),
    "assay_engine_free": (None, [c_void_p]),
    "assay_load": (None, [c_void_p, c_void_p]),
    "assay_read": (None, [c_void_p, c_void_p]),
    "assay_prefill": (c_int32, [c_void_p, c_int32, c_void_p, c_void_p, c_int32, c_void_p]),
    "assay_leave": (None, [c_void_p, c_void_p]),
    "assay_open": (c_int32, [c_void_p, c_int32, c_int32, c_void_p]),
    "assay_keep": (None, [c_void_p, c_int32, c_void_p, c_void_p, c_int32]),
    "assay_advance": (c_int32, [c_void_p, c_int32, POINTER(_Table), c_int32, c_int32, c_void_p]),
    "assay_score": (c_int32, [c_void_p, c_int32, c_void_p, c_void_p, c_int32, c_void_p]),
    "assay_pages": (None, [c_void_p, c_void_p]),
}


def _address(array: NDArray[Any]) -> int:
    return array.ctypes.data


class Prompts:
    """Prompts that passed through the model; their keys and values go when nobody has this any more."""

    def __init__(self, engine: _Engine, handles: ctypes.Array[c_void_p]) -> None:
        self.handles = handles
        self.prompts: Mapping[str, Sequence[Array]] = {}
        weakref.finalize(self, _leave, engine, handles)


def _leave(engine: _Engine, handles: ctypes.Array[c_void_p]) -> None:
    for handle in handles:
        engine.functions.assay_leave(engine.pointer, handle)


class _Engine:
    """The library's own record; freed behind the last prompts that it holds."""

    def __init__(self, library: ctypes.CDLL, shape: DecoderShape, dtype: str) -> None:
        self.functions = declare_functions(library, _SIGNATURES)
        cosine, sine = angles(shape)
        pointer: int | None = self.functions.assay_engine(
            Sizes.of(shape), _address(cosine), _address(sine), _block(shape, dtype), dtype == "bfloat16"
        )
        if pointer is None:
            raise MemoryError(f"the compiled decode path has no memory for {shape.parameters:,} weights")
        self.pointer = pointer
        weakref.finalize(self, self.functions.assay_engine_free, pointer)


class CompiledRunner:
    """Samples with the compiled library (implements `assay.runtime.engine.backend.Runner` and `Served`).

    Args:
        library: of `assay.runtime.compiled.build`.
        weights: what is served; packed anew behind each load.
        recall: bytes of states that are left in a cache while that is open; 0 for none.

    Attributes:
        activation_cache: where they are left.

    Raises:
        MemoryError: it does not suffice for the weights.
    """

    kinds: Mapping[str, ColumnKind]

    def __init__(self, library: ctypes.CDLL, weights: ServedWeights, recall: int = 0) -> None:
        self.kinds = {}
        self._back: ServedWeights | None = None
        self._weights, self._engine = weights, _Engine(library, weights.shape, weights.dtype)
        self.activation_cache = ActivationCache(library, self._engine.pointer, recall) if recall else None
        self._functions = self._engine.functions
        self._pack()

    # ---- weights ------------------------------------------------------------------------------------------------------

    def verify_manifest(self, manifest: Manifest) -> Mapping[str, Array]:
        """As `Served.verify_manifest`."""
        return self._weights.verify_manifest(manifest)

    def load(self, arrays: Mapping[str, Array]) -> None:
        """As `Served.load`."""
        self._weights.load(arrays)
        self._pack()

    def digests(self) -> dict[str, str]:
        """As `Served.digests`, of what the library multiplies with, read back from it."""
        if self._back is None:  # made once: fresh memory costs as much as all else here
            served = self._weights
            self._back = ServedWeights(served.shape, {}, served.dtype, served.kind)
            self._back.tensors[HEAD] = torch.zeros_like(self._back.tensors[HEAD])  # the library packs a tied head apart
        self._functions.assay_read(self._engine.pointer, _arrays(self._back))
        return self._back.digests(anew=True)

    def _pack(self) -> None:
        self._functions.assay_load(self._engine.pointer, _arrays(self._weights))

    # ---- rows ---------------------------------------------------------------------------------------------------------

    def prefill(self, prompts: Sequence[Ids]) -> Prompts:
        """As `Runner.prefill`."""
        handles = (c_void_p * len(prompts))()
        ids, offsets = _join_rows(prompts)
        self._check_status(
            self._functions.assay_prefill(
                self._engine.pointer, len(prompts), _address(ids), _address(offsets), torch.get_num_threads(), handles
            )
        )
        return Prompts(self._engine, handles)

    def join(self, prompts: Sequence[tuple[Prompts, int]], first: int, length: int) -> None:
        """As `Runner.join`."""
        handles = (c_void_p * len(prompts))(*(group.handles[i] for group, i in prompts))
        self._check_status(self._functions.assay_open(self._engine.pointer, first, len(prompts), handles))

    def advance(self, table: SlotTable) -> StepOutcome:
        """As `Runner.advance`."""
        n = len(table)
        before, ended = table.count[:n].copy(), np.zeros(n, np.int8)
        kept = table.keeps_support()
        bits = None if kept is None else np.zeros((n, TOKENS, -(-self._weights.shape.vocab_size // 8)), np.uint8)
        self._check_status(
            self._functions.assay_advance(
                self._engine.pointer, n, _Table.of(table, bits), TOKENS, torch.get_num_threads(), _address(ended)
            )
        )
        if bits is not None and kept is not None:
            _keep_supports(table, bits, np.flatnonzero(kept).tolist(), before)
        done, cut = table.watch_stops(before, ended == 1, ended == 2)
        new = table.count[:n] - before
        return StepOutcome(done, cut, int(new.max()), int(new.sum() - (before == 0).sum()))

    def keep(self, rows: int, source: NDArray[np.int64], target: NDArray[np.int64], length: int) -> None:
        """As `Runner.keep`."""
        self._functions.assay_keep(self._engine.pointer, len(source), _address(source), _address(target), rows)

    def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """As `Runner.score`."""
        ids, offsets = _join_rows(rows)
        out = np.zeros(len(ids), np.float32)
        self._check_status(
            self._functions.assay_score(
                self._engine.pointer, len(rows), _address(ids), _address(offsets), torch.get_num_threads(), _address(out)
            )
        )
        return [out[a:b].copy() for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]

    def pages(self) -> tuple[int, int]:
        """Pages of keys and values: in use, and kept for the next rows."""
        out = np.zeros(2, np.int64)
        self._functions.assay_pages(self._engine.pointer, _address(out))
        return int(out[0]), int(out[1])

    def _check_status(self, status: int) -> None:
        if status == NO_MEMORY:
            raise MemoryError("the compiled decode path has no memory for keys and values")
        if status:
            raise EngineError("the compiled decode path stopped: the system starts no further thread; lower Run.threads")


def _keep_supports(table: SlotTable, bits: NDArray[np.uint8], rows: Sequence[int], before: NDArray[np.int64]) -> None:
    """Gives rows the ids that their newest tokens were drawn from: token ``t`` of row ``r`` has ``bits[r, t % TOKENS]``."""
    for row in rows:
        for token in range(int(before[row]), int(table.count[row])):
            known = np.unpackbits(bits[row, token % TOKENS], bitorder="little")
            table.jobs[row].support.append(ids_of(np.flatnonzero(known)))


def _arrays(w: ServedWeights) -> ctypes.Array[c_void_p]:
    """Pointers in the library's order."""
    tensors = [w.embedding, w.norm, w.head]
    for layer in w.layers:
        tensors += [layer.norm1, layer.qkv, layer.out, layer.norm2, layer.gate_up, layer.down]
        tensors += [norm for norm in (layer.q_norm, layer.k_norm) if norm is not None]
    return (c_void_p * len(tensors))(*(t.data_ptr() for t in tensors))


def _join_rows(rows: Sequence[Ids]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids of all rows behind one another, and where each begins and the last ends."""
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return np.concatenate([np.asarray(r, np.int64) for r in rows]) if rows else np.zeros(0, np.int64), offsets


def _block(shape: DecoderShape, dtype: str) -> int:
    """Rows of a block: few, whose keys and values stay in nearer caches, while weights are soon read again; else many, so that a
    pass over the weights serves more of them.
    """
    half = dtype == "bfloat16"
    if shape.parameters * (2 if half else 4) > 8_000_000:
        return 72
    return 24 if half else 12
