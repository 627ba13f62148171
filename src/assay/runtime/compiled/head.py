"""A head over a small vocabulary by the compiled library: log-probabilities and entropies as one step of PyTorch's autograd."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_int64, c_void_p
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from assay.core.errors import EngineError
from assay.runtime.compiled.calls import NO_MEMORY, declare_functions

__all__ = ["LARGEST", "compiled_columns"]

LARGEST = 4096
"""Tokens of a vocabulary for which that is worth it: of a larger one matrix products are all that takes time."""

_NO_SUCH_TOKEN = 3
_SIZES = [c_int64, c_int32, c_int32]
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "assay_head_forward": (c_int32, [*_SIZES, *[c_void_p] * 3, c_int32, *[c_void_p] * 3]),
    "assay_head_backward": (c_int32, [*_SIZES, *[c_void_p] * 7, c_int32, *[c_void_p] * 2]),
}


def compiled_columns(
    library: ctypes.CDLL, hidden: Tensor, weight: Tensor, targets: Tensor, entropy: bool = False
) -> tuple[Tensor, Tensor]:
    """As `assay.runtime.learner.lm_head.head_columns`, of a head that is its weight alone.

    Bits of a position do not depend on the others, and none on the number of threads.

    Args:
        library: of `assay.runtime.compiled.build`.
        hidden: ``[M, hidden]`` float32 on a CPU.
        weight: ``[V, hidden]``.
        targets: ``[M]`` int64 ids.
        entropy: also compute entropies.

    Returns:
        ``[M]`` log-probabilities, and ``[M]`` entropies (``[0]`` when not asked), in nats.

    Raises:
        IndexError: an id is none of the vocabulary's.
        MemoryError: it does not suffice.
        EngineError: the system starts no further thread.
    """
    return cast(Any, _Columns).apply(hidden, weight, targets, entropy, declare_functions(library, _SIGNATURES))


class _Columns(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, entropy: bool, functions: Any
    ) -> tuple[Tensor, Tensor]:
        hidden, weight, targets = hidden.contiguous(), weight.contiguous(), targets.contiguous()
        n, (vocabulary, width) = len(targets), weight.shape
        logp, normal, spread = hidden.new_empty(n), hidden.new_empty(n), hidden.new_empty(n if entropy else 0)
        status = functions.assay_head_forward(
            n,
            width,
            vocabulary,
            hidden.data_ptr(),
            weight.data_ptr(),
            targets.data_ptr(),
            torch.get_num_threads(),
            logp.data_ptr(),
            normal.data_ptr(),
            spread.data_ptr() if entropy else None,
        )
        _check_status(status, vocabulary)
        ctx.save_for_backward(hidden, weight, targets, normal, spread)
        ctx.functions = functions
        ctx.set_materialize_grads(False)
        return logp, spread

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[reportIncompatibleMethodOverride]
        hidden, weight, targets, normal, spread = ctx.saved_tensors
        given = [grads[0], grads[1] if len(spread) else None]
        if all(g is None for g in given):
            return (None,) * 5
        given = [None if g is None else g.contiguous() for g in given]
        found = [
            torch.empty_like(t) if needed else None for t, needed in zip((hidden, weight), ctx.needs_input_grad, strict=False)
        ]
        status = ctx.functions.assay_head_backward(
            len(targets),
            hidden.shape[1],
            len(weight),
            *(t.data_ptr() for t in (hidden, weight, targets, normal, spread)),
            *(None if g is None else g.data_ptr() for g in given),
            torch.get_num_threads(),
            *(None if t is None else t.data_ptr() for t in found),
        )
        _check_status(status, len(weight))
        return found[0], found[1], None, None, None


def _check_status(status: int, vocabulary: int) -> None:
    if status == _NO_SUCH_TOKEN:
        raise IndexError(f"an id is none of the vocabulary's {vocabulary:,}")
    if status == NO_MEMORY:
        raise MemoryError("the compiled head has no memory for a copy of its weight")
    if status:
        raise EngineError("the compiled head stopped: the system starts no further thread; lower Run.threads")
