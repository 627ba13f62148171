"""Differentiable operations and attention kernels in PyTorch."""
