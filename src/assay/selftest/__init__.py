"""The self-test: what assay promises, tried on this machine in minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.selftest.agreement import AGREEMENT_BAR, compare_with_learner
    from assay.selftest.all_parts import PARTS
    from assay.selftest.run_parts_in_turn import SelftestOutcome, report, run_parts
    from assay.selftest.selftest_part import NotAvailable, SelftestContext, SelftestFinding, SelftestPart
    from assay.selftest.vllm_server import serve_vllm, vllm_executable, vllm_version

__all__ = [
    "AGREEMENT_BAR",
    "PARTS",
    "NotAvailable",
    "SelftestContext",
    "SelftestFinding",
    "SelftestOutcome",
    "SelftestPart",
    "compare_with_learner",
    "report",
    "run_parts",
    "serve_vllm",
    "vllm_executable",
    "vllm_version",
]

_HOME = {
    "vllm_server": "serve_vllm vllm_executable vllm_version",
    "agreement": "AGREEMENT_BAR compare_with_learner",
    "selftest_part": "SelftestContext SelftestFinding NotAvailable SelftestPart",
    "all_parts": "PARTS",
    "run_parts_in_turn": "SelftestOutcome report run_parts",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
