"""Scorers: what gives the rewards of a stage, where the tasks' own verifier is not what it should learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.scorers.brier import BrierReward, brier_reward
    from assay.scorers.from_tasks import FromTasks
    from assay.scorers.reasoning import first_wrong_step, reasoning_question, vote_on_reasoning
    from assay.scorers.reference import ReferenceProbability
    from assay.scorers.rubric import Criterion, Interaction, Rubric, load_rubric
    from assay.scorers.rubric_judge import RubricJudge
    from assay.scorers.spread import SpreadFilter

__all__ = [
    "BrierReward",
    "Criterion",
    "FromTasks",
    "Interaction",
    "ReferenceProbability",
    "Rubric",
    "RubricJudge",
    "SpreadFilter",
    "brier_reward",
    "first_wrong_step",
    "load_rubric",
    "reasoning_question",
    "vote_on_reasoning",
]

_HOME = {
    "brier": "BrierReward brier_reward",
    "from_tasks": "FromTasks",
    "reasoning": "first_wrong_step reasoning_question vote_on_reasoning",
    "reference": "ReferenceProbability",
    "rubric": "Criterion Interaction Rubric load_rubric",
    "rubric_judge": "RubricJudge",
    "spread": "SpreadFilter",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
