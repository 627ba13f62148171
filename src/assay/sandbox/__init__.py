"""Contained execution of what a model wrote: limits, layers, verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.sandbox.backend import Backend, Refused, Worker, WorkerDied
    from assay.sandbox.backends.boxed import BoxedBackend, Cage
    from assay.sandbox.backends.bubblewrap import Bubblewrap
    from assay.sandbox.backends.remote import Remote
    from assay.sandbox.backends.runsc import Runsc
    from assay.sandbox.backends.wasi import Wasi
    from assay.sandbox.built import Built
    from assay.sandbox.levels import ZygoteBackend, backend_named, choose
    from assay.sandbox.limits import Limits
    from assay.sandbox.probing import Probe, probe
    from assay.sandbox.result import Program, Result, Status
    from assay.sandbox.sandbox import Sandbox
    from assay.sandbox.scope import Scope
    from assay.sandbox.toolchain import Language, language, languages

__all__ = [
    "Backend",
    "BoxedBackend",
    "Bubblewrap",
    "Built",
    "Cage",
    "Language",
    "Limits",
    "Probe",
    "Program",
    "Refused",
    "Remote",
    "Result",
    "Runsc",
    "Sandbox",
    "Scope",
    "Status",
    "Wasi",
    "Worker",
    "WorkerDied",
    "ZygoteBackend",
    "backend_named",
    "choose",
    "language",
    "languages",
    "probe",
]

_HOME = {
    "backend": "Backend Refused Worker WorkerDied",
    "backends.boxed": "BoxedBackend Cage",
    "backends.bubblewrap": "Bubblewrap",
    "backends.remote": "Remote",
    "backends.runsc": "Runsc",
    "backends.wasi": "Wasi",
    "built": "Built",
    "levels": "ZygoteBackend backend_named choose",
    "limits": "Limits",
    "probing": "Probe probe",
    "result": "Program Result Status",
    "sandbox": "Sandbox",
    "scope": "Scope",
    "toolchain": "Language language languages",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.sandbox.{module}"), name)
    raise AttributeError(f"module 'assay.sandbox' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
