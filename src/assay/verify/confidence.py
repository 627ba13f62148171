"""Confidence that an answer states: how it is read, and how well it fits what the answer was worth."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from assay.core.errors import ConfigError
from assay.core.protocols import Verifier
from assay.core.rollout import ASIDE, Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.verify.abilities import ability_of, scale_of
from assay.verify.composite import CompositeVerifier

__all__ = ["CONFIDENCE", "ConfidenceMarks", "ConfidenceVerifier"]

CONFIDENCE = "confidence"
"""Column of a score (`Score.columns`) that holds the stated confidence, in [0, 1]; absent where none was stated."""

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?(%?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ConfidenceMarks:
    """What a stated confidence stands between.

    Attributes:
        opening: what comes before the number.
        closing: what comes behind it; empty where the number ends the text.

    Raises:
        ConfigError: no opening.

    >>> ConfidenceMarks().read("blue <confidence>70%</confidence>")
    0.7
    """

    opening: str = "<confidence>"
    closing: str = "</confidence>"

    def __post_init__(self) -> None:
        if not self.opening:
            raise ConfigError("ConfidenceMarks.opening is empty; say what a confidence begins with, as '<confidence>'")

    def read(self, text: str) -> float | None:
        """The confidence in [0, 1]; None where the marks do not stand once each, or no such number stands between them.

        A number above 1 and up to 100, or with ``%``, is one of a hundred (RLCR's released evaluation).

        >>> [ConfidenceMarks("~", "").read(text) for text in ("b~0.7", "b~85", "b~1%", "b~101", "b", "b~~1", "b~high")]
        [0.7, 0.85, 0.01, None, None, None, None]
        """
        inner = self._statement_text(text)
        found = None if inner is None else _NUMBER.fullmatch(inner.strip())
        if found is None:
            return None
        value = float(found[1])
        value = value / 100.0 if found[2] or value > 1.0 else value
        return value if value <= 1.0 else None

    def strip_statement(self, text: str) -> str:
        """The text without the statement, where there is one, and without white space where it stood at the end.

        >>> ConfidenceMarks().strip_statement("blue <confidence>0.7</confidence>")
        'blue'
        """
        if self._statement_text(text) is None:
            return text
        before, _, rest = text.partition(self.opening)
        after = rest.partition(self.closing)[2] if self.closing else ""
        return before + after if after.strip() else before.rstrip()

    def _statement_text(self, text: str) -> str | None:
        if text.count(self.opening) != 1 or (self.closing and text.count(self.closing) != 1):
            return None
        rest = text.partition(self.opening)[2]
        if not self.closing:
            return rest
        inner, closed, _ = rest.partition(self.closing)
        return inner if closed else None


@dataclass(frozen=True, slots=True)
class ConfidenceVerifier(CompositeVerifier):
    """Another verifier's verdict on the answer without its stated confidence ``q``, and how good ``q`` is.

    Components: those of ``verifier``; ``calibration``, ``1 - (q - c)^2`` with ``c`` the main one, clipped to [0, 1], and 0 where
    no confidence is stated; ``stated``, 1 where one is. ``1 - (q - c)^2`` is a proper score: its mean is largest where ``q`` is
    the true rate of ``c``. The column ``confidence`` holds ``q``; from it evaluations compute ECE, Brier score and AUROC.

    Attributes:
        verifier: judges the answer.
        marks: what the confidence stands between.

    >>> from assay.verify import ExactMatch, task_and_rollout
    >>> judge = ConfidenceVerifier(ExactMatch(), ConfidenceMarks("~", ""))
    >>> score = judge(*task_and_rollout("b", "b~0.9"))
    >>> score.primary, round(score.components["calibration"], 4), score.columns["confidence"]
    (1.0, 0.99, 0.9)
    """

    verifier: Verifier
    marks: ConfidenceMarks = ConfidenceMarks()

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return (*ability_of(self.verifier, "names"), "calibration", "stated")

    @property
    def floor(self) -> dict[str, float]:
        """The floors of the verifier, and 0 of the others."""
        return {**scale_of(self.verifier).floors, "calibration": 0.0, "stated": 0.0}

    @property
    def members(self) -> tuple[Verifier, ...]:
        """The one verifier."""
        return (self.verifier,)

    @property
    def by_text(self) -> bool:
        """As the verifier's."""
        return bool(ability_of(self.verifier, "by_text"))

    def with_members(self, members: tuple[Verifier, ...]) -> ConfidenceVerifier:
        """The same around another verifier."""
        return ConfidenceVerifier(members[0], self.marks)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout.

        Raises:
            DataError: as the verifier says.
        """
        return self._with_confidence(self.verifier(task, _answer_only(rollout, self.marks)), rollout.text)

    def at_once(self, task: Task, rollout: Rollout) -> Score | None:
        """The verdict, where the verifier gives its own without a worker."""
        score = CompositeVerifier.at_once(self, task, _answer_only(rollout, self.marks))
        return None if score is None else self._with_confidence(score, rollout.text)

    def merge_scores(self, task: Task, scores: tuple[Score, ...]) -> Score:
        """The one verdict; the confidence is added outside, where the whole text is at hand."""
        return scores[0]

    def _with_confidence(self, score: Score, text: str) -> Score:
        if not score.valid:
            return score
        q = self.marks.read(text)
        c = min(1.0, max(0.0, score.primary))
        added = {"calibration": 0.0 if q is None else 1.0 - (q - c) ** 2, "stated": float(q is not None)}
        columns = score.columns if q is None else {**score.columns, CONFIDENCE: q}
        return replace(score, components={**score.components, **added}, columns=columns)


def _answer_only(rollout: Rollout, marks: ConfidenceMarks) -> Rollout:
    """The rollout as if its answer stated no confidence: for verifiers, which read texts and not tokens."""
    own = {c.id for c in rollout.own if c.role != ASIDE}
    last = max(own, default=None)
    if last is None or (text := marks.strip_statement(rollout.text)) == rollout.text:
        return rollout
    return replace(rollout, calls=tuple(replace(c, text=text) if c.id == last else c for c in rollout.calls))
