"""A regular expression of the user's, matched in a process that can be killed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.core.errors import ConfigError, DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score

__all__ = ["PatternMatch"]


@dataclass(frozen=True, slots=True)
class PatternMatch(AnswerVerifier):
    """``correct`` is 1 when the answer matches a regular expression: the gold, or ``pattern`` for every task.

    Python cannot interrupt a regular expression, and a pattern such as ``(a+)+b`` takes exponential time on a text made for it.
    So this verifier is not ``trusted``: a `ScoringPool` runs it in a process of its own and kills that at the deadline. Answers
    longer than ``longest`` are ``unparsed``: time that grows with the square of the length stays bounded.

    Attributes:
        pattern: for all tasks; None to read each task's gold.
        full: the whole answer must match, not a part of it.
        flags: any of the letters ``i`` (upper and lower case alike), ``m`` (lines), ``s`` (``.`` takes line ends too), ``x``.
        longest: characters that an answer may have.
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        ConfigError: ``pattern`` or ``flags`` are wrong, or ``longest`` is not positive.
        UnknownNameError: ``where`` is no place.
        DataError: the gold is no regular expression.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> PatternMatch()(*task_and_rollout("[0-9]{3}", "Answer: 123")).primary
    1.0
    """

    trusted: ClassVar[bool] = False
    pattern: str | None = None
    full: bool = True
    flags: str = ""
    longest: int = 100_000
    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "PatternMatch.where")
        if set(self.flags) - set("imsx"):
            raise ConfigError(f"PatternMatch.flags={self.flags!r}; use any of the letters i, m, s, x")
        if self.longest < 1:
            raise ConfigError(f"PatternMatch.longest={self.longest}; use at least 1 character")
        if self.pattern is not None:
            try:
                self._compile_pattern(self.pattern)
            except DataError as error:
                raise ConfigError(f"PatternMatch.pattern: {error}") from None

    @property
    def needs_gold(self) -> bool:
        """Whether each task brings its own pattern."""
        return self.pattern is None

    def rule(self, gold: Any, text: str) -> Score:
        """Match."""
        pattern = self._compile_pattern(gold if self.pattern is None else self.pattern)
        place = answer_in(text, self.where)
        if place is None or len(place) > self.longest:
            return self.nothing("unparsed")
        right = (pattern.fullmatch(place) if self.full else pattern.search(place)) is not None
        return verdict_score("equal" if right else "different", {"correct": float(right)})

    def _compile_pattern(self, pattern: Any) -> re.Pattern[str]:
        if not isinstance(pattern, str):
            raise DataError(f"{pattern!r} is no regular expression; give text")
        flags = re.RegexFlag(0)
        for letter in self.flags:
            flags |= re.RegexFlag[letter.upper()]
        try:
            return re.compile(pattern, flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise DataError(f"{pattern!r} is not a regular expression: {error}") from None
