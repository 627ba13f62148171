"""Pure verifiers for answers that can be compared as text."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout, Stop
from assay.core.score import Score, SpanScore
from assay.core.task import Task
from assay.verify.abilities import ability_of, scale_of
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score
from assay.verify.composite import CompositeVerifier

__all__ = ["ExactMatch", "FormatIs", "Together", "word_f1"]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = frozenset({"a", "an", "the"})

_ATOM = r"(?:\[(?:\\.|[^\]\\\[])+\]|\\[dDsSwW.\\()\[\]{}*+?|^$/-]|[^\\()\[\]{}*+?|])"
_FIXED, _REPEATED = r"(?:\{[0-9]+\})?+", r"(?:[*+?]|\{[0-9]*,[0-9]*\})"
_LINEAR = re.compile(rf"(?:{_ATOM}{_FIXED})*(?:{_ATOM}{_REPEATED}(?:{_ATOM}{_FIXED})*)?")
"""Patterns that are matched in time that grows with the length of the text: characters and classes in a row, with at most one of
them repeated as often as it likes."""
_SHORT = 200


def expected_answer(task: Task) -> str:
    """``private["answer"]`` as text.

    Raises:
        DataError: the task has no answer.
    """
    if "answer" not in task.private:
        raise DataError(f"task {task.id!r} has no private 'answer' to compare with; it has {sorted(task.private)}")
    return str(task.private["answer"])


@dataclass(frozen=True, slots=True)
class ExactMatch(AnswerVerifier):
    """``correct`` is 1 when the rollout ended by itself and its last text equals ``private["answer"]``, else 0.

    An answer that was cut off (stop ``length``) is no answer, whatever its text. Where the gold is a list of texts, any
    one of them is right. With no setting nothing is forgiven, not even white space; each setting forgives one thing in both
    texts.

    Attributes:
        strip: ignore white space around the text.
        casefold: ignore upper and lower case.
        punctuation: drop ASCII punctuation.
        unicode: compare compatible characters as one (NFKC: full-width digits, ligatures).
        articles: drop the words a, an and the, and take any white space as one space, as SQuAD does.
        f1: give the component ``f1`` too: overlap of the words, as multisets, with the nearest gold.
        where: in which part of the text the answer stands (`AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the task has no answer.

    >>> ExactMatch().names, ExactMatch(f1=True).names
    (('correct',), ('correct', 'f1'))
    """

    strip: bool = False
    casefold: bool = False
    punctuation: bool = False
    unicode: bool = False
    articles: bool = False
    f1: bool = False
    where: AnswerPlace = AnswerPlace.WHOLE

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "ExactMatch.where")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "f1") if self.f1 else ("correct",)

    def rule(self, gold: Any, text: str) -> Score:
        """Compare with each gold."""
        given = text if self.where == AnswerPlace.WHOLE else answer_in(text, self.where)
        if given is None:
            return self.nothing("unparsed")
        given = self._normal(given)
        golds: list[Any] = cast("list[Any]", gold) if isinstance(gold, list) else [gold]
        if not golds or any(g is None or isinstance(g, list | dict) for g in golds):
            raise DataError(f"the gold {gold!r} is neither a text nor a list of texts, so no answer can be compared with it")
        wanted = [self._normal(str(g)) for g in golds]
        right = given in wanted
        components = {"correct": float(right)}
        if self.f1:
            components["f1"] = max((word_f1(g, given) for g in wanted), default=0.0)
        return verdict_score("equal" if right else "different", components)

    def _normal(self, text: str) -> str:
        """A text without what is forgiven."""
        if self.unicode:
            text = unicodedata.normalize("NFKC", text)
        if self.casefold:
            text = text.casefold()
        if self.punctuation:
            text = text.translate(_NO_PUNCTUATION)
        if self.articles:
            text = " ".join(w for w in text.split() if w.casefold() not in _ARTICLES)
        return text.strip() if self.strip else text


def word_f1(gold: str, given: str) -> float:
    """Harmonic mean of precision and recall of the words, each counted as often as it stands there.

    >>> word_f1("a b c", "a b"), word_f1("a", "b"), word_f1("", "")
    (0.8, 0.0, 1.0)
    """
    wanted, had = Counter(gold.split()), Counter(given.split())
    if not wanted or not had:
        return float(wanted == had)
    return 2.0 * (wanted & had).total() / (wanted.total() + had.total())


@dataclass(frozen=True, slots=True)
class FormatIs:
    """``format`` is 1 when the rollout ended by itself and its last text fully matches ``pattern``, else 0.

    It is `trusted` where the pattern is a row of characters and classes of which at most one is repeated (``[0-9]*``,
    ``ab{2}[a-z]+``). Any other may take exponential time on a text made for it, and Python cannot interrupt it: then a
    `ScoringPool` matches in a process that can be killed.

    Attributes:
        pattern: regular expression, matched against the whole text.
        like_answer: the text must also be as long as ``private["answer"]``.

    Raises:
        ConfigError: ``pattern`` is not a regular expression.
        DataError: ``like_answer`` and the task has no answer.

    >>> FormatIs("[0-9]+", like_answer=True).names
    ('format',)
    """

    pattern: str
    like_answer: bool = False
    by_text: ClassVar[bool] = True

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ConfigError(f"FormatIs.pattern {self.pattern!r} is not a regular expression: {error}") from None

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("format",)

    @property
    def trusted(self) -> bool:
        """Whether the pattern is one that no text makes slow."""
        return len(self.pattern) <= _SHORT and _LINEAR.fullmatch(self.pattern) is not None

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout."""
        fits = rollout.stop is Stop.DONE and re.fullmatch(self.pattern, rollout.text) is not None
        if self.like_answer:
            fits = fits and len(rollout.text) == len(expected_answer(task))
        return Score(components={"format": float(fits)})


@dataclass(frozen=True, slots=True)
class Together(CompositeVerifier):
    """Several verifiers as one: their components, spans and infos side by side.

    The first verdict that is a fault is the verdict of all (`CompositeVerifier`).

    Attributes:
        parts: verifiers whose component names do not overlap.

    Raises:
        ConfigError: no parts, or two parts that declare one component name.

    >>> Together((ExactMatch(), FormatIs("[a-z]*"))).names
    ('correct', 'format')
    """

    parts: tuple[Verifier, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ConfigError("Together needs at least one verifier, got none")
        repeated = [name for name, n in Counter(self.names).items() if n > 1]
        if repeated:
            raise ConfigError(f"Together: two verifiers give the components {repeated}; drop one of them")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that the parts declare, in order."""
        return tuple(name for part in self.parts for name in ability_of(part, "names"))

    @property
    def floor(self) -> dict[str, float]:
        """The floor of each component that the parts declare."""
        return {name: floor for part in self.parts for name, floor in scale_of(part).named_floors.items()}

    @property
    def members(self) -> tuple[Verifier, ...]:
        """The parts."""
        return self.parts

    def with_members(self, members: tuple[Verifier, ...]) -> Together:
        """The same of other parts."""
        return Together(members)

    def merge_scores(self, task: Task, scores: tuple[Score, ...]) -> Score:
        """All of them side by side.

        Raises:
            DataError: two parts gave one component.
        """
        components: dict[str, float] = {}
        spans: tuple[SpanScore, ...] = ()
        columns: dict[str, float] = {}
        info: dict[str, object] = {}
        for score in scores:
            components |= score.components
            columns |= score.columns
            spans += score.spans
            info |= score.info.items()
        if len(components) + len(columns) < sum([len(s.components) + len(s.columns) for s in scores]):
            every = Counter(name for s in scores for name in s.components) + Counter(name for s in scores for name in s.columns)
            twice = sorted(name for name, n in every.items() if n > 1)
            raise DataError(f"two verifiers gave the components or columns {twice} for task {task.id!r}")
        return Score(components=components, spans=spans, columns=columns, info=FrozenMap(info))
