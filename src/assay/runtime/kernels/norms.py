"""RMS norms of transformers' modules in one kernel each.

As transformers writes them a norm is seven calls forward and more backward, each of which reads and writes all states: on a GPU
that is a good part of a layer's time. `torch.nn.functional.rms_norm` is one call either way on CUDA. Whether a class of norm is
that function is found out by trying it, so that a variant (Gemma's ``1 + weight``) stays as it is.
``unverified`` on a GPU; the same lines are tested on a CPU.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["fuse_norms"]

NAMES = ("variance_epsilon", "eps")
"""What norms call the number below the root."""
CLOSE = 1e-5
"""Largest difference of two ways to compute numbers of size 1."""


def fuse_norms(module: nn.Module) -> int:
    """Lets each RMS norm of a module compute itself by `torch.nn.functional.rms_norm` where that is what it computes.

    Returns:
        How many do.

    >>> from transformers.models.llama.modeling_llama import LlamaRMSNorm
    >>> fuse_norms(nn.Sequential(LlamaRMSNorm(8), nn.LayerNorm(8)))
    1
    """
    found = [part for part in module.modules() if type(part).__name__.endswith("RMSNorm")]
    tried: dict[tuple[type, int, torch.dtype], bool] = {}
    count = 0
    for part in found:
        weight: Any = getattr(part, "weight", None)
        if not isinstance(weight, Tensor) or weight.dim() != 1 or not _epsilon(part):
            continue
        kind = (type(part), len(weight), weight.dtype)
        if kind not in tried:
            tried[kind] = _is_plain(part, len(weight))
        if tried[kind]:
            cast(Any, part).forward = partial(_normalise_states, part)
            count += 1
    return count


def _epsilon(part: nn.Module) -> float:
    """0 where there is none of a known name."""
    return next((float(getattr(part, name)) for name in NAMES if isinstance(getattr(part, name, None), float)), 0.0)


def _normalise_states(part: nn.Module, states: Tensor) -> Tensor:
    """As the norms of Llama and its kin: a weight of more bits than the states makes its result as wide."""
    weight = cast(Tensor, part.weight)
    kind = torch.promote_types(states.dtype, weight.dtype)
    return functional.rms_norm(states.to(kind), (len(weight),), weight.to(kind), _epsilon(part))


@torch.no_grad()
def _is_plain(part: nn.Module, width: int) -> bool:
    """Whether a norm gives what `_normalise_states` gives, in its type and in bfloat16, where states are as small as epsilon."""
    mine: Any = copy.deepcopy(part).cpu()
    draws = torch.Generator().manual_seed(0)
    mine.weight.copy_(torch.randn(width, generator=draws))
    small = _epsilon(mine) ** 0.5
    for kind in (mine.weight.dtype, torch.bfloat16):
        close = CLOSE if kind == torch.float32 else 2**-6
        for size in (1.0, small):
            states = (size * torch.randn(3, width, generator=draws)).to(kind)
            try:
                theirs = mine(states)
            except Exception:  # a norm that asks for something besides
                return False
            ours = _normalise_states(mine, states)
            if theirs.dtype != ours.dtype or not float((theirs.float() - ours.float()).abs().max()) <= close * 4:
                return False
    return True
