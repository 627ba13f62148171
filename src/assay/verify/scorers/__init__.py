"""Scorers: what gives the rewards of a stage, where the tasks' own verifier is not what it should learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.verify.scorers.from_tasks import FromTasks
    from assay.verify.scorers.reference import ReferenceProbability
    from assay.verify.scorers.rubric import Criterion, Rubric
    from assay.verify.scorers.rubric_judge import RubricJudge
    from assay.verify.scorers.spread import SpreadFilter

__all__ = ["Criterion", "FromTasks", "ReferenceProbability", "Rubric", "RubricJudge", "SpreadFilter"]

_HOME = {
    "from_tasks": "FromTasks",
    "reference": "ReferenceProbability",
    "rubric": "Criterion Rubric",
    "rubric_judge": "RubricJudge",
    "spread": "SpreadFilter",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.verify.scorers.{module}"), name)
    raise AttributeError(f"module 'assay.verify.scorers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
