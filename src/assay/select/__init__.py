"""What models say of data: which tasks to practise, demonstrations of teachers, probes, membership."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.select.admit import Admission, ArmAdmission, ArmVerdict, admission, judge_arms
    from assay.select.curation import VerifierGrader
    from assay.select.distill import Distillation, Distilled
    from assay.select.membership_probe import ItemScores, Membership, MembershipProbe, grade_answers, membership
    from assay.select.probes import GradientProbe, UpdateProbe, VectorProbe
    from assay.select.program_writer import ProgramWriter, WrittenFamily
    from assay.select.run_rows import row_measurements, write_measurements
    from assay.select.teachers import ModelTeacher, ServerTeacher, Teacher

__all__ = [
    "Admission",
    "ArmAdmission",
    "ArmVerdict",
    "Distillation",
    "Distilled",
    "GradientProbe",
    "ItemScores",
    "Membership",
    "MembershipProbe",
    "ModelTeacher",
    "ProgramWriter",
    "ServerTeacher",
    "Teacher",
    "UpdateProbe",
    "VectorProbe",
    "VerifierGrader",
    "WrittenFamily",
    "admission",
    "grade_answers",
    "judge_arms",
    "membership",
    "row_measurements",
    "write_measurements",
]

_HOME = {
    "admit": "Admission ArmAdmission ArmVerdict admission judge_arms",
    "curation": "VerifierGrader",
    "distill": "Distillation Distilled",
    "membership_probe": "Membership MembershipProbe ItemScores membership grade_answers",
    "probes": "GradientProbe UpdateProbe VectorProbe",
    "program_writer": "ProgramWriter WrittenFamily",
    "run_rows": "row_measurements write_measurements",
    "teachers": "ModelTeacher ServerTeacher Teacher",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
