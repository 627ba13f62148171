"""Studies: the learning gate with its controls, and the committed evidence made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.lab.cells import Cell, LabError, run_cell, run_cells
    from assay.lab.comparison import Arm, Comparison, Found, over_seeds
    from assay.lab.controls import FormatOnly, Inverted, RandomReward, Rewarded
    from assay.lab.gate import Gate, accuracy, change, judge
    from assay.lab.seeds import Ending, Mean, Member, News, State, side_by_side, work_off

__all__ = [
    "Arm",
    "Cell",
    "Comparison",
    "Ending",
    "FormatOnly",
    "Found",
    "Gate",
    "Inverted",
    "LabError",
    "Mean",
    "Member",
    "News",
    "RandomReward",
    "Rewarded",
    "State",
    "accuracy",
    "change",
    "judge",
    "over_seeds",
    "run_cell",
    "run_cells",
    "side_by_side",
    "work_off",
]

_HOME = {
    "cells": "Cell LabError run_cell run_cells",
    "comparison": "Arm Comparison Found over_seeds",
    "controls": "FormatOnly Inverted RandomReward Rewarded",
    "gate": "Gate accuracy change judge",
    "seeds": "Ending Mean Member News State side_by_side work_off",
}

_MOVED = {
    "Admission": "assay.select",
    "ArmAdmission": "assay.select",
    "Distillation": "assay.select",
    "Distilled": "assay.select",
    "GradientProbe": "assay.select",
    "Membership": "assay.select",
    "MembershipProbe": "assay.select",
    "ModelTeacher": "assay.select",
    "ServerTeacher": "assay.select",
    "Teacher": "assay.select",
    "Told": "assay.select",
    "UpdateProbe": "assay.select",
    "VectorProbe": "assay.select",
    "Verdict": "assay.select",
    "VerifierGrader": "assay.select",
    "admission": "assay.select",
    "judge_arms": "assay.select",
    "membership": "assay.select",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME, moved=_MOVED)
