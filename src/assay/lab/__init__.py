"""Studies: the learning gate with its controls, and the committed evidence made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.lab.cells import Cell, LabError, run_cell, run_cells
    from assay.lab.comparison import Arm, Comparison, ComparisonResult, over_seeds
    from assay.lab.controls import FormatOnly, Inverted, RandomReward, Rewarded
    from assay.lab.gate import LearningGate, accuracy, change, judge
    from assay.lab.seeds import Mean, RunEnding, State, StudyObserver, StudyRun, run_all, side_by_side

__all__ = [
    "Arm",
    "Cell",
    "Comparison",
    "ComparisonResult",
    "FormatOnly",
    "Inverted",
    "LabError",
    "LearningGate",
    "Mean",
    "RandomReward",
    "Rewarded",
    "RunEnding",
    "State",
    "StudyObserver",
    "StudyRun",
    "accuracy",
    "change",
    "judge",
    "over_seeds",
    "run_all",
    "run_cell",
    "run_cells",
    "side_by_side",
]

_HOME = {
    "cells": "Cell LabError run_cell run_cells",
    "comparison": "Arm Comparison ComparisonResult over_seeds",
    "controls": "FormatOnly Inverted RandomReward Rewarded",
    "gate": "LearningGate accuracy change judge",
    "seeds": "RunEnding Mean StudyRun StudyObserver State side_by_side run_all",
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
