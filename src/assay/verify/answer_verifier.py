"""What verifiers of a written answer share: where the answer stands in the text, and a verdict in words."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from assay.core.canon import FrozenMap, plain
from assay.core.errors import DataError, UnknownNameError
from assay.core.rollout import Rollout, Stop
from assay.core.score import Score
from assay.core.task import Task
from assay.verify.language import box_denied, box_joined, doubted

__all__ = ["AnswerPlace", "AnswerVerifier", "answer_in", "last_match", "option", "verdict_score"]

E = TypeVar("E", bound=StrEnum)

if not TYPE_CHECKING:  # pragma: no branch -- to a type checker an old name is simply not there

    def __getattr__(name: str) -> object:  # of verifiers that were written before the function had its name
        if name == "ruled":
            raise ImportError(f"{__name__}.ruled is called verdict_score now; write: from {__name__} import verdict_score")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_MARK = re.compile(r"\banswer(?: is)?[*_ ]{0,4}[:=]", re.IGNORECASE)
_OPEN, _CLOSE = re.compile("<answer>", re.IGNORECASE), re.compile("</answer>", re.IGNORECASE)
_FAR = 300
"""Characters around a box in which another one, or a denial, is looked for."""
_BRACE = re.compile(r"\\boxed ?\{|[{}]")


class AnswerPlace(StrEnum):
    r"""Where the answer stands in a text. If there are several, the last one counts, never the first.

    ``auto``: the first of these that the text has: a tag, a box, a mark, the whole. ``tag``: between ``<answer>`` and
    ``</answer>``. ``box``: inside ``\boxed{...}``. ``mark``: behind ``Answer:`` (or ``answer is:``), the rest of that line, or
    what follows if nothing is left of it. ``line``: the last line that is not empty. ``whole``: all of the text.
    """

    AUTO = "auto"
    TAG = "tag"
    BOX = "box"
    MARK = "mark"
    LINE = "line"
    WHOLE = "whole"


def answer_in(text: str, where: str = AnswerPlace.AUTO) -> str | None:
    r"""The answer that a text gives, white space around it removed; None where it gives none.

    Time grows with the length of the text and not faster.

    >>> answer_in("So <answer>4</answer>, no: <answer> 5 </answer>"), answer_in("It is 5.\nAnswer: 6")
    ('5', '6')
    >>> answer_in("5", "box") is None
    True
    """
    match where:
        case AnswerPlace.AUTO:
            for read in (_tagged_text, _boxed_text, _marked_text):
                found = read(text)
                if found is not None:
                    return found
            return text.strip()
        case AnswerPlace.TAG:
            return _tagged_text(text)
        case AnswerPlace.BOX:
            return _boxed_text(text)
        case AnswerPlace.MARK:
            return _marked_text(text)
        case AnswerPlace.LINE:
            return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)
        case _:
            return text.strip()


def _tagged_text(text: str) -> str | None:
    close = last_match(_CLOSE, text)
    opening = last_match(_OPEN, text[: close.start()]) if close else None
    return text[opening.end() : close.start()].strip() if opening and close else None


def _boxed_text(text: str) -> str | None:
    """Inside the box that is closed last; one that was left open does not hide it. Nothing is in one of two with "or" between,
    and in one that is called wrong.
    """
    opened: list[int] = []  # where the content of each open brace begins; -1 for a brace that is no box
    last: tuple[int, int] | None = None
    for found in _BRACE.finditer(text):
        if found.group() != "}":
            opened.append(found.end() if len(found.group()) > 1 else -1)
        elif opened and (start := opened.pop()) >= 0:
            last = (start, found.start())
    if last is None:
        return None
    start, end = last
    held, command = text[start:end].strip(), text.rfind("\\", 0, start)
    before = text[max(0, command - _FAR) : command]
    refused = box_joined(before) or box_denied(before, held, text[end + 1 : end + 1 + _FAR])
    return "" if refused else held


def _marked_text(text: str) -> str | None:
    marks = [found.span() for found in _MARK.finditer(text)]
    end = next((end for start, end in reversed(marks) if not doubted(text[max(0, start - 80) : start])), None)
    if end is None:
        return None
    head, _, below = text[end:].partition("\n")
    line = head.strip(" \t\r*_`$")
    if line:
        return line
    below = below.strip().strip("`$").strip()
    return below if "\n" in below else below.strip("*_").strip()  # stars in several lines may be cells of a picture


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The last match of a pattern, found from the front.

    >>> last_match(re.compile("[ab]"), "aab")
    <re.Match object; span=(2, 3), match='b'>
    """
    found = deque(pattern.finditer(text), maxlen=1)
    return found[0] if found else None


class AnswerVerifier(ABC):
    """Base of verifiers that compare what the last text says with ``private["answer"]``, the gold.

    A subclass is a frozen dataclass with `rule`. A rollout that was cut off (stop other than ``done``) gave no answer: all its
    components are 0 and its verdict is ``unfinished``. The verdict in words stands in ``info["verdict"]``.
    """

    __slots__ = ()
    trusted: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct",)

    @property
    def needs_gold(self) -> bool:
        """Whether a task without an answer is an error; otherwise its gold is None."""
        return True

    @property
    def by_text(self) -> bool:
        """Whether the verdict on a task depends on nothing but how a rollout ended and its last text: so `rule` has it."""
        return type(self).__call__ is AnswerVerifier.__call__

    @abstractmethod
    def rule(self, gold: Any, text: str) -> Score:
        """The verdict on a text; ``gold`` is plain JSON data.

        Raises:
            DataError: the gold is not of the form that this verifier needs. Never because of the text.
        """
        ...

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout.

        Raises:
            DataError: the task has no gold, or one of the wrong form; names the task.
        """
        if self.needs_gold and "answer" not in task.private:
            raise DataError(f"task {task.id!r} has no private 'answer' to compare with; it has {sorted(task.private)}")
        if rollout.stop is not Stop.DONE:
            return self.nothing("unfinished")
        gold = task.private.get("answer")
        try:
            return self.rule(gold if isinstance(gold, str) else plain(gold), rollout.text)
        except DataError as error:
            raise DataError(f"task {task.id!r}: {error}") from None

    def nothing(self, verdict: str, **info: object) -> Score:
        """A verdict with all components 0."""
        return verdict_score(verdict, dict.fromkeys(self.names, 0.0), **info)


def verdict_score(verdict: str, components: Mapping[str, float], **info: object) -> Score:
    """A score with its verdict in words.

    >>> verdict_score("equal", {"correct": 1.0}).info["verdict"]
    'equal'
    """
    return Score(components=components, info=FrozenMap({"verdict": verdict, **info}))


def option(kind: type[E], value: str, place: str) -> E:
    """The member of an enumeration that a setting names.

    Raises:
        UnknownNameError: none; names the place and the nearest.
    """
    try:
        return kind(value)
    except ValueError:
        raise UnknownNameError(f"value of {place}", value, [m.value for m in kind]) from None
