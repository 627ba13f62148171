"""Attention over rows of any lengths in one call: PyTorch's variable-length kernel, where a device has one.

`varlen_attn` of `torch.nn.attention.varlen` is FlashAttention (Dao 2023) on concatenated rows, told by their ends, so no cell is
padding. It computes in 16 bits on CUDA alone. Whether a decoder uses it is decided by `suits`, and then by a probe of the decoder
itself (`assay.runtime.learner.hub_decoder`). ``unverified``: the kernel was never called here; what is tested is which rows,
windows and heads it would be told, against a plain computation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from assay.core.errors import ConfigError
from assay.runtime.learner.packing import Packing

__all__ = ["attend", "kernel", "suits"]

AMPERE = (8, 0)
"""Oldest CUDA architecture that FlashAttention 2 runs on."""
WIDEST = 256
"""Largest head that it takes; sizes are multiples of 8."""
HALVES = (torch.bfloat16, torch.float16)


def kernel() -> Callable[..., Tensor] | None:
    """``varlen_attn``, where this version of torch has one with windows and shared key heads."""
    try:
        from torch.nn.attention import varlen
    except ImportError:
        return None
    found: Any = getattr(varlen, "varlen_attn", None)
    known = set(inspect.signature(found).parameters) if found else set[str]()
    return found if known >= {"scale", "window_size", "enable_gqa"} else None


def suits(device: torch.device, head_dim: int) -> bool:
    """Whether the kernel can serve heads of a size on a device.

    >>> suits(torch.device("cpu"), 128)
    False
    """
    if device.type != "cuda" or kernel() is None or head_dim % 8 or head_dim > WIDEST:
        return False
    return torch.cuda.get_device_capability(device) >= AMPERE


def attend(q: Tensor, k: Tensor, v: Tensor, rows: Packing, *, scale: float | None = None, window: int | None = None) -> Tensor:
    """Causal attention, row by row, in the 16 bits that products have here.

    Args:
        q: ``[N, heads, D]``.
        k, v: ``[N, kv_heads, D]``; a key head serves as many query heads as there are more of these.
        rows: where the rows lie.
        scale: of the products; None for ``D ** -0.5``.
        window: how many tokens a query sees, itself the last; None for all before it.

    Returns:
        ``[N, heads, D]``.

    Raises:
        ConfigError: there is no such kernel, or products are float32 here.
    """
    kind = cast(Any, torch).get_autocast_dtype(q.device.type) if torch.is_autocast_enabled(q.device.type) else q.dtype
    run = kernel()
    if run is None or kind not in HALVES:
        raise ConfigError(f"attention over rows of any lengths: torch {torch.__version__} has no kernel for {kind} on {q.device}")
    q, k, v = (part.to(kind) for part in (q, k, v))
    return run(
        q,
        k,
        v,
        rows.ends,
        rows.ends,
        rows.longest,
        rows.longest,
        scale=scale,
        enable_gqa=q.shape[1] != k.shape[1],
        window_size=(-1 if window is None else window - 1, 0),
    )
