"""Differentiable operations and attention kernels in PyTorch."""

from __future__ import annotations

__all__: list[str] = []
