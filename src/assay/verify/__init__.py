"""How good: verifiers that judge an answer, and the pool that makes any of them killable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.verify.abilities import Abilities, abilities_of
    from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier
    from assay.verify.catalog import NamedVerifier, about, verifier, verifiers
    from assay.verify.composite import CompositeVerifier
    from assay.verify.constraints import Constraint, Instructions, Relation, constraint_of, describe_constraints
    from assay.verify.exact import ExactMatch, FormatIs, Together
    from assay.verify.math.verifier import MathAnswer
    from assay.verify.reward_function import RewardFunction
    from assay.verify.rollouts import rollout_of, task_and_rollout
    from assay.verify.routing import Routed
    from assay.verify.structure.countdown import Countdown
    from assay.verify.structure.graph import Graph, GraphAnswer
    from assay.verify.structure.grid import GridMatch
    from assay.verify.structure.maze import MazePath
    from assay.verify.structure.plan import PlanVerifier
    from assay.verify.structure.roles import Assignment
    from assay.verify.structure.sat import Satisfies
    from assay.verify.text.choice import Choice
    from assay.verify.text.items import ListMatch, SetMatch
    from assay.verify.text.jsonvalue import JsonMatch
    from assay.verify.text.label import Classification
    from assay.verify.text.number import Closeness, Numeric, Percent
    from assay.verify.text.pattern import PatternMatch
    from assay.verify.text.ranking import Ranking, RankMetric
    from assay.verify.text.schema import JsonSchema
    from assay.verify.text.tags import Combine, Formatted, TagFormat, TagShare
    from assay.verify.user_reward import UserReward
    from assay.verify.verdict import judge
    from assay.verify.weighted_rewards import RewardPart, WeightedRewards
    from assay.verify.workers.pool import ScoringPool

__all__ = [
    "Abilities",
    "AnswerPlace",
    "AnswerVerifier",
    "Assignment",
    "Choice",
    "Classification",
    "Closeness",
    "Combine",
    "CompositeVerifier",
    "Constraint",
    "Countdown",
    "ExactMatch",
    "FormatIs",
    "Formatted",
    "Graph",
    "GraphAnswer",
    "GridMatch",
    "Instructions",
    "JsonMatch",
    "JsonSchema",
    "ListMatch",
    "MathAnswer",
    "MazePath",
    "NamedVerifier",
    "Numeric",
    "PatternMatch",
    "Percent",
    "PlanVerifier",
    "RankMetric",
    "Ranking",
    "Relation",
    "RewardFunction",
    "RewardPart",
    "Routed",
    "Satisfies",
    "ScoringPool",
    "SetMatch",
    "TagFormat",
    "TagShare",
    "Together",
    "UserReward",
    "WeightedRewards",
    "abilities_of",
    "about",
    "constraint_of",
    "describe_constraints",
    "judge",
    "rollout_of",
    "task_and_rollout",
    "verifier",
    "verifiers",
]

_HOME = {
    "abilities": "Abilities abilities_of",
    "answer_verifier": "AnswerPlace AnswerVerifier",
    "rollouts": "rollout_of task_and_rollout",
    "constraints": "Constraint Instructions Relation constraint_of describe_constraints",
    "exact": "ExactMatch FormatIs Together",
    "reward_function": "RewardFunction",
    "composite": "CompositeVerifier",
    "math.verifier": "MathAnswer",
    "catalog": "NamedVerifier about verifier verifiers",
    "routing": "Routed",
    "structure.countdown": "Countdown",
    "structure.graph": "Graph GraphAnswer",
    "structure.grid": "GridMatch",
    "structure.maze": "MazePath",
    "structure.plan": "PlanVerifier",
    "structure.roles": "Assignment",
    "structure.sat": "Satisfies",
    "text.choice": "Choice",
    "text.items": "ListMatch SetMatch",
    "text.jsonvalue": "JsonMatch",
    "text.label": "Classification",
    "text.number": "Closeness Numeric Percent",
    "text.pattern": "PatternMatch",
    "text.ranking": "RankMetric Ranking",
    "text.schema": "JsonSchema",
    "text.tags": "Combine Formatted TagFormat TagShare",
    "user_reward": "UserReward",
    "verdict": "judge",
    "weighted_rewards": "RewardPart WeightedRewards",
    "workers.pool": "ScoringPool",
}

_MOVED = {
    "Criterion": "assay.scorers",
    "FromTasks": "assay.scorers",
    "ReferenceProbability": "assay.scorers",
    "Rubric": "assay.scorers",
    "RubricJudge": "assay.scorers",
    "SpreadFilter": "assay.scorers",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME, moved=_MOVED)
