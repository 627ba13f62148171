"""Options as a person gave them, on the command line or in a file of settings, and all that is wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.core.errors import ConfigError

__all__ = ["JSON", "GivenOption", "Mistakes", "last_given", "split_options", "words_of"]

_STARTS = re.compile(
    r"--|-[A-Za-z]|\+{0,2}(actor_rollout_ref|algorithm|critic|data|trainer|reward_model|reward|ray_kwargs)\.[\w.]+="
)
"""How an option begins; the last are those of libraries whose settings have no dashes."""


JSON = "json:"
"""How a value begins that is written as JSON: one that words cannot say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenOption:
    """One option with its words.

    Attributes:
        path: what it is about, with dots and underscores: ``stages.0.group_size``; an option of the command by its name.
        words: behind it.
        typed: the option as it was written.
        file: the file of settings that it stands in; empty for the command line.
        layer: files come before the command line, in their order.
        value: what stands in the file; the words alone say it on the command line.
    """

    path: str
    words: tuple[str, ...] = ()
    typed: str = ""
    file: str = ""
    layer: int = 0
    value: Any = None

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.file}: {self.typed}" if self.file else " ".join((self.typed, *self.words))

    def spell(self, path: str) -> str:
        """Another option in the way that this one is written."""
        return path.replace("-", "_") if self.file else f"--{path.replace('_', '-')}"


def split_options(words: Sequence[str], layer: int = 0) -> tuple[list[str], list[GivenOption]]:
    """Words that stand before any option, and the options with the words behind each.

    >>> strays, (one, two) = split_options(["x", "--group_size", "4", "--lr=-1"])
    >>> strays, one.path, one.words, two.typed, two.words
    (['x'], 'group_size', ('4',), '--lr', ('-1',))
    """
    strays: list[str] = []
    out: list[tuple[str, list[str]]] = []
    for word in words:
        if _STARTS.match(word):
            flag, equals, value = word.partition("=")
            out.append((flag, [value] if equals else []))
        elif out:
            out[-1][1].append(word)
        else:
            strays.append(word)
    return strays, [
        GivenOption(path=flag.lstrip("-+").replace("-", "_"), words=tuple(more), typed=flag, layer=layer) for flag, more in out
    ]


def words_of(options: Sequence[GivenOption]) -> tuple[str, ...]:
    """The words of a command line that says the same."""
    out: list[str] = []
    for option in options:
        flag = f"--{option.path.replace('_', '-')}"
        if not option.words and option.value is not None:
            out.append(f"{flag}={JSON}{json.dumps(option.value)}")
            continue
        out += [f"{flag}={option.words[0]}"] if len(option.words) == 1 else [flag, *option.words]
    return tuple(out)


def last_given(options: Sequence[GivenOption], part_of: Callable[[str], str]) -> list[GivenOption]:
    """Without those that a later one replaces: by the same path, or, from an earlier layer, below a part that is replaced.

    Args:
        options: in the order in which they count.
        part_of: the path of the part that an option puts another in the place of; empty for one that sets a value.
    """
    kept: list[GivenOption] = []
    for option in options:
        part = part_of(option.path)
        kept = [
            k
            for k in kept
            if k.path != option.path
            and not (part and k.layer < option.layer and (k.path == part or k.path.startswith(f"{part}.")))
        ]
        kept.append(option)
    return kept


@dataclass(slots=True)
class Mistakes:
    """What is wrong with the settings of a command, told together.

    Attributes:
        found: each in one line, with its place.
    """

    found: list[str] = field(default_factory=list[str])

    def add(self, options: Sequence[GivenOption], error: object) -> None:
        """Notes what is wrong with an option, or with several together."""
        text, place = " ".join(str(error).split("\n")), ", ".join(dict.fromkeys(o.place for o in options))
        known = any(text.startswith(p) for o in options for p in (o.typed, o.place))
        files = ", ".join(dict.fromkeys(o.file for o in options if o.file and not text.startswith(o.file)))
        line = f"{files}: {text}" if known and files else text if known or not place else f"{place}: {text}"
        if line not in self.found:
            self.found.append(line)

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __bool__(self) -> bool:
        return bool(self.found)

    def raise_all(self) -> None:
        """Raises ConfigError where there are any."""
        if len(self.found) == 1:
            raise ConfigError(self.found[0])
        if self.found:
            raise ConfigError("\n  ".join((f"{len(self.found)} settings are wrong", *self.found)))
