"""What shape a text has: titles, lists, sections, marks, how it begins and ends."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.core.errors import ConfigError
from assay.verify.constraints.base import Constraint, Counted
from assay.verify.text.jsonvalue import NoJson, read_json

__all__ = [
    "Bullets",
    "EndsWith",
    "Highlights",
    "JsonFormat",
    "NumberedList",
    "OneOf",
    "Placeholders",
    "Postscript",
    "Quoted",
    "RepeatPrompt",
    "Sections",
    "StartsWith",
    "Title",
    "TwoResponses",
]

_TITLE = re.compile(r"<<([^<>\n]+)>>")
_RULE = re.compile(r"^[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*[-*•+][ \t]+\S", re.MULTILINE)
_BULLET_SIGN = re.compile(r"^[ \t]*[-*•+][ \t]+", re.MULTILINE)
_MARKED = re.compile(r"(?<!\\)\*\*(?=[^\s*])([^*\n]+)(?<=[^\s\\])\*\*|(?<!\\)\*(?=[^\s*])([^*\n]+)(?<=[^\s\\])\*")
_PLACE = re.compile(r"\[[^\[\]\n]+\]")
_NUMBERED = re.compile(r"^[ \t]*([0-9]{1,4})[.)][ \t]+\S", re.MULTILINE)
_FENCED = re.compile(r"```[A-Za-z]*\n(.*?)\n?```", re.DOTALL)
_BETWEEN = "******"


@dataclass(frozen=True, slots=True, kw_only=True)
class Title(Constraint):
    """A title in double angular brackets stands somewhere: ``<<poem of joy>>``."""

    def describe(self) -> str:
        """As a sentence."""
        return "Give a title in double angular brackets, such as <<poem of joy>>."

    def holds(self, text: str) -> bool:
        """Whether there is one."""
        return any(title.strip() for title in _TITLE.findall(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets(Counted):
    """The number of lines that are bullets: ``* item``, ``- item``; a line of stars or hyphens alone is a rule and no bullet."""

    def describe(self) -> str:
        """As a sentence."""
        return f"Write {self.bound} bullet points, such as: * This is a point."

    def tally(self, text: str) -> int:
        """Bullets."""
        return len(_BULLET.findall(_RULE.sub("", text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Highlights(Counted):
    """The number of highlighted stretches, ``*so*`` or ``**so**``: no white space inside beside the stars, as Markdown has it.

    The star of a bullet is none of them, nor is one behind a backslash.
    """

    def describe(self) -> str:
        """As a sentence."""
        return f"Highlight {self.bound} sections with markdown, such as *highlighted section*."

    def tally(self, text: str) -> int:
        """Highlighted stretches."""
        return len(_MARKED.findall(_BULLET_SIGN.sub("", text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholders(Counted):
    """The number of placeholders in square brackets, such as ``[address]``."""

    def describe(self) -> str:
        """As a sentence."""
        return f"Use {self.bound} placeholders in square brackets, such as [address]."

    def tally(self, text: str) -> int:
        """Placeholders."""
        return sum(bool(found[1:-1].strip()) for found in _PLACE.findall(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections(Counted):
    """The number of sections, each headed by a line that begins with a splitter and the section's number: ``Section 1``.

    Attributes:
        splitter: the word before the number.

    Raises:
        ConfigError: it is empty, or a negative count.
    """

    splitter: str = "Section"

    def __post_init__(self) -> None:
        Counted.__post_init__(self)
        if not self.splitter.strip():
            raise ConfigError("Sections.splitter is empty; give the word that heads a section, such as 'Section'")

    def describe(self) -> str:
        """As a sentence."""
        return f"Write {self.bound} sections, each headed by {self.splitter!r} and its number, such as {self.splitter} 1."

    def tally(self, text: str) -> int:
        """Sections numbered from 1 without a gap; 0 where the numbers are others."""
        head = re.compile(rf"^[ \t#*_]*{re.escape(self.splitter.strip())}[ \t]+([0-9]{{1,4}})\b", re.MULTILINE | re.IGNORECASE)
        return _in_order(head.findall(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedList(Counted):
    """The number of lines of a list numbered from 1 without a gap: ``1. first``."""

    def describe(self) -> str:
        """As a sentence."""
        return f"Write a numbered list of {self.bound} items: 1. first, 2. second, ..."

    def tally(self, text: str) -> int:
        """Items; 0 where the numbers are others."""
        return _in_order(_NUMBERED.findall(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFormat(Constraint):
    """The whole text is one JSON object or list, in a fenced block or bare."""

    def describe(self) -> str:
        """As a sentence."""
        return "Write the whole answer as JSON."

    def holds(self, text: str) -> bool:
        """Whether it is."""
        text = text.strip()
        fenced = _FENCED.fullmatch(text)
        try:
            value = read_json(fenced[1] if fenced else text)
        except NoJson:
            return False
        return isinstance(value, dict | list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted(Constraint):
    """The whole text stands in double quotation marks."""

    def describe(self) -> str:
        """As a sentence."""
        return "Wrap the whole answer in double quotation marks."

    def holds(self, text: str) -> bool:
        """Whether it does."""
        text = text.strip()
        return len(text) > 2 and (text[0], text[-1]) in (('"', '"'), ("“", "”")) and bool(text[1:-1].strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class StartsWith(Constraint):
    """The text begins with a phrase; case and white space before it do not matter.

    Attributes:
        phrase: how it begins.

    Raises:
        ConfigError: it is empty.
    """

    phrase: str

    def __post_init__(self) -> None:
        _phrase(self.phrase, "StartsWith.phrase")

    def describe(self) -> str:
        """As a sentence."""
        return f"Begin with: {self.phrase}"

    def holds(self, text: str) -> bool:
        """Whether it does."""
        return text.strip().casefold().startswith(self.phrase.strip().casefold())


@dataclass(frozen=True, slots=True, kw_only=True)
class EndsWith(Constraint):
    """The text ends with a phrase and nothing behind it; case and white space do not matter.

    Attributes:
        phrase: how it ends.

    Raises:
        ConfigError: it is empty.
    """

    phrase: str

    def __post_init__(self) -> None:
        _phrase(self.phrase, "EndsWith.phrase")

    def describe(self) -> str:
        """As a sentence."""
        return f"End with this phrase and nothing behind it: {self.phrase}"

    def holds(self, text: str) -> bool:
        """Whether it does."""
        return text.strip().casefold().endswith(self.phrase.strip().casefold())


@dataclass(frozen=True, slots=True, kw_only=True)
class Postscript(Constraint):
    """A line near the end begins with a mark such as ``P.S.`` and says something.

    Attributes:
        mark: how it begins.

    Raises:
        ConfigError: it is empty.
    """

    mark: str = "P.S."

    def __post_init__(self) -> None:
        _phrase(self.mark, "Postscript.mark")

    def describe(self) -> str:
        """As a sentence."""
        return f"Add a postscript at the end that begins with {self.mark}"

    def holds(self, text: str) -> bool:
        """Whether there is one, behind other text."""
        mark = self.mark.strip().casefold()
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        said = [i for i, line in enumerate(lines) if line.casefold().startswith(mark) and len(line) > len(mark)]
        return bool(said) and said[0] > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoResponses(Constraint):
    """Two different responses with six asterisks, ``******``, between them."""

    def describe(self) -> str:
        """As a sentence."""
        return f"Give two different responses, separated by {_BETWEEN}"

    def holds(self, text: str) -> bool:
        """Whether there are."""
        parts = [part.strip() for part in text.split(_BETWEEN)]
        return len(parts) == 2 and all(parts) and parts[0] != parts[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatPrompt(Constraint):
    """The text begins with the request, word for word, and goes on.

    Attributes:
        prompt: the request to repeat; case and white space do not matter.

    Raises:
        ConfigError: it is empty.
    """

    prompt: str

    def __post_init__(self) -> None:
        _phrase(self.prompt, "RepeatPrompt.prompt")

    def describe(self) -> str:
        """As a sentence."""
        return f"First repeat this request word for word, then answer it: {self.prompt}"

    def holds(self, text: str) -> bool:
        """Whether it does."""
        said, wanted = text.casefold().split(), self.prompt.casefold().split()
        return said[: len(wanted)] == wanted and len(said) > len(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf(Constraint):
    """The whole text is one of some options; case, outer white space and a last full stop do not matter.

    Attributes:
        options: what may be said.

    Raises:
        ConfigError: none, or an empty one.
    """

    options: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.options or not all(_normalise(o) for o in self.options):
            raise ConfigError(f"OneOf.options={self.options!r}; give options that are not empty")

    def describe(self) -> str:
        """As a sentence."""
        return f"Answer with one of these and nothing else: {', '.join(map(repr, self.options))}."

    def holds(self, text: str) -> bool:
        """Whether it is."""
        return _normalise(text) in {_normalise(o) for o in self.options}


def _in_order(numbers: list[str]) -> int:
    return len(numbers) if [int(n) for n in numbers] == list(range(1, len(numbers) + 1)) else 0


def _normalise(text: str) -> str:
    return text.strip().removesuffix(".").casefold()


def _phrase(phrase: str, place: str) -> None:
    if not phrase.strip():
        raise ConfigError(f"{place} is empty; give what must be said")
