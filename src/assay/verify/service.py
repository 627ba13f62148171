"""The reward service moved to `assay.interop.service`: asking for a name here says so."""

from __future__ import annotations

from assay.core.util.exports import lazy_exports

__all__: list[str] = []

_NAMES = "Busy Desk RewardClient ScoringRequestHandler ServiceError ServiceLimits TooMany TrlClient VerlClient application serve"

__getattr__, __dir__ = lazy_exports(__name__, {}, moved=dict.fromkeys(_NAMES.split(), "assay.interop.service"))
