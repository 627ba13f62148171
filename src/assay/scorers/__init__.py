"""Scorers: what gives the rewards of a stage, where the tasks' own verifier is not what it should learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.scorers.brier import BrierReward, brier_reward
    from assay.scorers.difficulty_tag import DifficultyTag
    from assay.scorers.from_tasks import FromTasks
    from assay.scorers.generative import GenerativeReward, judge_reward, keep_for_rejection, read_scores, votes
    from assay.scorers.judged_reasoning import FlawedPositive, ThinkingReward, flaw_reward, trust_weight
    from assay.scorers.pairwise import PairwiseJudge, read_preference
    from assay.scorers.policy_aware import PolicyAwareRubric, category_reward, updated_weights
    from assay.scorers.reasoning import first_wrong_step, reasoning_question, vote_on_reasoning
    from assay.scorers.reference import ReferenceProbability
    from assay.scorers.reward_model import RewardModel
    from assay.scorers.rubric import Criterion, Interaction, Rubric, load_rubric
    from assay.scorers.rubric_judge import RubricJudge
    from assay.scorers.spread import SpreadFilter
    from assay.scorers.sql_partial import ReasoningSql
    from assay.scorers.temporal import TemporalBonus
    from assay.scorers.tool_cost import ToolCost

__all__ = [
    "BrierReward",
    "Criterion",
    "DifficultyTag",
    "FlawedPositive",
    "FromTasks",
    "GenerativeReward",
    "Interaction",
    "PairwiseJudge",
    "PolicyAwareRubric",
    "ReasoningSql",
    "ReferenceProbability",
    "RewardModel",
    "Rubric",
    "RubricJudge",
    "SpreadFilter",
    "TemporalBonus",
    "ThinkingReward",
    "ToolCost",
    "brier_reward",
    "category_reward",
    "first_wrong_step",
    "flaw_reward",
    "judge_reward",
    "keep_for_rejection",
    "load_rubric",
    "read_preference",
    "read_scores",
    "reasoning_question",
    "trust_weight",
    "updated_weights",
    "vote_on_reasoning",
    "votes",
]

_HOME = {
    "brier": "BrierReward brier_reward",
    "difficulty_tag": "DifficultyTag",
    "from_tasks": "FromTasks",
    "generative": "GenerativeReward judge_reward keep_for_rejection read_scores votes",
    "judged_reasoning": "FlawedPositive ThinkingReward flaw_reward trust_weight",
    "pairwise": "PairwiseJudge read_preference",
    "policy_aware": "PolicyAwareRubric category_reward updated_weights",
    "reasoning": "first_wrong_step reasoning_question vote_on_reasoning",
    "reference": "ReferenceProbability",
    "reward_model": "RewardModel",
    "rubric": "Criterion Interaction Rubric load_rubric",
    "rubric_judge": "RubricJudge",
    "spread": "SpreadFilter",
    "sql_partial": "ReasoningSql",
    "temporal": "TemporalBonus",
    "tool_cost": "ToolCost",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
