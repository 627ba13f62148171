"""Other trainers' reward functions as verifiers, and verifiers as their reward functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.interop.adapter import adapt, load_verifier
    from assay.interop.export_rewards import OpenRlhfFunction, TrlFunction, VerlFunction, as_openrlhf, as_trl, as_verl
    from assay.interop.import_rewards import GOLD_NAMES, ForeignReward, OpenRlhfReward, RubricReward, TrlReward, VerlReward
    from assay.interop.load_object import load
    from assay.interop.signature import Signature, signature_of
    from assay.interop.taskset import TasksetReward

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
    "load_verifier",
    "signature_of",
]

_HOME = {
    "adapter": "adapt load_verifier",
    "import_rewards": "ForeignReward GOLD_NAMES OpenRlhfReward RubricReward TrlReward VerlReward",
    "load_object": "load",
    "export_rewards": "OpenRlhfFunction TrlFunction VerlFunction as_openrlhf as_trl as_verl",
    "signature": "Signature signature_of",
    "taskset": "TasksetReward",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
