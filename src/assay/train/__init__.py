"""The loop and its stages: a `Run` as a value, and what works through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.train.check import IndependentCheck
    from assay.train.demonstration import Demonstration
    from assay.train.driver import Outcome, load_run, resume, train
    from assay.train.exporting import Exported, export
    from assay.train.mismatch import MismatchCheck
    from assay.train.models import Built, Folder, Scratch
    from assay.train.policy import Policy
    from assay.train.reinforce import Reinforce, Until
    from assay.train.run import ContaminationCheck, Evaluation, Run
    from assay.train.stages import Imitate, Prefer, WarmUp

__all__ = [
    "Built",
    "ContaminationCheck",
    "Demonstration",
    "Evaluation",
    "Exported",
    "Folder",
    "Imitate",
    "IndependentCheck",
    "MismatchCheck",
    "Outcome",
    "Policy",
    "Prefer",
    "Reinforce",
    "Run",
    "Scratch",
    "Until",
    "WarmUp",
    "export",
    "load_run",
    "resume",
    "train",
]

_HOME = {
    "check": "IndependentCheck",
    "demonstration": "Demonstration",
    "driver": "Outcome load_run resume train",
    "exporting": "Exported export",
    "mismatch": "MismatchCheck",
    "models": "Built Folder Scratch",
    "policy": "Policy",
    "reinforce": "Reinforce Until",
    "run": "ContaminationCheck Evaluation Run",
    "stages": "Imitate Prefer WarmUp",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.train.{module}"), name)
    raise AttributeError(f"module 'assay.train' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
