"""AdamW's steps by the compiled library: all tensors in one call."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import POINTER, c_double, c_int32, c_int64, c_void_p
from typing import Any

import torch
from torch import Tensor

from assay.core.errors import EngineError
from assay.runtime.compiled.calls import NO_MEMORY, addresses, declare_functions
from assay.runtime.settings import AdamW

__all__ = ["adamw_step"]


class _Rates(ctypes.Structure):
    _fields_ = [(name, c_double) for name in ("rate", "beta1", "beta2", "eps")]


_SIGNATURES: dict[str, tuple[Any, Sequence[Any]]] = {
    "assay_adamw_step": (c_int32, [POINTER(_Rates), c_int32, *[c_void_p] * 7, c_int32]),
}


def adamw_step(
    library: ctypes.CDLL,
    settings: AdamW,
    rate: float,
    parameters: Sequence[Tensor],
    grads: Sequence[Tensor],
    states: Sequence[Mapping[str, Tensor]],
) -> None:
    """One step at the learning rate ``rate``: moves ``parameters`` and their ``states`` in place. Bits do not depend on threads.

    Args:
        library: of `assay.runtime.compiled.build`.
        settings: moments, and the decay of matrices.
        rate: learning rate of this step.
        parameters: float32 tensors on a CPU, each contiguous.
        grads: of the same shapes.
        states: by parameter ``exp_avg`` and ``exp_avg_sq`` of its shape, and the number ``step``, as ``torch.optim.AdamW`` has
            them.

    Raises:
        MemoryError: it does not suffice.
        EngineError: the system starts no further thread; some tensors may have moved.
    """
    n, held = len(parameters), [g.contiguous() for g in grads]
    sizes, decays = [p.numel() for p in parameters], [settings.weight_decay if p.dim() > 1 else 0.0 for p in parameters]
    kept = [addresses([s[name] for s in states]) for name in ("exp_avg", "exp_avg_sq", "step")]
    status = declare_functions(library, _SIGNATURES).assay_adamw_step(
        _Rates(rate, settings.beta1, settings.beta2, settings.eps),
        n,
        (c_int64 * n)(*sizes),
        (c_double * n)(*decays),
        addresses(parameters),
        addresses(held),
        *kept,
        torch.get_num_threads(),
    )
    if status == NO_MEMORY:
        raise MemoryError("AdamW has no memory for its threads")
    if status:
        raise EngineError("AdamW stopped: the system starts no further thread; lower Run.threads")
