"""Public names that are called otherwise now, by package: asking for an old one says the new one."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["RENAMED"]

RENAMED: Mapping[str, Mapping[str, str]] = {
    "assay.audit": {"Case": "AuditCase", "Settings": "AuditSettings", "Status": "AuditStatus"},
    "assay.core": {"Rehearsal": "PerturbsWeights", "World": "TaskView"},
    "assay.curate": {"Progress": "CurationProgress", "Seen": "StepNotes", "Step": "CurationStep", "Texts": "HashedTexts"},
    "assay.interop.service": {"Desk": "ScoringRequestHandler"},
    "assay.lab": {
        "Ending": "RunEnding",
        "Found": "ComparisonResult",
        "Gate": "LearningGate",
        "Member": "StudyRun",
        "News": "StudyObserver",
        "work_off": "run_all",
    },
    "assay.measure": {"Comparison": "RunComparison", "EvalItem": "TaskOutcomes"},
    "assay.objective": {
        "Evaluation": "ObjectiveEvaluation",
        "Padded": "PaddedInputs",
        "Wanted": "RequiredInputs",
        "wanted": "required_inputs",
    },
    "assay.rollout": {"Reader": "AnswerReader"},
    "assay.runtime": {"Lagged": "StaleEngine", "Ranks": "Collectives", "Schedule": "LearningRateSchedule"},
    "assay.sandbox": {
        "BoxedBackend": "ContainerBackend",
        "Built": "CompiledProgram",
        "Cage": "ContainerSettings",
        "Probe": "IsolationProbe",
        "Program": "SandboxProgram",
        "Scope": "PythonSession",
    },
    "assay.select": {"Told": "ItemScores", "Verdict": "ArmVerdict"},
    "assay.selftest": {
        "Bench": "SelftestContext",
        "Finding": "SelftestFinding",
        "Outcome": "SelftestOutcome",
        "Part": "SelftestPart",
    },
    "assay.tasks": {"Mixture": "TaskMixture", "Place": "TaskCoordinates"},
    "assay.testing": {"attempt": "rollout_of"},
    "assay.train": {"Outcome": "RunOutcome"},
    "assay.verify": {"Joint": "CompositeVerifier", "Plan": "PlanVerifier", "attempt": "rollout_of", "posed": "task_and_rollout"},
    "assay.verify.code": {"Place": "ProgramPlace"},
    "assay.verify.math": {"Verdict": "MathVerdict"},
    "assay.verify.proof": {"Checked": "ProofCheck", "Checker": "ProofChecker", "Database": "MetamathDatabase"},
}
