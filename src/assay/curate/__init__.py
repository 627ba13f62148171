"""Which rows to train on: steps that keep, score or drop rows, each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.curate.checks import AnswerForm
    from assay.curate.decontaminate import Decontaminate
    from assay.curate.difficulty import Band, Hardest, Passes, PassRates, Unsolved, WeakStrong, rate_bin
    from assay.curate.evaluation import Contamination, EvalIndex, EvalItem, Hit, Matching, contaminated
    from assay.curate.exact import Exact
    from assay.curate.joined import Joined
    from assay.curate.near import NearDuplicates
    from assay.curate.pipeline import Pipeline
    from assay.curate.probes import AngleOrder, Donod, Influential, LearningImpact, MostVaried, Probe, ProbeFile
    from assay.curate.progress import Progress, progress_on
    from assay.curate.rows import Fields, Row, row_id
    from assay.curate.scores import (
        angle_concentration,
        donod,
        filled,
        gain_shift,
        gain_weights,
        history_deviation,
        influence,
        learning_impact,
        topsis,
    )
    from assay.curate.step import Chunk, Decision, RowStep, Seen, SetStep, Step, Verdict, drop, keep
    from assay.curate.substring import Substrings
    from assay.curate.text import Texts, jaccard, normal, runs, shingles
    from assay.curate.verifiable import Case, Grader, SolversAgree, VerifierAccepts

__all__ = [
    "Pipeline",
    "Fields",
    "Row",
    "row_id",
    "Progress",
    "progress_on",
    "Step",
    "RowStep",
    "SetStep",
    "Chunk",
    "Seen",
    "Verdict",
    "Decision",
    "drop",
    "keep",
    "Exact",
    "NearDuplicates",
    "Substrings",
    "Decontaminate",
    "EvalIndex",
    "EvalItem",
    "Matching",
    "Hit",
    "Contamination",
    "contaminated",
    "AnswerForm",
    "VerifierAccepts",
    "SolversAgree",
    "Grader",
    "Case",
    "Passes",
    "PassRates",
    "WeakStrong",
    "Band",
    "Unsolved",
    "Hardest",
    "rate_bin",
    "Joined",
    "Probe",
    "ProbeFile",
    "LearningImpact",
    "MostVaried",
    "AngleOrder",
    "Donod",
    "Influential",
    "learning_impact",
    "filled",
    "history_deviation",
    "angle_concentration",
    "gain_shift",
    "gain_weights",
    "donod",
    "topsis",
    "influence",
    "Texts",
    "normal",
    "runs",
    "shingles",
    "jaccard",
]

_HOME = {
    "checks": "AnswerForm",
    "decontaminate": "Decontaminate",
    "difficulty": "Band Hardest PassRates Passes Unsolved WeakStrong rate_bin",
    "evaluation": "Contamination EvalIndex EvalItem Hit Matching contaminated",
    "exact": "Exact",
    "joined": "Joined",
    "near": "NearDuplicates",
    "pipeline": "Pipeline",
    "probes": "AngleOrder Donod Influential LearningImpact MostVaried Probe ProbeFile",
    "progress": "Progress progress_on",
    "rows": "Fields Row row_id",
    "scores": "angle_concentration donod filled gain_shift gain_weights history_deviation influence learning_impact topsis",
    "step": "Chunk Decision RowStep Seen SetStep Step Verdict drop keep",
    "substring": "Substrings",
    "text": "Texts jaccard normal runs shingles",
    "verifiable": "Case Grader SolversAgree VerifierAccepts",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
