"""What to try next: curricula, guidance, replay and the composition of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.guide.balanced import Balanced
    from assay.guide.compose import Compose
    from assay.guide.curriculum import CellCurriculum, Frontier, Standing, SuccessVariance, Uniform, Weighting
    from assay.guide.guidance import Plain, Prefix, Privileged
    from assay.guide.replay import Recent, RecentBuffer
    from assay.guide.scaler import Scaler, ScalerCurriculum

__all__ = [
    "Balanced",
    "CellCurriculum",
    "Compose",
    "Frontier",
    "Plain",
    "Prefix",
    "Privileged",
    "Recent",
    "RecentBuffer",
    "Scaler",
    "ScalerCurriculum",
    "Standing",
    "SuccessVariance",
    "Uniform",
    "Weighting",
]

_HOME = {
    "balanced": "Balanced",
    "compose": "Compose",
    "curriculum": "CellCurriculum Frontier Standing SuccessVariance Uniform Weighting",
    "guidance": "Plain Prefix Privileged",
    "replay": "Recent RecentBuffer",
    "scaler": "Scaler ScalerCurriculum",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.guide.{module}"), name)
    raise AttributeError(f"module 'assay.guide' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
