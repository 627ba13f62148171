"""Contained execution of what a model wrote: limits, layers, verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

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

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
