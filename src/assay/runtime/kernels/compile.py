"""Layers of a module of transformers compiled, so that what lies between their matrix products takes few passes over memory.

Each layer's ``forward`` goes through `torch.compile` by itself, and all layers of a kind share the code: norms, rotary turns,
gates and residual sums become a kernel each. Attention stays as it is (`assay.runtime.kernels.row_attention`), so neither rows
nor their lengths are compiled in; the number of tokens is a variable. Passes in float32 (scores of probes and evaluations) are
made as before.
``unverified`` on a GPU; on a CPU the graphs are captured, compared and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import nn

__all__ = ["compile_layers"]

BACKEND = "inductor"
"""What makes code of the graphs."""


def compile_layers(module: nn.Module) -> int:
    """Lets the layers of a module compute compiled under autocast.

    Returns:
        How many do; 0 of a module whose layers transformers does not mark.
    """
    from transformers import AttentionInterface
    from transformers.modeling_layers import GradientCheckpointingLayer

    from assay.runtime.kernels.row_attention import ROWS, rows_attention

    cast(Any, AttentionInterface).register(ROWS, cast(Any, torch).compiler.disable(rows_attention))
    layers = [part for part in module.modules() if isinstance(part, GradientCheckpointingLayer)]
    for layer in layers:
        cast(Any, layer).forward = _Forward(layer.forward, str(next(layer.parameters()).device.type))
    return len(layers)


class _Forward:
    """A layer's forward pass, compiled where products have 16 bits."""

    def __init__(self, plain: Callable[..., Any], device: str) -> None:
        self._plain, self._device = plain, device
        self._compiled: Callable[..., Any] = cast(Any, torch).compile(plain, backend=BACKEND, dynamic=True)

    def __call__(self, *given: Any, **named: Any) -> Any:
        run = self._compiled if torch.is_autocast_enabled(self._device) else self._plain
        return run(*given, **named)
