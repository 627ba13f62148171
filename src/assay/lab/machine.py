"""Where a measurement was made, and what else went on there."""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["load", "machine"]


def machine() -> str:
    """Processor, cores and Python in one line.

    >>> "cores, Python 3." in machine()
    True
    """
    return f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def load() -> float:
    """Load average of the machine over the last minute: processes that run or wait to run, those of the measurement included."""
    return round(os.getloadavg()[0], 2)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
