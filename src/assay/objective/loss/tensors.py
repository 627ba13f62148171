"""Numbers to tensors and back, for the interfaces on padded arrays: the other files of the package's root name no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assay.core.columns import Array
from assay.core.errors import DataError
from assay.objective.reducers import F

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["constants", "flat", "leaves", "numbers", "slopes"]


def leaves(columns: Mapping[str, Array]) -> dict[str, Tensor]:
    """Tensors in float64 that a gradient can be taken by.

    >>> import numpy as np
    >>> leaves({"x": np.ones(2)})["x"].requires_grad
    True
    """
    import torch

    return {name: torch.tensor(values, dtype=torch.float64, requires_grad=True) for name, values in columns.items()}


def constants(columns: Mapping[str, Array]) -> dict[str, Tensor]:
    """Tensors without gradient, each in its array's precision.

    >>> import numpy as np
    >>> constants({"x": np.ones(2, np.int64)})["x"].dtype
    torch.int64
    """
    import torch

    return {name: torch.tensor(values) for name, values in columns.items()}


def slopes(loss: Tensor, live: Mapping[str, Tensor]) -> dict[str, F]:
    """Derivatives of a scalar by each leaf, 0 where it has no influence."""
    import torch

    found = torch.autograd.grad(loss, list(live.values()), materialize_grads=True)
    return {name: slope.numpy() for name, slope in zip(live, found, strict=True)}


def numbers(value: Tensor) -> Array:
    """An array of a tensor on any device, in any precision, without its graph.

    >>> import torch
    >>> numbers(torch.ones(2, dtype=torch.bfloat16, requires_grad=True)).dtype
    dtype('float32')
    """
    import torch

    value = value.detach().cpu()
    return (value.float() if value.dtype in (torch.bfloat16, torch.float16) else value).numpy()


def flat(name: str, values: Any, mask: Array, rows: Array, inner: tuple[int, ...] = ()) -> Tensor:
    """``[n * (T + 1), ...]`` some rows of ``values [B, T, ...]``, each behind one zero, attached to its graph.

    Half precision becomes float32: ratios of probabilities need it.

    Args:
        name: of the column, for errors.
        values: the padded tensor.
        mask: ``[B, T]`` where it is read.
        rows: which rows.
        inner: the axes behind the first two.

    Raises:
        DataError: no tensor of floats, the wrong shape, or not finite inside the mask.
    """
    import torch

    if not isinstance(values, torch.Tensor) or not values.is_floating_point():
        raise DataError(f"{name} is no floating-point tensor but {type(values).__name__}: the loss is attached to its graph")
    if tuple(values.shape[:2]) != mask.shape or tuple(values.shape[2:]) != inner:
        raise DataError(f"{name} has the shape {list(values.shape)}, the mask {list(mask.shape)}")
    here = values if values.dtype in (torch.float32, torch.float64) else values.float()
    inside = here.detach()[torch.as_tensor(mask, device=here.device)]
    if not bool(torch.isfinite(inside).all()):
        raise DataError(f"{name} holds a value that is not finite inside the mask; mask the token, or find what made it")
    picked = here[torch.as_tensor(rows, dtype=torch.long, device=here.device)]
    return torch.cat([torch.zeros_like(picked[:, :1]), picked], 1).reshape(-1, *picked.shape[2:])
