"""Circuits to design: the family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.hardware.problems import Arithmetic, Counter, Moore, Shift, TruthTable

__all__ = ["hardware"]


def hardware() -> Problems:
    """Verilog modules to write, simulated beside golden ones; judging needs Icarus Verilog."""
    return Problems(
        name="hardware",
        summary="Circuits to design in Verilog, judged by co-simulation.",
        problems=(TruthTable(), Arithmetic(), Counter(), Moore(), Shift()),
    )
