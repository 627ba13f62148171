"""The engine of a sampler process, from the settings by which a run builds its own beside a learner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.errors import ConfigError
from assay.core.protocols import Engine
from assay.runtime.engine.settings import Auto, EngineSpec, InProcess, Native

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel

__all__ = ["sampler_engine"]


def sampler_engine(spec: EngineSpec, model: AnyModel) -> Engine:
    """An engine of a model that is trained elsewhere.

    Raises:
        ConfigError: an engine that is no part of a process.
    """
    from assay.runtime.engine.native import NativeEngine
    from assay.runtime.models.hub_model import hub_of
    from assay.runtime.models.model import Model

    if isinstance(spec, Auto):
        spec = Native() if isinstance(model, Model) else InProcess()
    if isinstance(spec, Native) and isinstance(model, Model):
        return NativeEngine(model, max_batch=spec.max_batch, dtype=spec.dtype, kernel=spec.kernel, digests="mixed")
    if isinstance(spec, InProcess):
        return spec.serve(hub_of(model))
    raise ConfigError(f"Run.engine={spec} cannot serve this model in a sampler process; use Auto(), Native() or InProcess()")
