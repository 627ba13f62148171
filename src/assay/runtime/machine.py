"""What bit-equality depends on: versions, instruction set, threads."""

from __future__ import annotations

import platform

import numpy as np
import torch

__all__ = ["fingerprint", "set_threads"]


def fingerprint(threads: int) -> dict[str, str]:
    """Everything besides the program and its inputs that may change a bit of the result."""
    return {
        "isa": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "threads": str(threads),
        "torch": torch.__version__,
    }


def set_threads(threads: int) -> int:
    """Sets torch's intra-op threads; returns the number in force."""
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    return torch.get_num_threads()
