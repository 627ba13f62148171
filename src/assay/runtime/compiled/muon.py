"""Muon's steps by the compiled library: all matrices in one call."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_float, c_int32, c_void_p
from typing import Any

import torch
from torch import Tensor

from assay.core.errors import EngineError
from assay.runtime.compiled.calls import NO_MEMORY, addresses, declare_functions
from assay.runtime.settings import Muon

__all__ = ["muon_step"]


class _Moves(ctypes.Structure):
    _fields_ = [*((name, c_float) for name in ("rate", "momentum", "decay")), ("nesterov", c_int32)]


_SIGNATURES: dict[str, tuple[Any, Sequence[Any]]] = {
    "assay_muon_step": (c_int32, [POINTER(_Moves), c_int32, *[c_void_p] * 5, c_int32]),
}


def muon_step(
    library: ctypes.CDLL,
    settings: Muon,
    rate: float,
    matrices: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    momenta: Sequence[Tensor],
) -> None:
    """One step at the learning rate ``rate``: moves ``matrices`` and ``momenta`` in place. Bits do not depend on threads.

    Args:
        library: of `assay.runtime.compiled.build`.
        settings: momentum, decay and form.
        rate: length of the step, times ``sqrt(max(1, rows / columns))``.
        matrices: ``[rows, columns]`` each, of any sizes.
        grads: of the same shapes; None for zeros.
        momenta: of the same shapes.

    Raises:
        MemoryError: it does not suffice for two copies of a matrix; some of them may have moved.
        EngineError: the system starts no further thread; some matrices may have moved.
    """
    n = len(matrices)
    rows, columns = ((c_int32 * n)(*(m.shape[axis] for m in matrices)) for axis in (0, 1))
    held = [None if g is None else g.contiguous() for g in grads]
    status = declare_functions(library, _SIGNATURES).assay_muon_step(
        _Moves(rate, settings.momentum, settings.weight_decay, settings.nesterov),
        n,
        rows,
        columns,
        addresses(matrices),
        addresses(held),
        addresses(momenta),
        torch.get_num_threads(),
    )
    if status == NO_MEMORY:
        raise MemoryError("Muon has no memory for two copies of a matrix beside it")
    if status:
        raise EngineError("Muon stopped: the system starts no further thread; lower Run.threads")
