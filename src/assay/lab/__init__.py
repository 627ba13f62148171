"""Studies: the learning gate with its controls, and the committed evidence made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.lab.cells import ONE_THREAD, WORKERS, Cell, LabError, run_cell, run_cells
    from assay.lab.comparison import Arm, Comparison, ComparisonResult, over_seeds
    from assay.lab.controls import FormatOnly, Inverted, OtherSolutions, RandomReward, Rewarded
    from assay.lab.gate import GATE_SEEDS, LearningGate, accuracy, change, judge
    from assay.lab.machine import describe_machine, load_average
    from assay.lab.processes import Processes, ProcessJob, exit_reason
    from assay.lab.seeds import StudyObserver, StudyRun, run_all, side_by_side
    from assay.lab.summary import Difference, Mean, RunEnding, State, differences

__all__ = [
    "GATE_SEEDS",
    "ONE_THREAD",
    "WORKERS",
    "Arm",
    "Cell",
    "Comparison",
    "ComparisonResult",
    "Difference",
    "FormatOnly",
    "Inverted",
    "LabError",
    "LearningGate",
    "Mean",
    "ProcessJob",
    "Processes",
    "OtherSolutions",
    "RandomReward",
    "Rewarded",
    "RunEnding",
    "State",
    "StudyObserver",
    "StudyRun",
    "accuracy",
    "change",
    "describe_machine",
    "differences",
    "exit_reason",
    "judge",
    "load_average",
    "over_seeds",
    "run_all",
    "run_cell",
    "run_cells",
    "side_by_side",
]

_HOME = {
    "processes": "ProcessJob Processes exit_reason",
    "machine": "describe_machine load_average",
    "cells": "Cell LabError run_cell run_cells ONE_THREAD WORKERS",
    "comparison": "Arm Comparison ComparisonResult over_seeds",
    "controls": "FormatOnly Inverted OtherSolutions RandomReward Rewarded",
    "gate": "LearningGate accuracy change judge GATE_SEEDS",
    "seeds": "StudyRun StudyObserver side_by_side run_all",
    "summary": "RunEnding Mean Difference State differences",
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
