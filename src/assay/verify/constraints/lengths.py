"""How long a text is, in words, sentences, paragraphs, characters."""

from __future__ import annotations

from dataclasses import dataclass

from assay.core.errors import ConfigError
from assay.verify.constraints.base import Constraint, Counted, paragraphs, sentences, words

__all__ = ["Characters", "ParagraphStart", "Paragraphs", "Sentences", "Words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words(Counted):
    """The number of words (`assay.verify.constraints.base.words`).

    >>> Words(count=2, relation="exactly").holds("Hello, world!")
    True
    """

    def describe(self) -> str:
        """As a sentence."""
        return f"Write {self.bound} words."

    def tally(self, text: str) -> int:
        """Words."""
        return len(words(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences(Counted):
    """The number of sentences (`assay.verify.constraints.base.sentences`)."""

    def describe(self) -> str:
        """As a sentence."""
        return f"Write {self.bound} sentences."

    def tally(self, text: str) -> int:
        """Sentences."""
        return len(sentences(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraphs(Counted):
    """The number of paragraphs.

    Attributes:
        separator: between paragraphs; a blank line when empty.
    """

    separator: str = ""

    def describe(self) -> str:
        """As a sentence."""
        return f"Write {self.bound} paragraphs, separated by {self.separator or 'blank lines'}."

    def tally(self, text: str) -> int:
        """Paragraphs."""
        return len(paragraphs(text, self.separator))


@dataclass(frozen=True, slots=True, kw_only=True)
class Characters(Counted):
    """The number of characters, white space around the text aside."""

    def describe(self) -> str:
        """As a sentence."""
        return f"Write {self.bound} characters."

    def tally(self, text: str) -> int:
        """Characters."""
        return len(text.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphStart(Constraint):
    """A text of so many paragraphs, one of which begins with a given word.

    Attributes:
        paragraphs: how many there are.
        nth: which one, from 1.
        word: its first word; case does not matter.

    Raises:
        ConfigError: ``nth`` outside the paragraphs, or no word.
    """

    paragraphs: int
    nth: int
    word: str

    def __post_init__(self) -> None:
        if not 1 <= self.nth <= self.paragraphs or words(self.word) != [self.word]:
            raise ConfigError(
                f"ParagraphStart: nth={self.nth} of paragraphs={self.paragraphs}, word={self.word!r}; give one word"
            )

    def describe(self) -> str:
        """As a sentence."""
        return (
            f"Write exactly {self.paragraphs} paragraphs, separated by blank lines; "
            f"paragraph {self.nth} begins with the word {self.word!r}."
        )

    def holds(self, text: str) -> bool:
        """Whether it does."""
        parts = paragraphs(text)
        if len(parts) != self.paragraphs:
            return False
        first = words(parts[self.nth - 1])[:1]
        return [w.casefold() for w in first] == [self.word.casefold()]
