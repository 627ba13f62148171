"""What to try next: curricula, guidance, filters, replay and the composition of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.guide.balanced import Balanced
    from assay.guide.bandits import Dump, RuleReasoner, Sec
    from assay.guide.cells import CellBook, CellRule, Memory, Standing
    from assay.guide.compose import Compose
    from assay.guide.curriculum import Frontier, SuccessVariance, Uniform
    from assay.guide.filters import Mixed, Refill, ResampleOnCorrect, SuccessWindow
    from assay.guide.guidance import Plain, Prefix, Privileged, Stateless
    from assay.guide.hints import Ghpo, Seele
    from assay.guide.index import FirstTasks, InOrder
    from assay.guide.replay import Recent, RecentBuffer
    from assay.guide.rows import Bell, HistoryRows, RowBook, RowRule
    from assay.guide.scaler import Scaler, ScalerCurriculum

__all__ = [
    "Balanced",
    "Bell",
    "CellBook",
    "CellRule",
    "Compose",
    "Dump",
    "FirstTasks",
    "Frontier",
    "Ghpo",
    "HistoryRows",
    "InOrder",
    "Memory",
    "Mixed",
    "Plain",
    "Prefix",
    "Privileged",
    "Recent",
    "RecentBuffer",
    "Refill",
    "ResampleOnCorrect",
    "RowBook",
    "RowRule",
    "RuleReasoner",
    "Scaler",
    "ScalerCurriculum",
    "Sec",
    "Seele",
    "Standing",
    "Stateless",
    "SuccessVariance",
    "SuccessWindow",
    "Uniform",
]

_HOME = {
    "balanced": "Balanced",
    "bandits": "Dump RuleReasoner Sec",
    "cells": "CellBook CellRule Memory Standing",
    "compose": "Compose",
    "curriculum": "Frontier SuccessVariance Uniform",
    "filters": "Mixed Refill ResampleOnCorrect SuccessWindow",
    "guidance": "Plain Prefix Privileged Stateless",
    "hints": "Ghpo Seele",
    "index": "FirstTasks InOrder",
    "replay": "Recent RecentBuffer",
    "rows": "Bell HistoryRows RowBook RowRule",
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
