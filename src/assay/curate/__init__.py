"""Which rows to train on: steps that keep, score or drop rows, each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.curate.answer_form import AnswerForm
    from assay.curate.decontaminate import Decontaminate
    from assay.curate.difficulty import Band, Hardest, Passes, PassRates, Unsolved, WeakStrong, rate_bin
    from assay.curate.evaluation import Contamination, EvalIndex, EvalItem, Hit, Matching, find_contamination
    from assay.curate.exact_duplicates import Exact
    from assay.curate.near_duplicates import NearDuplicates
    from assay.curate.pipeline import Pipeline
    from assay.curate.probes import AngleOrder, Donod, Influential, LearningImpact, MostVaried, Probe, ProbeFile
    from assay.curate.progress import CurationProgress, progress_on
    from assay.curate.row_index import Joined
    from assay.curate.rows import Fields, Row, row_id
    from assay.curate.scores import (
        angle_concentration,
        central_rows,
        donod,
        fill_gaps,
        gain_shift,
        gain_weights,
        history_deviation,
        influence,
        learning_impact,
        topsis,
    )
    from assay.curate.solution_length import SolutionLength
    from assay.curate.step import Chunk, CurationStep, Decision, RowStep, SetStep, StepNotes, Verdict, drop, keep
    from assay.curate.substrings import Substrings
    from assay.curate.text import HashedTexts, jaccard, normal, runs, shingles
    from assay.curate.verifiable import Case, Grader, SolversAgree, VerifierAccepts

__all__ = [
    "AngleOrder",
    "AnswerForm",
    "Band",
    "Case",
    "Chunk",
    "Contamination",
    "CurationProgress",
    "CurationStep",
    "Decision",
    "Decontaminate",
    "Donod",
    "EvalIndex",
    "EvalItem",
    "Exact",
    "Fields",
    "Grader",
    "Hardest",
    "Hit",
    "Influential",
    "Joined",
    "LearningImpact",
    "Matching",
    "MostVaried",
    "NearDuplicates",
    "PassRates",
    "Passes",
    "Pipeline",
    "Probe",
    "ProbeFile",
    "Row",
    "RowStep",
    "SetStep",
    "SolversAgree",
    "StepNotes",
    "SolutionLength",
    "Substrings",
    "HashedTexts",
    "Unsolved",
    "Verdict",
    "VerifierAccepts",
    "WeakStrong",
    "angle_concentration",
    "central_rows",
    "find_contamination",
    "donod",
    "drop",
    "fill_gaps",
    "gain_shift",
    "gain_weights",
    "history_deviation",
    "influence",
    "jaccard",
    "keep",
    "learning_impact",
    "normal",
    "progress_on",
    "rate_bin",
    "row_id",
    "runs",
    "shingles",
    "topsis",
]

_HOME = {
    "answer_form": "AnswerForm",
    "decontaminate": "Decontaminate",
    "difficulty": "Band Hardest PassRates Passes Unsolved WeakStrong rate_bin",
    "evaluation": "Contamination EvalIndex EvalItem Hit Matching find_contamination",
    "exact_duplicates": "Exact",
    "row_index": "Joined",
    "near_duplicates": "NearDuplicates",
    "pipeline": "Pipeline",
    "probes": "AngleOrder Donod Influential LearningImpact MostVaried Probe ProbeFile",
    "progress": "CurationProgress progress_on",
    "rows": "Fields Row row_id",
    "scores": "angle_concentration central_rows donod fill_gaps gain_shift gain_weights history_deviation influence "
    "learning_impact topsis",
    "step": "Chunk Decision RowStep StepNotes SetStep CurationStep Verdict drop keep",
    "solution_length": "SolutionLength",
    "substrings": "Substrings",
    "text": "HashedTexts jaccard normal runs shingles",
    "verifiable": "Case Grader SolversAgree VerifierAccepts",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
