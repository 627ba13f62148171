"""Verifiers over HTTP: a reward service, and clients of it for trainers that keep their own loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.interop.service.client import RewardClient, ServiceError, TrlClient, VerlClient
    from assay.interop.service.request_handler import Busy, ScoringRequestHandler, ServiceLimits, TooMany
    from assay.interop.service.server import application, serve

__all__ = [
    "Busy",
    "RewardClient",
    "ScoringRequestHandler",
    "ServiceError",
    "ServiceLimits",
    "TooMany",
    "TrlClient",
    "VerlClient",
    "application",
    "serve",
]

_HOME = {
    "client": "RewardClient ServiceError TrlClient VerlClient",
    "request_handler": "Busy ScoringRequestHandler ServiceLimits TooMany",
    "server": "application serve",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
