"""What bit-equality depends on: versions, instruction set, threads."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from assay.core.util.threads import policy_known
from assay.runtime.compiled import build

__all__ = ["calm", "fingerprint", "gpu_memory", "gpus", "set_threads", "threads_in_force", "wait_for"]

# torch's OpenMP reads the policy when torch is imported: setting it later does nothing
_POLICY_KNOWN = policy_known()
_said: set[str] = set()


def fingerprint(threads: int) -> dict[str, str]:
    """Everything besides the program and its inputs that may change a bit of the result."""
    return {
        "decoder": build.decoder_identity(),
        "isa": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "threads": str(threads_in_force(threads)),
        "torch": torch.__version__,
    }


def gpus() -> list[str]:
    """Names of the CUDA devices that PyTorch sees; empty where there is none, or PyTorch was built without CUDA."""
    found: Any = torch.cuda
    return [str(found.get_device_name(i)) for i in range(found.device_count())] if found.is_available() else []


def gpu_memory() -> int:
    """Bytes of the first CUDA device's memory; 0 without one."""
    found: Any = torch.cuda
    return int(found.get_device_properties(0).total_memory) if gpus() else 0


def wait_for(device: torch.device) -> Callable[[], None] | None:
    """What waits until a device has done what it was given; None where calls return when they are done, as on a CPU."""
    return (lambda: torch.cuda.synchronize(device)) if device.type == "cuda" else None


def threads_in_force(threads: int) -> int:
    """``threads``; but 1 where torch was imported without ``OMP_WAIT_POLICY``.

    Waiting threads then spin, and on a busy machine several of them are up to twenty times slower than one.
    """
    return threads if _POLICY_KNOWN else 1


def calm() -> None:
    """One thread, and a sentence, where several would spin while they wait: for what computes with as many as torch has."""
    if not _POLICY_KNOWN and torch.get_num_threads() > 1:
        set_threads(torch.get_num_threads())


def set_threads(threads: int) -> int:
    """Sets torch's intra-op threads; returns the number in force, and warns, once, where that is not the number asked for."""
    allowed = threads_in_force(threads)
    if allowed != threads and not _said:
        text = (
            f"one thread instead of {threads}: torch was imported before OMP_WAIT_POLICY was set, so that waiting threads would "
            "spin; set OMP_WAIT_POLICY=PASSIVE in the environment before Python starts, or in os.environ before torch is imported"
        )
        _said.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    if torch.get_num_threads() != allowed:
        torch.set_num_threads(allowed)
    return torch.get_num_threads()
