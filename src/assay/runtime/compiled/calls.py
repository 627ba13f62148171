"""How the compiled library is called: a model's sizes and angles as it reads them, and the types of its functions."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import c_float, c_int32, c_void_p
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.runtime.kernels.ops import frequencies
from assay.runtime.kernels.typed import array_of
from assay.runtime.settings import DecoderShape

__all__ = ["NO_MEMORY", "Sizes", "addresses", "angles", "declare_functions", "suits"]

NO_MEMORY = 1
"""What a function says for which memory did not suffice; any other number but 0: the system started no further thread."""


class Sizes(ctypes.Structure):
    """Of a decoder."""

    _sizes = ("layers", "hidden", "heads", "kv_heads", "head_dim", "inner", "vocabulary", "positions", "qk_norm")
    _fields_ = [*((name, c_int32) for name in _sizes), ("eps", c_float)]

    @classmethod
    def of(cls, shape: DecoderShape) -> Sizes:
        """A shape's."""
        return cls(
            shape.num_layers,
            shape.hidden_size,
            shape.num_heads,
            shape.num_kv_heads,
            shape.head_dim,
            shape.intermediate_size,
            shape.vocab_size,
            shape.max_positions,
            shape.qk_norm,
            shape.norm_eps,
        )


def angles(shape: DecoderShape) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """``[max_positions, head_dim / 2]`` cosines and sines of the rotary turns."""
    angle = torch.outer(torch.arange(shape.max_positions).float(), frequencies(shape))
    return array_of(angle.cos().contiguous()), array_of(angle.sin().contiguous())


def addresses(tensors: Sequence[Tensor | None]) -> ctypes.Array[c_void_p]:
    """Where they lie, as an array of pointers; null for None."""
    return (c_void_p * len(tensors))(*[None if t is None else t.data_ptr() for t in tensors])


def suits(tensors: Sequence[Tensor]) -> bool:
    """Whether the library can change them: float32 on a CPU, number behind number; and there are some."""
    return bool(tensors) and all(t.device.type == "cpu" and t.dtype == torch.float32 and t.is_contiguous() for t in tensors)


def declare_functions(library: ctypes.CDLL, signatures: Mapping[str, tuple[Any, Sequence[Any]]]) -> Any:
    """The library, with the result and the arguments of its functions by name."""
    for name, (result, given) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, list(given)
    return library
