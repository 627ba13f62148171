"""The loop and its stages: a `Run` as a value, and what works through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
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

_MOVED = {
    "Exported": "assay.publish",
    "export": "assay.publish",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME, moved=_MOVED)
