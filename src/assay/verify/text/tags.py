"""The form of a text as a sequence of tags, alone or bound to how good the answer is."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout, Stop
from assay.core.score import Score
from assay.core.task import Task
from assay.verify.abilities import scale_of
from assay.verify.answer_verifier import AnswerPlace, option, verdict_score
from assay.verify.composite import CompositeVerifier
from assay.verify.exact import ExactMatch

__all__ = ["Combine", "Formatted", "TagFormat", "TagShare", "tag_fault"]

_NAME = re.compile("[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class TagFormat:
    """``format`` is 1 when the whole text is the tags in order, each exactly once, balanced and none inside another.

    ``<think>...</think><answer>...</answer>`` for the default. Only white space may stand between, before and behind them. An
    rollout that was cut off has no form. No gold is read.

    Attributes:
        tags: names in order.
        filled: each tag must hold more than white space.

    Raises:
        ConfigError: no tags, one that is no name, or one named twice.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> check = TagFormat()
    >>> [check(*task_and_rollout("", t)).primary for t in ("<think>a</think> <answer>b</answer>", "<answer>b</answer>")]
    [1.0, 0.0]
    """

    tags: tuple[str, ...] = ("think", "answer")
    filled: bool = False
    trusted: ClassVar[bool] = True
    by_text: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_names(self.tags, "TagFormat")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("format",)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout."""
        if rollout.stop is not Stop.DONE:
            return verdict_score("unfinished", {"format": 0.0})
        fault = tag_fault(rollout.text, self.tags, filled=self.filled)
        return verdict_score("malformed", {"format": 0.0}, why=fault) if fault else verdict_score("formatted", {"format": 1.0})


