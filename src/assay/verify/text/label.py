"""A class label: read from an answer, or the whole output and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.core.errors import ConfigError, DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, verdict_score
from assay.verify.text.tags import tag_fault

__all__ = ["Classification"]


@dataclass(frozen=True, slots=True)
class Classification(AnswerVerifier):
    """``correct`` is 1 when the label said is the gold, by one of the two rules of CLS-RL.

    ``thinking`` (CLS-RL): the label is what the last answer tag holds, or the whole text where there is none, compared without
    regard to case and outer white space; ``format`` is 1 for a think tag and an answer tag and nothing besides. CLS-RL's
    reward is the sum of both. Without ``thinking`` (No-Thinking-CLS-RL, GenCLS++): the whole output must be the label,
    character by character.

    Attributes:
        thinking: which of the two rules.
        labels: all labels there are; an answer that is none of them is ``unparsed``, and a gold that is none of them an error.

    Raises:
        ConfigError: two labels that this rule cannot tell apart.
        DataError: the gold is no text, or none of the labels.

    Source: CLS-RL (arXiv 2503.16188), its text part; GenCLS++ (arXiv 2504.19898).

    >>> from assay.verify.rollouts import task_and_rollout
    >>> [Classification()(*task_and_rollout("dog", said)).primary for said in ("<answer>Dog</answer>", "Dog", "The dog")]
    [1.0, 1.0, 0.0]
    """

    thinking: bool = True
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len({self._read(label) for label in self.labels}) < len(self.labels):
            raise ConfigError(
                f"Classification.labels={self.labels}: two of them are the same; compared without case when thinking"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "format") if self.thinking else ("correct",)

    def rule(self, gold: Any, text: str) -> Score:
        """Compare the labels."""
        known = {self._read(label) for label in self.labels}
        if not isinstance(gold, str) or (known and self._read(gold) not in known):
            raise DataError(f"the gold {gold!r} is none of the labels {self.labels or '(any text)'}")
        components: dict[str, float] = {"correct": 0.0}
        said = text
        if self.thinking:
            components["format"] = float(not tag_fault(text, ("think", "answer")))
            tagged = answer_in(text, AnswerPlace.TAG)
            said = text if tagged is None else tagged
        label = self._read(said)
        components["correct"] = float(label == self._read(gold))
        if not label or (known and label not in known):
            return verdict_score("unparsed", components)
        return verdict_score("equal" if components["correct"] else "different", components)

    def _read(self, text: str) -> str:
        return text.strip().casefold() if self.thinking else text
