"""Audits of verifiers, assay's and other people's: the cells behind docs/evidence/verifiers.md."""

from __future__ import annotations

__all__: list[str] = []
