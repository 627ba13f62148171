"""Audits of verifiers: what they refuse, what they accept, what stops them, what they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.audit.auditing import CHECKS, audit
    from assay.audit.cases import Case, case_of, read_cases
    from assay.audit.page import audit_page
    from assay.audit.probes import FAMILIES
    from assay.audit.record import Audit, Check, Example, Latency, Line, Rate, Settings, Status
    from assay.audit.subject import Subject, resolve

__all__ = [
    "CHECKS",
    "FAMILIES",
    "Audit",
    "Case",
    "Check",
    "Example",
    "Latency",
    "Line",
    "Rate",
    "Settings",
    "Status",
    "Subject",
    "audit",
    "audit_page",
    "case_of",
    "read_cases",
    "resolve",
]

_HOME = {
    "auditing": "CHECKS audit",
    "cases": "Case case_of read_cases",
    "page": "audit_page",
    "probes": "FAMILIES",
    "record": "Audit Check Example Latency Line Rate Settings Status",
    "subject": "Subject resolve",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.audit.{module}"), name)
    raise AttributeError(f"module 'assay.audit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
