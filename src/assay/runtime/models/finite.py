"""Where a NaN or an infinity came from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from assay.core.batch import Batch
from assay.core.errors import DataError, NonFiniteError

__all__ = ["check_gradient", "check_loss", "check_weights"]


def check_weights(tensors: Iterable[tuple[str, Tensor]], whose: str) -> None:
    """Raises DataError naming the first tensor that holds NaN or an infinity, and how many of its numbers do.

    >>> check_weights([("a", torch.ones(2)), ("b", torch.tensor([1.0, float("nan")]))], "models/base")
    Traceback (most recent call last):
    assay.core.errors.DataError: models/base: weight b holds 1 NaN or infinite number of 2; ...
    """
    for name, tensor in tensors:
        if not tensor.is_floating_point() or bool(torch.isfinite(tensor.detach().sum(dtype=torch.float32))):
            continue
        bad = int((~torch.isfinite(tensor.detach())).sum())
        if bad:
            raise DataError(
                f"{whose}: weight {name} holds {bad:,} NaN or infinite number{'s' if bad > 1 else ''} of {tensor.numel():,}; "
                "copy the folder again from its source, or take an earlier checkpoint of the run that wrote it"
            )


def check_loss(
    loss: float, step: int, micro_index: int, micro: Batch, live: Mapping[str, Tensor], parameters: Mapping[str, Tensor]
) -> None:
    """Raises NonFiniteError naming step, micro-batch and the first bad input when ``loss`` is NaN or infinite."""
    if math.isfinite(loss):
        return
    raise NonFiniteError(
        f"step {step}: the loss is {loss} in micro-batch {micro_index}; first bad quantity: "
        f"{_first_bad(micro, live, parameters)}; weights and optimiser were not changed"
    )


def check_gradient(norm: float, step: int, parameters: Mapping[str, Tensor]) -> None:
    """Raises NonFiniteError naming step and the first bad gradient when ``norm`` is NaN or infinite."""
    if math.isfinite(norm):
        return
    bad = [n for n, p in parameters.items() if p.grad is not None and not bool(torch.isfinite(p.grad).all())]
    where = f"first bad quantity: gradient of {bad[0]} ({len(bad)} tensors in all)" if bad else "the squares overflow"
    raise NonFiniteError(f"step {step}: the gradient norm is {norm}; {where}; weights and optimiser were not changed")


def _first_bad(micro: Batch, live: Mapping[str, Tensor], parameters: Mapping[str, Tensor]) -> str:
    for name, parameter in parameters.items():
        if not bool(torch.isfinite(parameter).all()):
            return f"weight {name}"
    columns = [("token column", n, c.values) for n, c in micro.tokens.items()]
    columns += [("row column", n, a) for n, a in micro.rows.items()]
    columns += [("rollout column", n, a) for n, a in micro.rollouts.items()]
    for kind, name, values in columns:
        if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
            return f"{kind} {name!r}"
    for name, values in live.items():
        if not bool(torch.isfinite(values).all()):
            return f"live column {name!r} of the forward pass"
    return "the loss itself (its inputs are finite)"
