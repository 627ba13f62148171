"""Audits of verifiers: what they refuse, what they accept, what stops them, what they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.audit.built_in import BUILT_IN, cases_of
    from assay.audit.cases import AuditCase, case_of, read_cases
    from assay.audit.judge_audit import JudgeAudit, JudgeAuditSettings, JudgeCheck, audit_judge
    from assay.audit.labelled_answers import JudgeCase, judge_cases, read_judge_cases
    from assay.audit.page import audit_page
    from assay.audit.probes import FAMILIES
    from assay.audit.record import Audit, AuditSettings, AuditStatus, Check, Example, Latency, Line, Rate, printable
    from assay.audit.run_audit import CHECKS, audit
    from assay.audit.subject import Subject, resolve

__all__ = [
    "BUILT_IN",
    "CHECKS",
    "FAMILIES",
    "Audit",
    "AuditCase",
    "AuditSettings",
    "AuditStatus",
    "Check",
    "Example",
    "JudgeAudit",
    "JudgeAuditSettings",
    "JudgeCase",
    "JudgeCheck",
    "Latency",
    "Line",
    "Rate",
    "Subject",
    "audit",
    "audit_judge",
    "audit_page",
    "case_of",
    "cases_of",
    "judge_cases",
    "printable",
    "read_cases",
    "read_judge_cases",
    "resolve",
]

_HOME = {
    "built_in": "BUILT_IN cases_of",
    "run_audit": "CHECKS audit",
    "cases": "AuditCase case_of read_cases",
    "judge_audit": "JudgeAudit JudgeAuditSettings JudgeCheck audit_judge",
    "labelled_answers": "JudgeCase judge_cases read_judge_cases",
    "page": "audit_page",
    "probes": "FAMILIES",
    "record": "Audit Check Example Latency Line Rate AuditSettings AuditStatus printable",
    "subject": "Subject resolve",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
