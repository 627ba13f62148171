"""The loop and its stages: a `Run` as a value, and what works through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.publish.export import Exported, export
    from assay.train.check import IndependentCheck
    from assay.train.demonstration import Demonstration
    from assay.train.driver import Outcome, load_run, resume, train
    from assay.train.mismatch import MismatchCheck
    from assay.train.models import Built, Folder, Scratch
    from assay.train.naming import NamedMethod
    from assay.train.policy import Policy
    from assay.train.providers import (
        Age,
        ConstantValue,
        FailureRate,
        GreedyReward,
        Level,
        PairwiseOutcome,
        Peers,
        PromptConfidence,
        RightSoFar,
        TurnState,
    )
    from assay.train.reference_value import ReferenceValue
    from assay.train.reinforce import Reinforce, Until
    from assay.train.run import ContaminationCheck, Evaluation, Run
    from assay.train.stages import Imitate, Prefer, WarmUp
    from assay.train.streams import AsStream, WithStored
    from assay.train.wiring import WiredPart, wire, wire_run

__all__ = [
    "Age",
    "AsStream",
    "Built",
    "ConstantValue",
    "ContaminationCheck",
    "Demonstration",
    "Evaluation",
    "Exported",
    "FailureRate",
    "Folder",
    "GreedyReward",
    "Imitate",
    "IndependentCheck",
    "Level",
    "MismatchCheck",
    "NamedMethod",
    "Outcome",
    "PairwiseOutcome",
    "Peers",
    "Policy",
    "Prefer",
    "PromptConfidence",
    "ReferenceValue",
    "Reinforce",
    "RightSoFar",
    "Run",
    "Scratch",
    "TurnState",
    "Until",
    "WarmUp",
    "WiredPart",
    "WithStored",
    "export",
    "load_run",
    "resume",
    "train",
    "wire",
    "wire_run",
]

_HOME = {
    "check": "IndependentCheck",
    "demonstration": "Demonstration",
    "driver": "Outcome load_run resume train",
    "exporting": "Exported export",
    "mismatch": "MismatchCheck",
    "models": "Built Folder Scratch",
    "naming": "NamedMethod",
    "policy": "Policy",
    "providers": "Age ConstantValue FailureRate GreedyReward Level PairwiseOutcome Peers PromptConfidence RightSoFar TurnState",
    "reference_value": "ReferenceValue",
    "reinforce": "Reinforce Until",
    "run": "ContaminationCheck Evaluation Run",
    "stages": "Imitate Prefer WarmUp",
    "streams": "AsStream WithStored",
    "wiring": "WiredPart wire wire_run",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.train.{module}"), name)
    raise AttributeError(f"module 'assay.train' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
