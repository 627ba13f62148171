"""Studies: the learning gate with its controls, and the committed evidence made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.lab.cells import Cell, LabError, run_cell, run_cells
    from assay.lab.comparison import Arm, Comparison, Found, over_seeds
    from assay.lab.controls import FormatOnly, Inverted, RandomReward, Rewarded
    from assay.lab.gate import Gate, accuracy, change, judge
    from assay.lab.seeds import Ending, Mean, Member, News, State, side_by_side, work_off
    from assay.select.admit import Admission, ArmAdmission, Verdict, admission, judge_arms
    from assay.select.curation import VerifierGrader
    from assay.select.distill import Distillation, Distilled
    from assay.select.membership import Membership, MembershipProbe, Told, membership
    from assay.select.probes import GradientProbe, UpdateProbe, VectorProbe
    from assay.select.teachers import ModelTeacher, ServerTeacher, Teacher

__all__ = [
    "Admission",
    "Arm",
    "ArmAdmission",
    "Cell",
    "Comparison",
    "Distillation",
    "Distilled",
    "Ending",
    "FormatOnly",
    "Found",
    "Gate",
    "GradientProbe",
    "Inverted",
    "LabError",
    "Mean",
    "Member",
    "Membership",
    "MembershipProbe",
    "ModelTeacher",
    "News",
    "RandomReward",
    "Rewarded",
    "ServerTeacher",
    "State",
    "Teacher",
    "Told",
    "UpdateProbe",
    "VectorProbe",
    "VerifierGrader",
    "Verdict",
    "accuracy",
    "admission",
    "change",
    "judge",
    "judge_arms",
    "membership",
    "over_seeds",
    "run_cell",
    "run_cells",
    "side_by_side",
    "work_off",
]

_HOME = {
    "admitting": "Admission ArmAdmission Verdict admission judge_arms",
    "cells": "Cell LabError run_cell run_cells",
    "comparison": "Arm Comparison Found over_seeds",
    "controls": "FormatOnly Inverted RandomReward Rewarded",
    "curation": "VerifierGrader",
    "distilling": "Distillation Distilled",
    "gate": "Gate accuracy change judge",
    "seen": "Membership MembershipProbe Told membership",
    "seeds": "Ending Mean Member News State side_by_side work_off",
    "teachers": "ModelTeacher ServerTeacher Teacher",
    "probes": "GradientProbe UpdateProbe VectorProbe",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.lab.{module}"), name)
    raise AttributeError(f"module 'assay.lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
