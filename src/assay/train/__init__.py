"""The loop and its stages: a `Run` as a value, and what works through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.train.balance import BalanceLosses
    from assay.train.callbacks import Callback
    from assay.train.collect import collect_groups
    from assay.train.collect_rows import Collect
    from assay.train.columns import ColumnProvider
    from assay.train.cycle import Cycle
    from assay.train.demonstration import Demonstration
    from assay.train.driver import load_run, resume, train
    from assay.train.hint_entropy import HintEntropy
    from assay.train.imitate import Imitate
    from assay.train.imitate_collected import ImitateCollected
    from assay.train.independent_check import IndependentCheck
    from assay.train.interleave import ImitateByGradient, ImitateFailures
    from assay.train.judge_rewards import JudgeReward, MentionsAnswer
    from assay.train.memory import memory_of, weights_of
    from assay.train.method_names import NamedMethod
    from assay.train.mismatch import MismatchCheck, TokenObserver
    from assay.train.models import Built, Folder, Scratch, load_source, model_folder, scratch_tokenizer
    from assay.train.offline import OfflineReinforce
    from assay.train.offline_rows import OneUpdate
    from assay.train.opening import open_stage
    from assay.train.out_of_memory import format_bytes
    from assay.train.outcome import RunOutcome
    from assay.train.policy import Policy
    from assay.train.prefer import Prefer
    from assay.train.providers import (
        Age,
        ConstantValue,
        FailureRate,
        GreedyReward,
        Level,
        PairwiseOutcome,
        Peers,
        PlayerRole,
        PromptConfidence,
        RightSoFar,
        TurnState,
    )
    from assay.train.reference_value import ReferenceValue
    from assay.train.reinforce import Reinforce
    from assay.train.reinforce_runner import ReinforceRunner
    from assay.train.rewarded_rows import RewardedRow
    from assay.train.row_replay import RowReplay
    from assay.train.row_sources import RowSource
    from assay.train.run import ContaminationCheck, Evaluation, Run
    from assay.train.runner import BaseRunner, StageRunner, StepResult
    from assay.train.session import Parts
    from assay.train.stage import Stage
    from assay.train.stage_rows import StageRows
    from assay.train.streams import AsStream, WithStored
    from assay.train.texts import Texts
    from assay.train.turn_rewards import MetaReasoning, ToolReward
    from assay.train.until import Until
    from assay.train.warmup import WarmUp
    from assay.train.weights import WeightSubscriber
    from assay.train.wiring import WiredPart, models_of, updates_of, wire, wire_run

__all__ = [
    "Age",
    "AsStream",
    "BalanceLosses",
    "BaseRunner",
    "Built",
    "Callback",
    "Collect",
    "ColumnProvider",
    "ConstantValue",
    "ContaminationCheck",
    "Cycle",
    "Demonstration",
    "Evaluation",
    "FailureRate",
    "Folder",
    "GreedyReward",
    "HintEntropy",
    "Imitate",
    "ImitateByGradient",
    "ImitateCollected",
    "ImitateFailures",
    "IndependentCheck",
    "JudgeReward",
    "Level",
    "MentionsAnswer",
    "MetaReasoning",
    "MismatchCheck",
    "NamedMethod",
    "OfflineReinforce",
    "OneUpdate",
    "PairwiseOutcome",
    "Parts",
    "Peers",
    "PlayerRole",
    "Policy",
    "Prefer",
    "PromptConfidence",
    "ReferenceValue",
    "Reinforce",
    "ReinforceRunner",
    "RewardedRow",
    "RightSoFar",
    "RowReplay",
    "RowSource",
    "Run",
    "RunOutcome",
    "Scratch",
    "Stage",
    "StageRows",
    "StageRunner",
    "StepResult",
    "Texts",
    "TokenObserver",
    "ToolReward",
    "TurnState",
    "Until",
    "WarmUp",
    "WeightSubscriber",
    "WiredPart",
    "WithStored",
    "collect_groups",
    "format_bytes",
    "load_run",
    "load_source",
    "memory_of",
    "model_folder",
    "models_of",
    "open_stage",
    "resume",
    "scratch_tokenizer",
    "train",
    "updates_of",
    "weights_of",
    "wire",
    "wire_run",
]

_HOME = {
    "reinforce_runner": "ReinforceRunner",
    "out_of_memory": "format_bytes",
    "memory": "memory_of weights_of",
    "columns": "ColumnProvider",
    "collect": "collect_groups",
    "collect_rows": "Collect",
    "cycle": "Cycle",
    "independent_check": "IndependentCheck",
    "balance": "BalanceLosses",
    "callbacks": "Callback",
    "demonstration": "Demonstration",
    "driver": "load_run resume train",
    "offline": "OfflineReinforce",
    "offline_rows": "OneUpdate",
    "hint_entropy": "HintEntropy",
    "imitate": "Imitate",
    "imitate_collected": "ImitateCollected",
    "interleave": "ImitateByGradient ImitateFailures",
    "mismatch": "MismatchCheck TokenObserver",
    "models": "Built Folder Scratch load_source model_folder scratch_tokenizer",
    "method_names": "NamedMethod",
    "opening": "open_stage",
    "outcome": "RunOutcome",
    "policy": "Policy",
    "prefer": "Prefer",
    "judge_rewards": "JudgeReward MentionsAnswer",
    "turn_rewards": "MetaReasoning ToolReward",
    "providers": "Age ConstantValue FailureRate GreedyReward Level PairwiseOutcome Peers PlayerRole PromptConfidence RightSoFar "
    "TurnState",
    "reference_value": "ReferenceValue",
    "reinforce": "Reinforce",
    "rewarded_rows": "RewardedRow",
    "row_replay": "RowReplay",
    "row_sources": "RowSource",
    "runner": "BaseRunner StageRunner StepResult",
    "run": "ContaminationCheck Evaluation Run",
    "session": "Parts",
    "stage": "Stage",
    "stage_rows": "StageRows",
    "streams": "AsStream WithStored",
    "texts": "Texts",
    "until": "Until",
    "warmup": "WarmUp",
    "weights": "WeightSubscriber",
    "wiring": "WiredPart wire wire_run models_of updates_of",
}

_MOVED = {
    "Exported": "assay.publish",
    "export": "assay.publish",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME, moved=_MOVED)
