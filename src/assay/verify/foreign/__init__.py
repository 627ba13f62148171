"""Other trainers' reward functions as verifiers, and verifiers as their reward functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.verify.foreign.adapting import adapt, loaded
    from assay.verify.foreign.inward import GOLD_NAMES, ForeignReward, OpenRlhfReward, RubricReward, TrlReward, VerlReward
    from assay.verify.foreign.naming import load
    from assay.verify.foreign.outward import OpenRlhfFunction, TrlFunction, VerlFunction, as_openrlhf, as_trl, as_verl
    from assay.verify.foreign.signature import Signature, signature_of
    from assay.verify.foreign.taskset import TasksetReward

__all__ = [
    "GOLD_NAMES",
    "ForeignReward",
    "OpenRlhfFunction",
    "OpenRlhfReward",
    "RubricReward",
    "Signature",
    "TasksetReward",
    "TrlFunction",
    "TrlReward",
    "VerlFunction",
    "VerlReward",
    "adapt",
    "as_openrlhf",
    "as_trl",
    "as_verl",
    "load",
    "loaded",
    "signature_of",
]

_HOME = {
    "adapting": "adapt loaded",
    "inward": "GOLD_NAMES ForeignReward OpenRlhfReward RubricReward TrlReward VerlReward",
    "naming": "load",
    "outward": "OpenRlhfFunction TrlFunction VerlFunction as_openrlhf as_trl as_verl",
    "signature": "Signature signature_of",
    "taskset": "TasksetReward",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.verify.foreign.{module}"), name)
    raise AttributeError(f"module 'assay.verify.foreign' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
