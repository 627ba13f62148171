"""Records, protocols, errors and seeds: the dictionary that all rooms share. Needs numpy at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.core.batch import Batch, Counts, pack, pack_rows
    from assay.core.canon import FrozenMap, array_digest, canonical, digest, freeze, plain
    from assay.core.columns import TokenColumn
    from assay.core.config import dumps_toml, from_dict, loads_toml, part, replace_at, to_dict
    from assay.core.errors import (
        AssayError,
        CheckpointError,
        ConfigError,
        DataError,
        EngineError,
        GateError,
        HubError,
        InexactResumeError,
        MismatchError,
        MissingExtraError,
        NonFiniteError,
        OutOfMemoryError,
        PlanError,
        RankError,
        RewardError,
        SandboxError,
        StorageError,
        ToolchainError,
        UnknownNameError,
        WeightProofError,
        nearest,
    )
    from assay.core.group import Draw, Group, Outcome
    from assay.core.manifest import Manifest, TensorInfo, manifest_of
    from assay.core.media import Album, Media, Pictures, media_of
    from assay.core.plan import Forward, Offers, Plan, Scope
    from assay.core.protocols import (
        AskPolicy,
        BatchComposer,
        BeginsTexts,
        CallTokenizer,
        CarriesHeads,
        ChatTokenizer,
        ContextManager,
        Conversation,
        Curriculum,
        CurriculumSpec,
        Engine,
        EngineInfo,
        EngineOfMany,
        Environment,
        GroupFilter,
        Guidance,
        GuidanceSpec,
        IndexPolicy,
        IndexPolicySpec,
        Learner,
        LossProgram,
        Moment,
        Obs,
        PassObserver,
        Posed,
        Rehearsal,
        Replay,
        Request,
        Restorable,
        Sampler,
        SamplerParts,
        SamplerSpec,
        ServesOldWeights,
        SharesStates,
        ShowsPictures,
        Snapshots,
        State,
        Stats,
        Step,
        SwapMode,
        TaskSource,
        Tokenizer,
        Tool,
        Tracker,
        Verifier,
    )
    from assay.core.rollout import Call, Completion, Ids, Rollout, Sampling, Span, Stop, ToolResult, ids_of
    from assay.core.sample import Sample, samples, supervised
    from assay.core.score import Fault, Score, SpanScore
    from assay.core.scoring import (
        JudgePort,
        RolloutGroup,
        ScoreContext,
        Scorer,
        ScorerSpec,
        StatelessScorer,
        score_each,
        unanswered,
    )
    from assay.core.seeds import content_split, derive, generator, uniforms
    from assay.core.task import Context, Message, Prefill, Task, World
    from assay.core.thinking import Thinking
    from assay.core.util.wilson import wilson_bounds
    from assay.core.vocab import FullEntropy, VocabStat
    from assay.core.wire import (
        group_from_wire,
        group_to_wire,
        rollout_from_wire,
        rollout_to_wire,
        task_from_wire,
        task_to_wire,
    )

__all__ = [
    "Album",
    "AskPolicy",
    "AssayError",
    "Batch",
    "BatchComposer",
    "BeginsTexts",
    "Call",
    "CallTokenizer",
    "CarriesHeads",
    "ChatTokenizer",
    "CheckpointError",
    "Completion",
    "ConfigError",
    "Context",
    "ContextManager",
    "Conversation",
    "Counts",
    "Curriculum",
    "CurriculumSpec",
    "DataError",
    "Draw",
    "Engine",
    "EngineError",
    "EngineInfo",
    "EngineOfMany",
    "Environment",
    "Fault",
    "Forward",
    "FrozenMap",
    "FullEntropy",
    "GateError",
    "Group",
    "Guidance",
    "GroupFilter",
    "GuidanceSpec",
    "HubError",
    "IndexPolicy",
    "IndexPolicySpec",
    "Moment",
    "Outcome",
    "Posed",
    "Ids",
    "InexactResumeError",
    "JudgePort",
    "Learner",
    "LossProgram",
    "Manifest",
    "Media",
    "Message",
    "MismatchError",
    "MissingExtraError",
    "NonFiniteError",
    "Obs",
    "PassObserver",
    "Offers",
    "OutOfMemoryError",
    "Pictures",
    "Plan",
    "RolloutGroup",
    "ScoreContext",
    "Scorer",
    "ScorerSpec",
    "StatelessScorer",
    "VocabStat",
    "PlanError",
    "Prefill",
    "RankError",
    "Rehearsal",
    "Replay",
    "Request",
    "Restorable",
    "RewardError",
    "Rollout",
    "Sample",
    "Sampler",
    "SamplerParts",
    "SamplerSpec",
    "ServesOldWeights",
    "SharesStates",
    "Sampling",
    "SandboxError",
    "Scope",
    "Score",
    "ShowsPictures",
    "Snapshots",
    "Span",
    "SpanScore",
    "State",
    "Stats",
    "Step",
    "Stop",
    "StorageError",
    "SwapMode",
    "Task",
    "TaskSource",
    "TensorInfo",
    "Thinking",
    "TokenColumn",
    "Tokenizer",
    "Tool",
    "ToolResult",
    "ToolchainError",
    "Tracker",
    "UnknownNameError",
    "Verifier",
    "WeightProofError",
    "World",
    "array_digest",
    "canonical",
    "content_split",
    "derive",
    "digest",
    "dumps_toml",
    "freeze",
    "from_dict",
    "generator",
    "group_from_wire",
    "group_to_wire",
    "ids_of",
    "loads_toml",
    "manifest_of",
    "media_of",
    "nearest",
    "pack",
    "pack_rows",
    "part",
    "plain",
    "replace_at",
    "rollout_from_wire",
    "rollout_to_wire",
    "samples",
    "score_each",
    "supervised",
    "task_from_wire",
    "task_to_wire",
    "to_dict",
    "unanswered",
    "uniforms",
    "wilson_bounds",
]

_HOME = {
    name: module
    for module, names in {
        "batch": "Batch Counts pack pack_rows",
        "canon": "FrozenMap array_digest canonical digest freeze plain",
        "columns": "TokenColumn",
        "config": "dumps_toml from_dict loads_toml part replace_at to_dict",
        "errors": (
            "AssayError CheckpointError ConfigError DataError EngineError GateError HubError InexactResumeError MismatchError "
            "MissingExtraError NonFiniteError OutOfMemoryError PlanError RankError RewardError SandboxError StorageError "
            "ToolchainError UnknownNameError WeightProofError nearest"
        ),
        "group": "Draw Group Outcome",
        "manifest": "Manifest TensorInfo manifest_of",
        "media": "Album Media Pictures media_of",
        "plan": "Forward Offers Plan Scope",
        "vocab": "FullEntropy VocabStat",
        "protocols": (
            "AskPolicy BatchComposer BeginsTexts CallTokenizer CarriesHeads ChatTokenizer ContextManager Conversation "
            "Curriculum CurriculumSpec Engine EngineInfo EngineOfMany Environment GroupFilter Guidance GuidanceSpec "
            "IndexPolicy IndexPolicySpec Learner LossProgram Moment Obs PassObserver Posed Rehearsal Replay Request "
            "Restorable Sampler SamplerParts SamplerSpec ServesOldWeights SharesStates ShowsPictures Snapshots State "
            "Stats Step SwapMode TaskSource Tokenizer Tool Tracker Verifier"
        ),
        "proportion": "wilson_bounds",
        "rollout": "Call Completion Ids Rollout Sampling Span Stop ToolResult ids_of",
        "sample": "Sample samples supervised",
        "score": "Fault Score SpanScore",
        "scoring": "JudgePort RolloutGroup ScoreContext Scorer ScorerSpec StatelessScorer score_each unanswered",
        "seeds": "content_split derive generator uniforms",
        "task": "Context Message Prefill Task World",
        "thinking": "Thinking",
        "wire": "group_from_wire group_to_wire rollout_from_wire rollout_to_wire task_from_wire task_to_wire",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module 'assay.core' has no attribute {name!r}")
    return getattr(import_module(f"assay.core.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
