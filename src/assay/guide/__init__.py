"""What to try next: curricula, guidance, filters, replay and the composition of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.guide.balanced_arms import Balanced
    from assay.guide.bandits import Dump, Exp3, RuleReasoner, Sec
    from assay.guide.blends import BLENDS, blend
    from assay.guide.box_curricula import AlpGmm
    from assay.guide.catalog import guides
    from assay.guide.cell_curricula import CellBook, CellRule, Memory, Standing
    from assay.guide.classroom import Again
    from assay.guide.compose import Compose, Recompose, replays_apart
    from assay.guide.curriculum import Frontier, SuccessVariance, Uniform
    from assay.guide.data_resets import DataReset
    from assay.guide.filters import Admitted, Mixed, Refill, ResampleOnCorrect, SkipSolved, SuccessWindow
    from assay.guide.guidance import Plain, Prefix, Privileged, Stateless, plain_context, solution_of
    from assay.guide.guide_record import Guide
    from assay.guide.hint_composers import DifficultyWeights, PlainFailures
    from assay.guide.hints import Ghpo, Seele
    from assay.guide.index_policies import FirstTasks, InOrder
    from assay.guide.plain_prompt import GuideHint
    from assay.guide.pope import AdHint, Pope
    from assay.guide.promoted_levels import Promoted
    from assay.guide.prompt_values import PromptValue
    from assay.guide.replay import DeferredBuffer, DeferredReplay, Recent, RecentBuffer
    from assay.guide.rethink import Rethink, RewrittenAnswers
    from assay.guide.row_book import RowBook, RowRule
    from assay.guide.row_curricula import Bell, HistoryRows
    from assay.guide.row_phases import HardFocus, PromptPair, Retrospective, Rounds
    from assay.guide.run_searches import MixtureSearch, TransferSearch
    from assay.guide.scaler import Scaler, ScalerCurriculum
    from assay.guide.schedules import Piecewise, Ramp, StepSchedule, WhenFlat, WhenReached
    from assay.guide.shuffled import ShuffledEvents
    from assay.guide.start_states import StartStates
    from assay.guide.trace_prefixes import Quarters, TracePrefix

__all__ = [
    "BLENDS",
    "AdHint",
    "Admitted",
    "Again",
    "AlpGmm",
    "Balanced",
    "Bell",
    "CellBook",
    "CellRule",
    "Compose",
    "DataReset",
    "DeferredReplay",
    "DeferredBuffer",
    "DifficultyWeights",
    "Dump",
    "Exp3",
    "FirstTasks",
    "Frontier",
    "Ghpo",
    "Guide",
    "GuideHint",
    "HardFocus",
    "HistoryRows",
    "InOrder",
    "Memory",
    "Mixed",
    "MixtureSearch",
    "Piecewise",
    "Plain",
    "PlainFailures",
    "Pope",
    "Prefix",
    "Privileged",
    "Promoted",
    "PromptPair",
    "PromptValue",
    "Quarters",
    "Ramp",
    "Recent",
    "RecentBuffer",
    "Recompose",
    "Refill",
    "ResampleOnCorrect",
    "Rethink",
    "RewrittenAnswers",
    "Retrospective",
    "Rounds",
    "RowBook",
    "RowRule",
    "RuleReasoner",
    "Scaler",
    "ScalerCurriculum",
    "Sec",
    "Seele",
    "ShuffledEvents",
    "SkipSolved",
    "Standing",
    "StartStates",
    "Stateless",
    "StepSchedule",
    "SuccessVariance",
    "SuccessWindow",
    "TracePrefix",
    "TransferSearch",
    "Uniform",
    "WhenFlat",
    "WhenReached",
    "blend",
    "guides",
    "plain_context",
    "replays_apart",
    "solution_of",
]

_HOME = {
    "balanced_arms": "Balanced",
    "bandits": "Dump Exp3 RuleReasoner Sec",
    "blends": "BLENDS blend",
    "box_curricula": "AlpGmm",
    "catalog": "guides",
    "cell_curricula": "CellBook CellRule Memory Standing",
    "classroom": "Again",
    "compose": "Compose Recompose replays_apart",
    "curriculum": "Frontier SuccessVariance Uniform",
    "filters": "Admitted Mixed Refill ResampleOnCorrect SkipSolved SuccessWindow",
    "guidance": "Plain Prefix Privileged Stateless plain_context solution_of",
    "guide_record": "Guide",
    "data_resets": "DataReset",
    "hint_composers": "DifficultyWeights PlainFailures",
    "hints": "Ghpo Seele",
    "index_policies": "FirstTasks InOrder",
    "plain_prompt": "GuideHint",
    "rethink": "Rethink RewrittenAnswers",
    "pope": "AdHint Pope",
    "promoted_levels": "Promoted",
    "prompt_values": "PromptValue",
    "replay": "DeferredReplay DeferredBuffer Recent RecentBuffer",
    "row_book": "RowBook RowRule",
    "row_curricula": "Bell HistoryRows",
    "row_phases": "HardFocus PromptPair Retrospective Rounds",
    "run_searches": "MixtureSearch TransferSearch",
    "scaler": "Scaler ScalerCurriculum",
    "schedules": "Piecewise Ramp StepSchedule WhenFlat WhenReached",
    "shuffled": "ShuffledEvents",
    "start_states": "StartStates",
    "trace_prefixes": "Quarters TracePrefix",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
