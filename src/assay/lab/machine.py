"""Where a measurement was made, and what else went on there."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["load_average", "describe_machine", "processor"]

PACKAGES = ("torch", "transformers")
"""Libraries whose versions change numbers."""

INSTRUCTIONS = {"avx512_bf16": "AVX-512 with bfloat16", "avx512f": "AVX-512", "avx2": "AVX2", "sve": "SVE", "asimd": "NEON"}
"""Flags of a processor that decide how fast it multiplies, best first: machines that are lent say no more than a maker's name."""


def describe_machine(vllm: str = "") -> str:
    """Processor, cores, and the versions of what computes there, in one line; libraries that are not installed are left out.

    Args:
        vllm: version of a vLLM server that was used beside (`assay.selftest.vllm_version`), which has a Python of its
            own.

    >>> "cores, Python 3." in describe_machine() and describe_machine("0.32.0").endswith(", vLLM 0.32.0")
    True
    """
    found = {"Python": platform.python_version(), **_versions(), **({"vLLM": vllm} if vllm else {})}
    return f"{_processor()}, {os.cpu_count()} cores, {', '.join(f'{name} {number}' for name, number in found.items())}"


def load_average() -> float:
    """Load average of the machine over the last minute: processes that run or wait to run, those of the measurement included."""
    return round(os.getloadavg()[0], 2)


def _versions() -> dict[str, str]:
    """Of the libraries that are installed, without importing them."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def processor(cpuinfo: str) -> str:
    """Name and widest vectors of a processor, from the text of ``/proc/cpuinfo``.

    >>> processor("model name : AMD EPYC" + chr(10) + "flags : fpu sse2 avx2")
    'AMD EPYC (AVX2)'
    """
    found = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in cpuinfo.splitlines())}
    name = found.get("model name", platform.machine())
    flags = found.get("flags", found.get("Features", "")).split()
    widest = next((told for flag, told in INSTRUCTIONS.items() if flag in flags), "")
    return f"{name} ({widest})" if widest else name


def _processor() -> str:
    try:
        return processor(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        return platform.processor() or platform.machine()
