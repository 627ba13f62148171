"""Which words, letters and scripts a text uses."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.core.errors import ConfigError, UnknownNameError
from assay.verify.constraints.base import Constraint, Counted, words

__all__ = [
    "SCRIPTS",
    "CapitalWords",
    "Forbidden",
    "KeywordFrequency",
    "Keywords",
    "LetterFrequency",
    "LowerCase",
    "NoCommas",
    "Script",
    "UpperCase",
]

SCRIPTS = {
    "latin": r"A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff",
    "greek": r"\u0370-\u03ff\u1f00-\u1fff",
    "cyrillic": r"\u0400-\u052f\u1c80-\u1c8f",
    "armenian": r"\u0531-\u0589",
    "hebrew": r"\u05d0-\u05f2",
    "arabic": r"\u0620-\u064a\u066e-\u06d3\u06d5\u06fa-\u06ff\u0750-\u077f",
    "devanagari": r"\u0904-\u0939\u0958-\u0961\u0971-\u097f",
    "bengali": r"\u0985-\u09b9\u09dc-\u09e1",
    "tamil": r"\u0b85-\u0bb9",
    "thai": r"\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46",
    "georgian": r"\u10a0-\u10fa\u10fd-\u10ff",
    "chinese": r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "japanese": r"\u3041-\u3096\u30a1-\u30fa\u30fc\u3005\u3400-\u4dbf\u4e00-\u9fff",
    "korean": r"\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
}
"""Letters of each script, as the inside of a character class. Japanese includes Chinese characters."""

_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keywords(Constraint):
    """All of some words or phrases occur, as whole words; case does not matter.

    Attributes:
        keywords: what must occur.

    Raises:
        ConfigError: none, or an empty one.
    """

    keywords: tuple[str, ...]

    def __post_init__(self) -> None:
        _check(self.keywords, "Keywords.keywords")

    def describe(self) -> str:
        """As a sentence."""
        return f"Use each of these: {', '.join(map(repr, self.keywords))}."

    def holds(self, text: str) -> bool:
        """Whether they all occur."""
        return all(_occurs(k, text) for k in self.keywords)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden(Constraint):
    """None of some words or phrases occurs as whole words; case does not matter.

    Attributes:
        keywords: what must not occur.

    Raises:
        ConfigError: none, or an empty one.
    """

    keywords: tuple[str, ...]

    def __post_init__(self) -> None:
        _check(self.keywords, "Forbidden.keywords")

    def describe(self) -> str:
        """As a sentence."""
        return f"Do not use any of these: {', '.join(map(repr, self.keywords))}."

    def holds(self, text: str) -> bool:
        """Whether none occurs."""
        return not any(_occurs(k, text) for k in self.keywords)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordFrequency(Counted):
    """How often a word or phrase occurs, as whole words; case does not matter.

    Attributes:
        keyword: what is counted.

    Raises:
        ConfigError: it is empty, or a negative count.
    """

    keyword: str

    def __post_init__(self) -> None:
        Counted.__post_init__(self)
        _check((self.keyword,), "KeywordFrequency.keyword")

    def describe(self) -> str:
        """As a sentence."""
        return f"Use {self.keyword!r} {self.bound} times."

    def tally(self, text: str) -> int:
        """Occurrences."""
        return _occurs(self.keyword, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFrequency(Counted):
    """How often a letter occurs; case does not matter.

    Attributes:
        letter: one character that is not white space.

    Raises:
        ConfigError: another thing than one character, or a negative count.
    """

    letter: str

    def __post_init__(self) -> None:
        Counted.__post_init__(self)
        if len(self.letter.strip()) != 1:
            raise ConfigError(f"LetterFrequency.letter={self.letter!r}; give one character")

    def describe(self) -> str:
        """As a sentence."""
        return f"Use the letter {self.letter!r} {self.bound} times."

    def tally(self, text: str) -> int:
        """Occurrences."""
        return text.casefold().count(self.letter.strip().casefold())


@dataclass(frozen=True, slots=True, kw_only=True)
class CapitalWords(Counted):
    """The number of words all in capital letters."""

    def describe(self) -> str:
        """As a sentence."""
        return f"Use {self.bound} words all in capital letters."

    def tally(self, text: str) -> int:
        """Words in capitals."""
        return sum(word.isupper() for word in words(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperCase(Constraint):
    """All letters are capitals, and there is one."""

    def describe(self) -> str:
        """As a sentence."""
        return "Write in capital letters only."

    def holds(self, text: str) -> bool:
        """Whether they are."""
        return text.isupper()


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerCase(Constraint):
    """No letter is a capital, and there is a letter."""

    def describe(self) -> str:
        """As a sentence."""
        return "Write in small letters only."

    def holds(self, text: str) -> bool:
        """Whether they are."""
        return text.islower()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCommas(Constraint):
    """There is text, and no comma in it, ASCII or other."""

    def describe(self) -> str:
        """As a sentence."""
        return "Do not use any commas."

    def holds(self, text: str) -> bool:
        """Whether there is none."""
        return bool(text.strip()) and not any(c in text for c in ",，、،")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script(Constraint):
    """The letters are of one script: the script of a language, told by Unicode ranges, not the language itself.

    Attributes:
        script: a name of `SCRIPTS`.
        share: of the letters that must be of it.

    Raises:
        UnknownNameError: no such script.
        ConfigError: a share outside (0, 1].
    """

    script: str
    share: float = 0.9

    def __post_init__(self) -> None:
        if self.script not in SCRIPTS:
            raise UnknownNameError("script", self.script, SCRIPTS)
        if not 0.0 < self.share <= 1.0:
            raise ConfigError(f"Script.share={self.share}; use a share in (0, 1]")

    def describe(self) -> str:
        """As a sentence."""
        return f"Write in {self.script.capitalize()} letters."

    def holds(self, text: str) -> bool:
        """Whether enough letters are."""
        letters = _LETTER.findall(text)
        own = len(re.findall(f"[{SCRIPTS[self.script]}]", "".join(letters)))
        return bool(letters) and own >= self.share * len(letters)


def _occurs(keyword: str, text: str) -> int:
    """How often it stands in the text as whole words; any white space is one space."""
    phrase = r"\s+".join(re.escape(part) for part in keyword.casefold().split())
    return len(re.findall(rf"(?<!\w){phrase}(?!\w)", text.casefold()))


def _check(keywords: tuple[str, ...], place: str) -> None:
    if not keywords or not all(k.strip() for k in keywords):
        raise ConfigError(f"{place}={keywords!r}; give words or phrases that are not empty")
