"""A verifier in data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Spec"]

Spec = str | Mapping[str, Any]
"""A verifier's name, or a table of ``name`` and settings."""
