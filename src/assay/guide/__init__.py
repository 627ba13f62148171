"""What to try next: curricula, guidance, filters, replay and the composition of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.guide.balanced_arms import Balanced
    from assay.guide.bandits import Dump, Exp3, RuleReasoner, Sec
    from assay.guide.cell_curricula import CellBook, CellRule, Memory, Standing
    from assay.guide.compose import Compose
    from assay.guide.curriculum import Frontier, SuccessVariance, Uniform
    from assay.guide.filters import Admitted, Mixed, Refill, ResampleOnCorrect, SuccessWindow
    from assay.guide.guidance import Plain, Prefix, Privileged, Stateless, plain_context, solution_of
    from assay.guide.hints import Ghpo, Seele
    from assay.guide.index_policies import FirstTasks, InOrder
    from assay.guide.replay import Recent, RecentBuffer
    from assay.guide.row_curricula import Bell, HistoryRows, RowBook, RowRule
    from assay.guide.scaler import Scaler, ScalerCurriculum
    from assay.guide.schedules import Piecewise, Ramp, StepSchedule, WhenReached
    from assay.guide.shuffled import ShuffledEvents

__all__ = [
    "Admitted",
    "Balanced",
    "Bell",
    "CellBook",
    "CellRule",
    "Compose",
    "Dump",
    "Exp3",
    "FirstTasks",
    "Frontier",
    "Ghpo",
    "HistoryRows",
    "InOrder",
    "Memory",
    "Mixed",
    "Piecewise",
    "Plain",
    "Prefix",
    "Privileged",
    "Ramp",
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
    "ShuffledEvents",
    "Standing",
    "Stateless",
    "StepSchedule",
    "SuccessVariance",
    "SuccessWindow",
    "Uniform",
    "WhenReached",
    "plain_context",
    "solution_of",
]

_HOME = {
    "balanced_arms": "Balanced",
    "bandits": "Dump Exp3 RuleReasoner Sec",
    "cell_curricula": "CellBook CellRule Memory Standing",
    "compose": "Compose",
    "curriculum": "Frontier SuccessVariance Uniform",
    "filters": "Admitted Mixed Refill ResampleOnCorrect SuccessWindow",
    "guidance": "Plain Prefix Privileged Stateless plain_context solution_of",
    "hints": "Ghpo Seele",
    "index_policies": "FirstTasks InOrder",
    "replay": "Recent RecentBuffer",
    "row_curricula": "Bell HistoryRows RowBook RowRule",
    "scaler": "Scaler ScalerCurriculum",
    "schedules": "Piecewise Ramp StepSchedule WhenReached",
    "shuffled": "ShuffledEvents",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
