"""The self-test: what assay promises, tried on this machine in minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.selftest.all_parts import PARTS
    from assay.selftest.run_parts_in_turn import SelftestOutcome, report, run_parts
    from assay.selftest.selftest_part import NotAvailable, SelftestContext, SelftestFinding, SelftestPart

__all__ = [
    "PARTS",
    "NotAvailable",
    "SelftestContext",
    "SelftestFinding",
    "SelftestOutcome",
    "SelftestPart",
    "report",
    "run_parts",
]

_HOME = {
    "selftest_part": "SelftestContext SelftestFinding NotAvailable SelftestPart",
    "all_parts": "PARTS",
    "run_parts_in_turn": "SelftestOutcome report run_parts",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
