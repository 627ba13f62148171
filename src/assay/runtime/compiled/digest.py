"""Digests of mixed words by the compiled library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int64, c_uint64, c_void_p
from typing import Any

from torch import Tensor

from assay.runtime.compiled.calls import declare_functions

__all__ = ["mixed_total"]

_SIGNATURES: dict[str, tuple[Any, Sequence[Any]]] = {"assay_mixed": (c_uint64, [c_void_p, c_int64, c_int64])}


def mixed_total(library: ctypes.CDLL, tensor: Tensor, row: int) -> int:
    """Of a CPU tensor's bytes, as `assay.runtime.learner.mixed` defines it, in one pass over them.

    Args:
        library: of `assay.runtime.compiled.build`.
        tensor: contiguous, of any type.
        row: words of a row.
    """
    size = tensor.numel() * tensor.element_size()
    total: int = declare_functions(library, _SIGNATURES).assay_mixed(tensor.data_ptr(), size, row)
    return total
