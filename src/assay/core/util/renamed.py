"""Public names that are called otherwise now, by package: asking for an old one says the new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from assay.core.errors import ConfigError

__all__ = ["RENAMED", "RenamedMembers", "refuse_old_keywords", "refuse_renamed"]

Made = TypeVar("Made", bound=Callable[..., Any])

RENAMED: Mapping[str, Mapping[str, str]] = {
    "assay.runs": {"guarded": "storage_errors"},
    "assay.interop": {"loaded": "load_verifier"},
    "assay.audit": {"Case": "AuditCase", "Settings": "AuditSettings", "Status": "AuditStatus"},
    "assay.core": {
        "Rehearsal": "PerturbsWeights",
        "World": "TaskView",
        "supervised": "supervised_sample",
        "unanswered": "unanswered_score",
    },
    "assay_control": {"normalised": "normalise_return"},
    "assay.curate": {
        "Progress": "CurationProgress",
        "Seen": "StepNotes",
        "Step": "CurationStep",
        "Texts": "HashedTexts",
        "contaminated": "find_contamination",
        "filled": "fill_gaps",
    },
    "assay.interop.service": {"Desk": "ScoringRequestHandler"},
    "assay.lab": {
        "Ending": "RunEnding",
        "Found": "ComparisonResult",
        "Gate": "LearningGate",
        "Member": "StudyRun",
        "News": "StudyObserver",
        "work_off": "run_all",
    },
    "assay.measure": {"Comparison": "RunComparison", "EvalItem": "TaskOutcomes", "paired": "paired_difference"},
    "assay.objective": {
        "Evaluation": "ObjectiveEvaluation",
        "Padded": "PaddedInputs",
        "Wanted": "RequiredInputs",
        "composed": "resolve_method",
        "named": "build_method",
        "wanted": "required_inputs",
    },
    "assay.objective.methods": {"named": "build_method"},
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
    "assay.tasks": {
        "Mixture": "TaskMixture",
        "Place": "TaskCoordinates",
        "reseeded": "with_seed",
        "scaled": "make_program_family",
        "written": "with_form",
    },
    "assay.testing": {"attempt": "rollout_of", "graded": "graded_group"},
    "assay.train": {"Outcome": "RunOutcome"},
    "assay.verify": {
        "Joint": "CompositeVerifier",
        "Plan": "PlanVerifier",
        "attempt": "rollout_of",
        "described": "describe_constraints",
        "posed": "task_and_rollout",
    },
    "assay.verify.code": {"Place": "ProgramPlace", "applied": "apply_edits"},
    "assay.verify.math": {"Verdict": "MathVerdict"},
    "assay.verify.proof": {"Checked": "ProofCheck", "Checker": "ProofChecker", "Database": "MetamathDatabase"},
}


def refuse_renamed(part: type, renamed: Mapping[str, str]) -> None:
    """Refuses a class of a user's that defines a member under its old name, which nothing would ask for.

    Args:
        part: the class.
        renamed: old names of members to new ones.

    Raises:
        ConfigError: it defines one; says the new name.

    >>> refuse_renamed(type("Mine", (), {"attempts": ("x",)}), {"attempts": "rollout_columns"})
    Traceback (most recent call last):
    assay.core.errors.ConfigError: Mine.attempts is called rollout_columns now; rename it
    """
    for old, new in renamed.items():
        if old in vars(part):
            raise ConfigError(f"{part.__qualname__}.{old} is called {new} now; rename it")


def refuse_old_keywords(renamed: Mapping[str, str]) -> Callable[[Made], Made]:
    """A decorator of a function, or of a class that is called to make one: an argument under its old name says the new one.

    Args:
        renamed: old names of keyword arguments to new ones.

    >>> @refuse_old_keywords({"attempts": "rollouts"})
    ... def draw(*, rollouts: int) -> int:
    ...     return rollouts
    >>> draw(rollouts=3)
    3
    >>> draw(attempts=3)
    Traceback (most recent call last):
    assay.core.errors.ConfigError: draw(attempts=...) is called rollouts now; write draw(rollouts=...)
    """

    def decorate(made: Made) -> Made:
        call: Callable[..., Any] = made.__init__ if isinstance(made, type) else made  # type: ignore[misc]

        @wraps(call)
        def call_checked(*args: Any, **keywords: Any) -> Any:
            for old in renamed.keys() & keywords.keys():
                name = getattr(made, "__qualname__", str(made))
                raise ConfigError(f"{name}({old}=...) is called {renamed[old]} now; write {name}({renamed[old]}=...)")
            return call(*args, **keywords)

        if not isinstance(made, type):
            return cast("Made", call_checked)
        made.__init__ = call_checked  # type: ignore[misc]
        return cast("Made", made)

    return decorate


class RenamedMembers:
    """Base of records some of whose members have new names: asking for an old one says the new one."""

    __slots__ = ()

    renamed_members: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # pragma: no branch -- to a type checker an old name is simply not there

        def __getattr__(self, name: str) -> object:
            kind = type(self)
            if new := kind.renamed_members.get(name):
                raise AttributeError(f"{kind.__name__}.{name} is called {new} now")
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
