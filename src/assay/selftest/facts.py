"""The machine: memory, disk, versions, and what is installed."""

from __future__ import annotations

import os
import resource
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from assay.lab.machine import describe_machine, load_average
from assay.selftest.selftest_part import SelftestContext, SelftestFinding

__all__ = ["facts"]

GIB = 1 << 30
LEAST = 1.0
"""GiB of memory and of disk without which no run gets far."""
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "peft", "httpx", "vllm", "wasmtime", "z3-solver", "matplotlib")


def facts(context: SelftestContext) -> SelftestFinding:
    """Numbers of the machine; fails where memory or disk are too little for any run."""
    from assay.runtime.machine import fingerprint, gpus

    memory, disk = available_memory() / GIB, shutil.disk_usage(context.folder).free / GIB
    failures = [
        f"{what} has {have:.2f} GiB free; a run needs {LEAST:g} at least"
        for what, have in (("memory", memory), (f"the disk of {context.folder.parent}", disk))
        if have < LEAST
    ]
    numbers = {
        "machine": describe_machine(),
        "load": load_average(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_available_gib": round(memory, 2),
        "disk_free_gib": round(disk, 2),
        "peak_memory_of_this_test_gib": round(_peak() / GIB, 2),
        "numerics": fingerprint(threads=1),
        "gpus": gpus(),
        "packages": {name: _version(name) for name in PACKAGES},
    }
    return SelftestFinding(numbers=numbers, failures=tuple(failures))


def available_memory(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes that new work can have without swapping, as the kernel estimates them.

    Args:
        meminfo: the kernel's table.
    """
    rows = (line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
    return 1024 * int(dict(rows)["MemAvailable"].split()[0])


def _peak() -> int:
    """Bytes that this process has held at most."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