@dataclass(frozen=True, slots=True)
class TagShare:
    """``tags`` is the share of opening and closing marks that stand exactly once: a quarter for each of the default four.

    A form that is nearly right earns nearly all of it, which tells a policy the way to `TagFormat`. It reads how often marks
    stand and not in which order, and judges texts that were cut off too. No gold is read.

    Attributes:
        tags: names.

    Raises:
        ConfigError: no tags, one that is no name, or one named twice.

    Source: Think2SQL (arXiv 2504.15077), whose weight for it is 0.05.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> texts = ("<think>a</think><answer>b</answer>", "<think>a</think> b", "<answer>b<answer>")
    >>> [TagShare()(*task_and_rollout("", text)).primary for text in texts]
    [1.0, 0.5, 0.0]
    """

    tags: tuple[str, ...] = ("think", "answer")
    trusted: ClassVar[bool] = True
    by_text: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_names(self.tags, "TagShare")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("tags",)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout."""
        marks = _marks(self.tags)
        once = [mark for mark in marks if rollout.text.count(mark) == 1]
        return verdict_score("counted", {"tags": len(once) / len(marks)}, missing=[mark for mark in marks if mark not in once])


def _check_names(tags: tuple[str, ...], owner: str) -> None:
    if not tags or not all(_NAME.fullmatch(t) for t in tags) or len(set(tags)) < len(tags):
        raise ConfigError(f"{owner}.tags={tags}; give different names without brackets, as in ('think', 'answer')")


def _marks(tags: tuple[str, ...]) -> list[str]:
    return [f"<{slash}{tag}>" for tag in tags for slash in ("", "/")]


def tag_fault(text: str, tags: tuple[str, ...], *, filled: bool = False) -> str:
    """What is wrong with the form of a text, in words; empty where nothing is.

    >>> tag_fault("<a>x</a><b><a></b>", ("a", "b")), tag_fault("<a>x</a> <b></b>", ("a", "b"))
    ('<a> occurs 2 times', '')
    """
    marks = _marks(tags)
    for mark in marks:
        count = text.count(mark)
        if count != 1:
            return f"{mark} occurs {count} times"
    places = [text.index(mark) for mark in marks]
    if places != sorted(places):
        return "the tags are not in order"
    edges = [0, *(at for mark, place in zip(marks, places, strict=True) for at in (place, place + len(mark))), len(text)]
    pieces = [text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    if any(piece.strip() for piece in pieces[::2]):
        return "text stands outside the tags"
    if filled and not all(piece.strip() for piece in pieces[1::2]):
        return "a tag is empty"
    return ""


def _tag_verifier() -> Verifier:
    return ExactMatch(where=AnswerPlace.TAG)


class Combine(StrEnum):
    """How a form and a verdict make one reward.

    ``additive``: ``(1 - weight) * answer + weight * format``. ``gate``: the answer counts only where the form is right, else its
    floor. ``override``: ``bad`` where the form is wrong, whatever the answer.
    """

    ADDITIVE = "additive"
    GATE = "gate"
    OVERRIDE = "override"


@dataclass(frozen=True, slots=True)
class Formatted(CompositeVerifier):
    """A verifier bound to a form: ``reward`` combines the main component of both, ``answer`` and ``format`` say them apart.

    ``reward`` is what training maximises, so this is for methods that read one number; to weigh components in a method, use
    `Together` instead. Further components of the inner verifier are kept. A fault of either is the verdict.

    Attributes:
        verifier: judges the answer; it reads the whole text, so tell it where the answer stands.
        format: judges the form, with 0 and 1.
        combine: how (`Combine`).
        weight: of the form, for ``additive``.
        bad: reward of a wrong form, for ``override``.

    Raises:
        ConfigError: a weight outside [0, 1], ``bad`` not finite, or an inner component called ``reward``, ``answer`` or
            ``format`` that is
            not the main one.
        UnknownNameError: ``combine`` is unknown.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gated = Formatted(combine="gate")
    >>> texts = ("<think>x</think><answer>4</answer>", "<answer>4</answer>", "<think>x</think><answer>5</answer>")
    >>> [gated(*task_and_rollout("4", text)).primary for text in texts]
    [1.0, 0.0, 0.0]
    """

    verifier: Verifier = field(default_factory=_tag_verifier)
    format: Verifier = field(default_factory=TagFormat)
    combine: Combine = Combine.GATE
    weight: float = 0.1
    bad: float = -1.0

    def __post_init__(self) -> None:
        option(Combine, self.combine, "Formatted.combine")
        if not 0.0 <= self.weight <= 1.0:
            raise ConfigError(f"Formatted.weight={self.weight}; use a share in [0, 1]")
        if not math.isfinite(self.bad):
            raise ConfigError(f"Formatted.bad={self.bad}; use a finite number")
        clash = sorted({"reward", "answer", "format"} & set(self._further))
        if clash:
            raise ConfigError(f"Formatted: the inner verifier gives {clash}, names that Formatted gives itself; rename them")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("reward", "answer", "format", *self._further)

    @property
    def members(self) -> tuple[Verifier, ...]:
        """Who judges the answer, and who the form."""
        return (self.verifier, self.format)

    def with_members(self, members: tuple[Verifier, ...]) -> Formatted:
        """The same of others."""
        answer, form = members
        return replace(self, verifier=answer, format=form)

    @property
    def floor(self) -> dict[str, float]:
        """The least that each component takes."""
        declared, answer = scale_of(self.verifier), self._answer_floor
        least = {
            Combine.ADDITIVE: (1.0 - self.weight) * answer,
            Combine.GATE: answer,
            Combine.OVERRIDE: min(self.bad, answer),
        }[Combine(self.combine)]
        return {"reward": least, "answer": answer, "format": 0.0} | {n: declared.floor_of(n) for n in self._further}

    def merge_scores(self, task: Task, scores: tuple[Score, ...]) -> Score:
        """One reward of both, and both beside it."""
        inner, form = scores
        answer, right = inner.primary, form.primary
        match Combine(self.combine):
            case Combine.ADDITIVE:
                reward = (1.0 - self.weight) * answer + self.weight * right
            case Combine.GATE:
                reward = answer if right == 1.0 else self._answer_floor
            case _:
                reward = answer if right == 1.0 else self.bad
        further = {n: v for n, v in inner.components.items() if n != _main(tuple(inner.components))}
        info = FrozenMap({**form.info, **inner.info} if right == 1.0 else {**inner.info, **form.info})
        return Score(
            components={"reward": reward, "answer": answer, "format": right, **further},
            spans=inner.spans,
            columns=inner.columns,
            info=info,
        )

    @property
    def _further(self) -> tuple[str, ...]:
        named = scale_of(self.verifier).components
        return tuple(n for n in named if n != _main(named))

    @property
    def _answer_floor(self) -> float:
        declared = scale_of(self.verifier)
        return declared.floor_of(_main(declared.components))


def _main(names: tuple[str, ...]) -> str:
    """The component that `Score.primary` reads."""
    return next((n for n in ("correct", "reward") if n in names), names[0])
