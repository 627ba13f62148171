"""What a constraint on a text is, and how a number is bounded."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from assay.core.errors import ConfigError
from assay.verify.answer_verifier import option

__all__ = ["Constraint", "Counted", "Relation", "paragraphs", "sentences", "words"]

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_BLANK = re.compile(r"\n[^\S\n]*\n\s*")
_ENDS = ".!?…。！？"
_END = re.compile(rf"(?<![{_ENDS}])[{_ENDS}]++[\"'”’)\]]*+(?=\s|$)|[。！？]++|\n[^\S\n]*+\n")  # a run is tried once: linear time
_SHORT = re.compile(r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|(?<!\d )[a-z])\.$", re.IGNORECASE)


class Constraint(ABC):
    """Something that a text does or does not do, told to the policy in words and checked by a program.

    A subclass is a frozen dataclass whose name stands in `assay.verify.constraints.CONSTRAINTS`.
    """

    __slots__ = ()

    @abstractmethod
    def describe(self) -> str:
        """The constraint as a sentence for a prompt."""
        ...

    @abstractmethod
    def holds(self, text: str) -> bool:
        """Whether a text keeps it; never raises."""
        ...


class Relation(StrEnum):
    """How a count is bounded."""

    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    EXACTLY = "exactly"

    def admits(self, found: int, wanted: int) -> bool:
        """Whether a count keeps the bound."""
        return {"at_least": found >= wanted, "at_most": found <= wanted, "exactly": found == wanted}[self.value]

    def of(self, wanted: int) -> str:
        """``at least 3``."""
        return f"{self.value.replace('_', ' ')} {wanted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Constraint, ABC):
    """A constraint on how many of something there are.

    Attributes:
        count: the bound.
        relation: on which side of it (`Relation`).

    Raises:
        ConfigError: a negative count.
        UnknownNameError: ``relation`` is unknown.
    """

    count: int
    relation: Relation = Relation.AT_LEAST

    def __post_init__(self) -> None:
        option(Relation, self.relation, f"{type(self).__name__}.relation")
        if self.count < 0:
            raise ConfigError(f"{type(self).__name__}.count={self.count}; use a number that is not negative")

    @abstractmethod
    def tally(self, text: str) -> int:
        """How many there are."""
        ...

    def holds(self, text: str) -> bool:
        """Whether the number is within its bound."""
        return Relation(self.relation).admits(self.tally(text), self.count)

    @property
    def bound(self) -> str:
        """``at least 3``."""
        return Relation(self.relation).of(self.count)


def words(text: str) -> list[str]:
    """The words of a text: letters and digits, with hyphens and apostrophes inside.

    >>> words("Well-known: it's 3.5 _x_")
    ['Well-known', "it's", '3', '5', 'x']
    """
    return _WORD.findall(text)


def sentences(text: str) -> list[str]:
    """The sentences of a text: they end with ``.``, ``!``, ``?`` or their like before white space, or with a blank line.

    No end: a full stop after an initial or one of a few short forms (Dr., e.g.), or before a word in small letters. What
    has no word in it is no sentence.

    >>> sentences("Dr. No came. He saw e.g. me! And then?! . Bye")
    ['Dr. No came.', 'He saw e.g. me!', 'And then?!', 'Bye']
    """
    out: list[str] = []
    start = 0
    for found in _END.finditer(text):
        end = found.end()
        if found.group() == "." and (_SHORT.search(text[max(start, end - 6) : end]) or text[end : end + 2].strip().islower()):
            continue
        out.append(text[start:end].strip())
        start = end
    out.append(text[start:].strip())
    return [s for s in out if _WORD.search(s)]


def paragraphs(text: str, separator: str = "") -> list[str]:
    r"""The paragraphs of a text that are not empty: separated by blank lines, or by ``separator``.

    >>> paragraphs("a\n \nb\n\n\nc"), paragraphs("a *** b", "***")
    (['a', 'b', 'c'], ['a', 'b'])
    """
    parts = text.split(separator) if separator else _BLANK.split(text)
    return [part.strip() for part in parts if part.strip()]
