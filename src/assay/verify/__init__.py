"""How good: verifiers that judge an answer, and the pool that makes any of them killable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.verify.abilities import Abilities, abilities_of
    from assay.verify.answer import AnswerPlace, AnswerVerifier
    from assay.verify.attempts import attempt, posed
    from assay.verify.constraints import Constraint, Instructions, Relation, constraint_of, described
    from assay.verify.exact import ExactMatch, FormatIs, Together
    from assay.verify.function import RewardFunction
    from assay.verify.joint import Joint
    from assay.verify.math.verifier import MathAnswer
    from assay.verify.named import NamedVerifier, about, verifier, verifiers
    from assay.verify.routed import Routed
    from assay.verify.scorers import Criterion, FromTasks, ReferenceProbability, Rubric, RubricJudge, SpreadFilter
    from assay.verify.structure.countdown import Countdown
    from assay.verify.structure.graph import Graph, GraphAnswer
    from assay.verify.structure.grid import GridMatch
    from assay.verify.structure.maze import MazePath
    from assay.verify.structure.plan import Plan
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
    from assay.verify.text.tags import Combine, Formatted, TagFormat
    from assay.verify.verdict import judge
    from assay.verify.workers.pool import ScoringPool

__all__ = [
    "Abilities",
    "Plan",
    "AnswerPlace",
    "AnswerVerifier",
    "Assignment",
    "Choice",
    "Classification",
    "Combine",
    "Constraint",
    "Countdown",
    "Criterion",
    "ExactMatch",
    "FormatIs",
    "FromTasks",
    "Formatted",
    "Graph",
    "GraphAnswer",
    "Instructions",
    "Joint",
    "JsonMatch",
    "JsonSchema",
    "ListMatch",
    "MathAnswer",
    "MazePath",
    "NamedVerifier",
    "Numeric",
    "Closeness",
    "PatternMatch",
    "Percent",
    "RankMetric",
    "Ranking",
    "ReferenceProbability",
    "Relation",
    "RewardFunction",
    "Routed",
    "Rubric",
    "RubricJudge",
    "Satisfies",
    "ScoringPool",
    "SetMatch",
    "SpreadFilter",
    "TagFormat",
    "Together",
    "abilities_of",
    "about",
    "attempt",
    "constraint_of",
    "described",
    "judge",
    "posed",
    "verifier",
    "verifiers",
    "GridMatch",
]

_HOME = {
    "abilities": "Abilities abilities_of",
    "answer": "AnswerPlace AnswerVerifier",
    "attempts": "attempt posed",
    "constraints": "Constraint Instructions Relation constraint_of described",
    "exact": "ExactMatch FormatIs Together",
    "function": "RewardFunction",
    "joint": "Joint",
    "math.verifier": "MathAnswer",
    "named": "NamedVerifier about verifier verifiers",
    "routed": "Routed",
    "scorers": "Criterion FromTasks ReferenceProbability Rubric RubricJudge SpreadFilter",
    "structure.countdown": "Countdown",
    "structure.graph": "Graph GraphAnswer",
    "structure.grid": "GridMatch",
    "structure.maze": "MazePath",
    "structure.plan": "Plan",
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
    "text.tags": "Combine Formatted TagFormat",
    "verdict": "judge",
    "workers.pool": "ScoringPool",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
