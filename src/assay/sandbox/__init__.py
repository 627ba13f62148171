"""Contained execution of what a model wrote: limits, layers, verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.sandbox.attack_probe import IsolationProbe, probe
    from assay.sandbox.backend import Backend, Refused, Worker, WorkerDied
    from assay.sandbox.backends.bubblewrap import Bubblewrap
    from assay.sandbox.backends.container import ContainerBackend, ContainerSettings
    from assay.sandbox.backends.remote import Remote
    from assay.sandbox.backends.runsc import Runsc
    from assay.sandbox.backends.wasi import Wasi
    from assay.sandbox.compiled_program import CompiledProgram
    from assay.sandbox.levels import SANDBOX_LEVELS, ZygoteBackend, backend_named, choose
    from assay.sandbox.limits import Limits
    from assay.sandbox.python_session import PythonSession
    from assay.sandbox.result import Result, SandboxProgram, Status
    from assay.sandbox.sandbox import Sandbox
    from assay.sandbox.toolchain import Language, language, languages

__all__ = [
    "SANDBOX_LEVELS",
    "Backend",
    "Bubblewrap",
    "CompiledProgram",
    "ContainerBackend",
    "ContainerSettings",
    "IsolationProbe",
    "Language",
    "Limits",
    "PythonSession",
    "Refused",
    "Remote",
    "Result",
    "Runsc",
    "Sandbox",
    "SandboxProgram",
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
    "backends.container": "ContainerBackend ContainerSettings",
    "backends.bubblewrap": "Bubblewrap",
    "backends.remote": "Remote",
    "backends.runsc": "Runsc",
    "backends.wasi": "Wasi",
    "compiled_program": "CompiledProgram",
    "levels": "ZygoteBackend backend_named choose SANDBOX_LEVELS",
    "limits": "Limits",
    "attack_probe": "IsolationProbe probe",
    "result": "SandboxProgram Result Status",
    "sandbox": "Sandbox",
    "python_session": "PythonSession",
    "toolchain": "Language language languages",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
