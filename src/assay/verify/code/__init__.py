"""Verifiers of programs: what a model wrote is run in the sandbox, and judged by what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.verify.code.base import CaseVerifier, ProgramVerifier
    from assay.verify.code.call import CodeCall, same_value
    from assay.verify.code.diffs import edits_in_diff
    from assay.verify.code.edits import Edit, Unapplied, apply_edits, edits_in
    from assay.verify.code.output import CodeOutput, Compare, same_text
    from assay.verify.code.program import ProgramPlace, program_in
    from assay.verify.code.quality import TestQuality
    from assay.verify.code.repository import RepositoryTests
    from assay.verify.code.unit import UnitTests
    from assay.verify.code.workers import close_sandboxes, sandbox_of

__all__ = [
    "CaseVerifier",
    "CodeCall",
    "CodeOutput",
    "Compare",
    "Edit",
    "ProgramPlace",
    "ProgramVerifier",
    "RepositoryTests",
    "TestQuality",
    "Unapplied",
    "UnitTests",
    "apply_edits",
    "close_sandboxes",
    "edits_in",
    "edits_in_diff",
    "program_in",
    "same_text",
    "same_value",
    "sandbox_of",
]

_HOME = {
    "base": "CaseVerifier ProgramVerifier",
    "call": "CodeCall same_value",
    "diffs": "edits_in_diff",
    "edits": "Edit Unapplied apply_edits edits_in",
    "output": "CodeOutput Compare same_text",
    "program": "ProgramPlace program_in",
    "quality": "TestQuality",
    "repository": "RepositoryTests",
    "unit": "UnitTests",
    "workers": "close_sandboxes sandbox_of",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
