"""Strings: repeats dropped, every k-th letter taken, brackets closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay_tasks.small.terse import Terse, pick_symbols

__all__ = ["CloseBrackets", "DropRepeats", "EveryKth"]

_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRepeats(Terse):
    """Write each letter once, where it comes first: ``Uabacb>`` asks for ``abc``. The level is the number of letters.

    >>> DropRepeats().solve("Uabacb>"), DropRepeats().effort("Uabacb>")
    ('abc', 6)
    """

    title: ClassVar[str] = "dedup"
    area: ClassVar[str] = "strings"
    mark: ClassVar[str] = "U"
    letters: ClassVar[str] = "abcdef"
    replies: ClassVar[str] = "abcdef"
    levels: tuple[int, ...] = (3, 4, 5, 6, 7, 8, 9, 10)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Letters drawn evenly and independently."""
        return "".join(pick_symbols(rng, self.letters, level))

    def answer(self, body: str) -> str:
        """First occurrences in order."""
        return "".join(dict.fromkeys(body))

    def effort(self, prompt: str) -> int:
        """Comparisons of each letter with those kept so far, until it is found or all are seen."""
        kept: list[str] = []
        compared = 0
        for letter in prompt[1:-1]:
            compared += kept.index(letter) + 1 if letter in kept else len(kept)
            if letter not in kept:
                kept.append(letter)
        return compared


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryKth(Terse):
    """Write every k-th character: ``Y2abcde>`` asks for ``bd``. The level is the number of characters.

    >>> EveryKth().solve("Y2abcde>"), EveryKth().solve("Y1ab>")
    ('bd', 'ab')
    """

    title: ClassVar[str] = "skip"
    area: ClassVar[str] = "strings"
    mark: ClassVar[str] = "Y"
    letters: ClassVar[str] = "abcdefgh0123456789"
    replies: ClassVar[str] = "abcdefgh0123456789"
    levels: tuple[int, ...] = (3, 4, 5, 6, 7, 8, 9, 10)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """``k`` from 1 to 3, then as many characters that ``level`` are to be written, and up to ``k - 1`` more."""
        k = int(rng.integers(1, 4))
        return f"{k}{''.join(pick_symbols(rng, self.letters, level * k + int(rng.integers(0, k))))}"

    def answer(self, body: str) -> str:
        """Characters k, 2k, ..."""
        k = int(body[0])
        return body[1:][k - 1 :: k]

    def effort(self, prompt: str) -> int:
        """Characters read."""
        return len(prompt) - 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseBrackets(Terse):
    """Close what is open, the last first: ``B([{}>`` asks for ``])``. The level is the number of brackets given.

    >>> CloseBrackets().solve("B([{}>")
    '])'
    """

    title: ClassVar[str] = "brackets"
    area: ClassVar[str] = "strings"
    mark: ClassVar[str] = "B"
    letters: ClassVar[str] = "([{}])"
    replies: ClassVar[str] = ")]}"
    levels: tuple[int, ...] = (3, 4, 5, 6, 7, 8, 9, 10)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Each bracket opens one of three kinds at two chances in three, or where nothing would stay open; else it closes one."""
        said, opened = list[str](), list[str]()
        for left, (chance, kind) in enumerate(zip(rng.random(level), pick_symbols(rng, "([{", level), strict=True), 1 - level):
            if opened and chance >= 2 / 3 and not (left == 0 and len(opened) == 1):
                said.append(_CLOSING[opened.pop()])
            else:
                opened.append(kind)
                said.append(kind)
        return "".join(said)

    def answer(self, body: str) -> str:
        """What closes the open ones, from the inside out."""
        opened: list[str] = []
        for sign in body:
            if sign in _CLOSING:
                opened.append(sign)
            else:
                opened.pop()
        return "".join(_CLOSING[sign] for sign in reversed(opened))

    def effort(self, prompt: str) -> int:
        """Brackets read and written."""
        return len(prompt) - 2 + len(self.solve(prompt))
