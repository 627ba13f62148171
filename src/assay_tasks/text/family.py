"""All generated problems of text as one family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.text.classes import NamedClass
from assay_tasks.text.strings import Alphabetical, Anagram, Caesar, Edits, Letters, Substitution, Transposition
from assay_tasks.text.tables import Classify, Extract, Rank

__all__ = ["text"]


def text() -> Problems:
    """Letters, words, lists and records.

    Carries: CLS-RL (arXiv 2503.16188) and GenCLS++ (arXiv 2504.19898) in `NamedClass`.
    """
    return Problems(
        name="text",
        summary="Letters, words, lists and records.",
        problems=(
            Letters(),
            Alphabetical(),
            Anagram(),
            Caesar(),
            Substitution(),
            Transposition(),
            Edits(),
            Classify(),
            Classify(name="text/classify_noisy", noise=0.1),
            NamedClass(),
            NamedClass(name="text/classes_new", part="new"),
            NamedClass(name="text/classes_thinking", thinking=True),
            Rank(),
            Extract(),
        ),
    )
