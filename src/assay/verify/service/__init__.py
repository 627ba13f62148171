"""Verifiers over HTTP: a reward service, and clients of it for trainers that keep their own loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.verify.service.client import RewardClient, ServiceError, TrlClient, VerlClient
    from assay.verify.service.desk import Busy, Desk, ServiceLimits, TooMany
    from assay.verify.service.server import application, serve

__all__ = [
    "Busy",
    "Desk",
    "RewardClient",
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
    "desk": "Busy Desk ServiceLimits TooMany",
    "server": "application serve",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.verify.service.{module}"), name)
    raise AttributeError(f"module 'assay.verify.service' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
