"""PyTorch, imported when it is first used, so that methods can be listed and data made without it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["torch"]

if TYPE_CHECKING:
    import torch
else:

    class _Torch:
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module("torch"), name)
            setattr(self, name, value)  # the next use is a plain attribute
            return value

    torch = _Torch()
