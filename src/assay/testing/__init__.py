"""Fakes, planted faults, and the contracts that built-in parts and users' own must pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.testing.columns import check_column_provider
    from assay.testing.contracts import ContractError, Report, check_environment, check_verifier
    from assay.testing.conversations import check_context_manager, check_sampler
    from assay.testing.engines import check_engine
    from assay.testing.fakes import Ask, CharCodec, FakeLearner, ScriptedEngine
    from assay.testing.faults import BaseWeights, StaleModel, StaleTensor, WrongLogprobs, WrongTiedHead
    from assay.testing.guides import check_curriculum, check_filter, check_guidance
    from assay.testing.index_policies import check_index_policy
    from assay.testing.judge_server import JudgeServer
    from assay.testing.learners import check_learner
    from assay.testing.models import random_model
    from assay.testing.objective import check_objective, check_term, objective_around, random_batch
    from assay.testing.problems import check_problem
    from assay.testing.records import as_outcomes, graded_group
    from assay.testing.schedules import check_schedule
    from assay.testing.scoring import ScriptedScoring, check_scorer
    from assay.testing.slips import fuzz
    from assay.testing.sources import check_task_source
    from assay.testing.stages import check_stage
    from assay.testing.statistics import check_statistic
    from assay.testing.streams import example_levels, first_task, stream_digest
    from assay.testing.tools import check_tool
    from assay.verify.rollouts import rollout_of

__all__ = [
    "Ask",
    "BaseWeights",
    "CharCodec",
    "ContractError",
    "FakeLearner",
    "JudgeServer",
    "Report",
    "ScriptedEngine",
    "ScriptedScoring",
    "StaleModel",
    "StaleTensor",
    "WrongLogprobs",
    "WrongTiedHead",
    "as_outcomes",
    "check_column_provider",
    "check_context_manager",
    "check_curriculum",
    "check_engine",
    "check_environment",
    "check_filter",
    "check_guidance",
    "check_index_policy",
    "check_learner",
    "check_objective",
    "check_problem",
    "check_sampler",
    "check_schedule",
    "check_scorer",
    "check_stage",
    "check_statistic",
    "check_task_source",
    "check_term",
    "check_tool",
    "check_verifier",
    "example_levels",
    "first_task",
    "fuzz",
    "graded_group",
    "objective_around",
    "random_batch",
    "random_model",
    "rollout_of",
    "stream_digest",
]

_HOME = {
    "slips": "fuzz",
    "assay.verify.rollouts": "rollout_of",
    "engines": "check_engine",
    "columns": "check_column_provider",
    "learners": "check_learner",
    "contracts": "ContractError Report check_environment check_verifier",
    "conversations": "check_context_manager check_sampler",
    "fakes": "Ask CharCodec FakeLearner ScriptedEngine",
    "faults": "BaseWeights StaleModel StaleTensor WrongLogprobs WrongTiedHead",
    "guides": "check_curriculum check_filter check_guidance",
    "index_policies": "check_index_policy",
    "judge_server": "JudgeServer",
    "models": "random_model",
    "objective": "check_objective check_term objective_around random_batch",
    "problems": "check_problem",
    "records": "as_outcomes graded_group",
    "schedules": "check_schedule",
    "scoring": "ScriptedScoring check_scorer",
    "sources": "check_task_source",
    "stages": "check_stage",
    "statistics": "check_statistic",
    "streams": "stream_digest example_levels first_task",
    "tools": "check_tool",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
