"""The self-test: what assay promises, tried on this machine in minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.selftest.part import Bench, Finding, NotAvailable, Part
    from assay.selftest.parts import PARTS
    from assay.selftest.running import Outcome, report, run_parts

__all__ = [
    "Bench",
    "Finding",
    "NotAvailable",
    "Outcome",
    "PARTS",
    "Part",
    "report",
    "run_parts",
]

_HOME = {
    "part": "Bench Finding NotAvailable Part",
    "parts": "PARTS",
    "running": "Outcome report run_parts",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
