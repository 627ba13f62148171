"""What a run's numbers say: pass@k and intervals, training metrics, the doctor, trackers, comparisons and the report.

Pure statistics on numpy; reads records, plain dictionaries and JSON lines, never live objects of other packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.measure.accuracy_at_k import EvalRow, EvalTable, TaskOutcomes, best_of_k, eval_items, maj_at_k, pass_at_k, tabulate
    from assay.measure.boundary_rates import Boundary, BoundaryRate, boundary, boundary_of, boundary_set
    from assay.measure.calibration import Calibration, auroc, brier_score, calibration_error, calibration_of
    from assay.measure.cost_of_judges import JudgeCost, judge_costs
    from assay.measure.cot_accuracy import VOTE_RULES, CotPass, cot_pass, reasoned_items
    from assay.measure.doctor import RULES, diagnose
    from assay.measure.findings import Finding, Rule, Severity
    from assay.measure.history import History, Series
    from assay.measure.intervals import Interval, Paired, bootstrap, mean_interval, paired_difference, student, wilson
    from assay.measure.logprob_agreement import MISMATCH_BARS, agreement, comparable
    from assay.measure.membership import auc, gap, mean_auc, mean_log_prob, min_k_prob, self_critique, zlib_ratio
    from assay.measure.metrics import (
        batch_metrics,
        component_mean,
        divergences,
        effective_sample_size,
        fault_rates,
        filtered_share,
        group_metrics,
        length_stats,
        max_ratio,
        reward_stats,
        signal_fraction,
        throughput,
        truncated_share,
    )
    from assay.measure.report import write_report
    from assay.measure.rollout_line import RolloutLine
    from assay.measure.rollouts import (
        ItemChange,
        ItemDiff,
        RolloutFilter,
        Rollouts,
        diff_items,
        evaluation_at,
        read_rollouts,
    )
    from assay.measure.rules_check import RewardHacking
    from assay.measure.rules_heldout import CurriculumStuck, HeldOutDropped, Overfitting, SuspectVerifier
    from assay.measure.rules_machinery import (
        EngineMismatch,
        GraderHangs,
        RisingFaults,
        SilentRewards,
        UnprovenWeights,
        UntrainedWeights,
    )
    from assay.measure.rules_policy import (
        EntropyCollapse,
        EntropyExplosion,
        FormatFailure,
        LengthTruncation,
        NoSignal,
        NotFinite,
        StalledSteps,
    )
    from assay.measure.rules_rate import LearningRateTooHigh
    from assay.measure.rules_reward import PartialCredit, RandomWeights
    from assay.measure.rules_tools import ToolErrors, UnusedTools
    from assay.measure.runs import EvalLine, RunComparison, RunView, compare, read_metrics, read_run
    from assay.measure.selected import SelectedAccuracy, selected_accuracy, selected_of_k
    from assay.measure.tables import (
        comparison_json,
        comparison_table,
        evaluation_json,
        evaluation_table,
        paired_json,
        paired_table,
        render,
    )
    from assay.measure.trackers.mlflow_tracker import MlflowTracker
    from assay.measure.trackers.run_trackers import RunTrackers
    from assay.measure.trackers.send import send_run
    from assay.measure.trackers.state import TRACKERS, TrackerState, recorded_trackers
    from assay.measure.trackers.tensorboard_tracker import TensorBoardTracker
    from assay.measure.trackers.tracker import RolloutTable, TrackedRun, TrackerSession, TrackerSettings
    from assay.measure.trackers.trackio_tracker import TrackioTracker
    from assay.measure.trackers.wandb_tracker import WandbTracker

__all__ = [
    "MISMATCH_BARS",
    "RULES",
    "TRACKERS",
    "VOTE_RULES",
    "Boundary",
    "BoundaryRate",
    "Calibration",
    "CotPass",
    "CurriculumStuck",
    "EngineMismatch",
    "EntropyCollapse",
    "EntropyExplosion",
    "EvalLine",
    "EvalRow",
    "EvalTable",
    "Finding",
    "FormatFailure",
    "GraderHangs",
    "HeldOutDropped",
    "History",
    "Interval",
    "ItemChange",
    "ItemDiff",
    "JudgeCost",
    "LearningRateTooHigh",
    "LengthTruncation",
    "MlflowTracker",
    "NoSignal",
    "NotFinite",
    "Overfitting",
    "Paired",
    "PartialCredit",
    "RandomWeights",
    "RewardHacking",
    "RisingFaults",
    "RolloutFilter",
    "RolloutLine",
    "RolloutTable",
    "Rollouts",
    "Rule",
    "RunComparison",
    "RunTrackers",
    "RunView",
    "SelectedAccuracy",
    "Series",
    "Severity",
    "StalledSteps",
    "SuspectVerifier",
    "TaskOutcomes",
    "TensorBoardTracker",
    "ToolErrors",
    "TrackedRun",
    "TrackerSession",
    "TrackerSettings",
    "TrackerState",
    "TrackioTracker",
    "UnprovenWeights",
    "UntrainedWeights",
    "SilentRewards",
    "UnusedTools",
    "WandbTracker",
    "agreement",
    "auc",
    "auroc",
    "batch_metrics",
    "best_of_k",
    "bootstrap",
    "boundary",
    "boundary_of",
    "boundary_set",
    "brier_score",
    "calibration_error",
    "calibration_of",
    "comparable",
    "compare",
    "comparison_json",
    "comparison_table",
    "component_mean",
    "cot_pass",
    "diagnose",
    "diff_items",
    "divergences",
    "effective_sample_size",
    "eval_items",
    "evaluation_at",
    "evaluation_json",
    "evaluation_table",
    "fault_rates",
    "filtered_share",
    "gap",
    "group_metrics",
    "judge_costs",
    "length_stats",
    "maj_at_k",
    "max_ratio",
    "mean_auc",
    "mean_interval",
    "mean_log_prob",
    "min_k_prob",
    "paired_difference",
    "paired_json",
    "paired_table",
    "pass_at_k",
    "read_metrics",
    "read_rollouts",
    "read_run",
    "reasoned_items",
    "recorded_trackers",
    "render",
    "reward_stats",
    "selected_accuracy",
    "selected_of_k",
    "self_critique",
    "send_run",
    "signal_fraction",
    "student",
    "tabulate",
    "throughput",
    "truncated_share",
    "wilson",
    "write_report",
    "zlib_ratio",
]

_HOME = {
    "calibration": "Calibration auroc brier_score calibration_error calibration_of",
    "boundary_rates": "Boundary BoundaryRate boundary boundary_of boundary_set",
    "cot_accuracy": "VOTE_RULES CotPass cot_pass reasoned_items",
    "doctor": "RULES diagnose",
    "findings": "Finding Rule Severity",
    "history": "History Series",
    "intervals": "Interval Paired bootstrap mean_interval paired_difference student wilson",
    "membership": "auc gap mean_auc mean_log_prob min_k_prob self_critique zlib_ratio",
    "metrics": (
        "batch_metrics component_mean divergences effective_sample_size fault_rates filtered_share "
        "group_metrics length_stats max_ratio reward_stats signal_fraction throughput truncated_share"
    ),
    "cost_of_judges": "JudgeCost judge_costs",
    "logprob_agreement": "agreement comparable MISMATCH_BARS",
    "accuracy_at_k": "TaskOutcomes EvalRow EvalTable best_of_k eval_items maj_at_k pass_at_k tabulate",
    "report": "write_report",
    "rollout_line": "RolloutLine",
    "rollouts": "ItemChange ItemDiff RolloutFilter Rollouts diff_items evaluation_at read_rollouts",
    "rules_check": "RewardHacking",
    "rules_heldout": "CurriculumStuck HeldOutDropped Overfitting SuspectVerifier",
    "rules_machinery": "EngineMismatch GraderHangs RisingFaults SilentRewards UnprovenWeights UntrainedWeights",
    "rules_rate": "LearningRateTooHigh",
    "rules_reward": "PartialCredit RandomWeights",
    "rules_policy": "EntropyCollapse EntropyExplosion FormatFailure LengthTruncation NoSignal NotFinite StalledSteps",
    "rules_tools": "ToolErrors UnusedTools",
    "selected": "SelectedAccuracy selected_accuracy selected_of_k",
    "runs": "RunComparison EvalLine RunView compare read_metrics read_run",
    "tables": "comparison_json comparison_table evaluation_json evaluation_table paired_json paired_table render",
    "trackers.mlflow_tracker": "MlflowTracker",
    "trackers.run_trackers": "RunTrackers",
    "trackers.send": "send_run",
    "trackers.state": "TRACKERS TrackerState recorded_trackers",
    "trackers.tensorboard_tracker": "TensorBoardTracker",
    "trackers.tracker": "RolloutTable TrackedRun TrackerSession TrackerSettings",
    "trackers.trackio_tracker": "TrackioTracker",
    "trackers.wandb_tracker": "WandbTracker",
}

_MOVED = {
    "EventLine": "assay.runs",
    "MetricLine": "assay.runs",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME, moved=_MOVED)
