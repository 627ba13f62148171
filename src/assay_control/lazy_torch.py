"""PyTorch, imported when it is first used, so that methods can be listed and data made without it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

__all__ = ["to_tensor", "torch"]

if TYPE_CHECKING:
    import torch
else:

    class _Torch:
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module("torch"), name)
            setattr(self, name, value)  # the next use is a plain attribute
            return value

    torch = _Torch()


def to_tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """The array as a tensor that shares its memory."""
    return cast("Any", torch).from_numpy(array)
