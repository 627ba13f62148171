"""Tables: values looked up and recalled, a chain of keys followed, rows selected."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from assay_tasks.small.terse import Terse, pick_symbols

__all__ = ["AddAlong", "Collect", "FollowPath", "LookUpAll", "RecallAll", "SelectRows", "SumAlong"]

_KEYS, _DIGITS = "abcdefgh", "0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUpAll(Terse):
    """Look up keys in a table of four: ``Qc7a3f0b3:af>`` asks for ``30``. The level is the number of keys asked for.

    >>> LookUpAll().solve("Qc7a3f0b3:af>"), LookUpAll().effort("Qc7a3f0b3:af>")
    ('30', 5)
    """

    title: ClassVar[str] = "lookup"
    area: ClassVar[str] = "tables"
    mark: ClassVar[str] = "Q"
    letters: ClassVar[str] = _KEYS + _DIGITS + ":"
    replies: ClassVar[str] = _DIGITS
    levels: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Four different keys, values and questions drawn evenly."""
        keys: list[str] = rng.permutation(list(_KEYS))[:4].tolist()
        table = "".join(f"{k}{v}" for k, v in zip(keys, pick_symbols(rng, _DIGITS, 4), strict=True))
        return f"{table}:{''.join(pick_symbols(rng, keys, level))}"

    def answer(self, body: str) -> str:
        """The value of each."""
        table, asked = body.split(":")
        values = dict(zip(table[::2], table[1::2], strict=True))
        return "".join(values[key] for key in asked)

    def effort(self, prompt: str) -> int:
        """Rows read until each key is found."""
        table, asked = prompt[1:-1].split(":")
        return sum(table[::2].index(key) + 1 for key in asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallAll(LookUpAll):
    """Look up keys, and write each before its value: ``Vc7a3f0b3:af>`` asks for ``a3f0``. The level is the number of keys.

    `LookUpAll` with its steps written down, the associative recall of several keys of Arora et al. 2023
    (https://arxiv.org/abs/2312.04927): what is to be looked up next stands right before the value, where attention finds it.

    >>> RecallAll().solve("Vc7a3f0b3:af>"), RecallAll().effort("Vc7a3f0b3:af>")
    ('a3f0', 5)
    """

    title: ClassVar[str] = "recall"
    mark: ClassVar[str] = "V"
    replies: ClassVar[str] = _KEYS + _DIGITS

    def answer(self, body: str) -> str:
        """Each key with its value."""
        asked = body.partition(":")[2]
        return "".join(f"{key}{value}" for key, value in zip(asked, LookUpAll.answer(self, body), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowPath(Terse):
    """Follow arrows to their end: ``Pcdabbc:a>`` asks for ``bcd``. The level is the number of arrows.

    Each pair of letters is an arrow from the first to the second; the answer has every letter on the way behind the start. The
    lowest level has only 672 questions.

    Attributes:
        dots: a dot stands between arrows, so that what stands right behind a letter is where its arrow leads, or no letter.

    >>> FollowPath().solve("Pcdabbc:a>"), FollowPath().effort("Pcdabbc:a>")
    ('bcd', 6)
    >>> FollowPath(dots=True).solve("Pcd.ab.bc:a>")
    'bcd'
    """

    title: ClassVar[str] = "path"
    area: ClassVar[str] = "graphs"
    mark: ClassVar[str] = "P"
    letters: ClassVar[str] = _KEYS + ":"
    replies: ClassVar[str] = _KEYS
    levels: tuple[int, ...] = (2, 3, 4, 5, 6, 7)
    dots: bool = False

    @property
    def alphabet(self) -> str:
        """Characters of answers and prompts."""
        return "".join(dict.fromkeys(f"{self.replies}{self.letters}{self._between}{self.mark}>"))

    @property
    def _between(self) -> str:
        return "." if self.dots else ""

    def body(self, level: int, rng: np.random.Generator) -> str:
        """A path over different letters, its arrows in any order."""
        nodes: list[str] = rng.permutation(list(_KEYS))[: level + 1].tolist()
        arrows = [f"{a}{b}" for a, b in pairwise(nodes)]
        order: list[int] = rng.permutation(level).tolist()
        return f"{self._between.join(arrows[i] for i in order)}:{nodes[0]}"

    def answer(self, body: str) -> str:
        """From the start until no arrow leads on."""
        arrows, here = body.replace(".", "").split(":")
        onward = dict(zip(arrows[::2], arrows[1::2], strict=True))
        found: list[str] = []
        while here in onward:
            here = onward[here]
            found.append(here)
        return "".join(found)

    def effort(self, prompt: str) -> int:
        """Arrows read until the one is found that leads on, for each step."""
        arrows, here = prompt[1:-1].replace(".", "").split(":")
        return sum(arrows[::2].index(step) + 1 for step in here + self.solve(prompt)[:-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect(Terse):
    """Look up row after row: ``Ha5b.c4f.f7a:c>`` asks for ``f4a7b5``. The level is the number of rows.

    A row has its key, its value and the key of the next row; rows stand in any order, a dot between two. The answer has, from the
    row asked for on, where each leads and its value. The end is a key without a row.

    >>> Collect().solve("Ha5b.c4f.f7a:c>"), Collect().effort("Ha5b.c4f.f7a:c>")
    ('f4a7b5', 6)
    """

    title: ClassVar[str] = "collect"
    area: ClassVar[str] = "tables"
    mark: ClassVar[str] = "H"
    letters: ClassVar[str] = _KEYS + _DIGITS + ".:"
    replies: ClassVar[str] = _KEYS + _DIGITS
    width: ClassVar[int] = 1
    levels: tuple[int, ...] = (2, 3, 4, 5, 6, 7)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Rows over different letters, in any order; digits drawn evenly."""
        keys: list[str] = rng.permutation(list(_KEYS))[: level + 1].tolist()
        rows = [f"{a}{''.join(pick_symbols(rng, _DIGITS, self.width))}{b}" for a, b in pairwise(keys)]
        order: list[int] = rng.permutation(level).tolist()
        return f"{'.'.join(rows[i] for i in order)}:{keys[0]}"

    def answer(self, body: str) -> str:
        """Row after row."""
        return "".join(f"{row[-1]}{row[1]}" for row in self.walk(body))

    def effort(self, prompt: str) -> int:
        """Rows read until each is found."""
        rows = prompt[1:-1].partition(":")[0].split(".")
        return sum(rows.index(row) + 1 for row in self.walk(prompt[1:-1]))

    def walk(self, body: str) -> list[str]:
        """The rows in the order in which they lead to each other."""
        rows, here = body.split(":")
        at, found = {row[0]: row for row in rows.split(".")}, list[str]()
        while here in at:
            found.append(at[here])
            here = at[here][-1]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SumAlong(Collect):
    """Add up row after row: ``Ta5b.c4f.f7a:c>`` asks for ``f4a1b6``. The level is the number of rows.

    `Collect` with the total so far, tens dropped, in place of the row's own value.

    >>> SumAlong().solve("Ta5b.c4f.f7a:c>"), SumAlong().effort("Ta5b.c4f.f7a:c>")
    ('f4a1b6', 6)
    """

    title: ClassVar[str] = "balance"
    area: ClassVar[str] = "arithmetic"
    mark: ClassVar[str] = "T"

    def answer(self, body: str) -> str:
        """Row after row, each added to those before."""
        total, found = 0, list[str]()
        for row in self.walk(body):
            total = (total + int(row[1])) % 10
            found.append(f"{row[-1]}{total}")
        return "".join(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddAlong(Collect):
    """Add two numbers whose columns are rows: ``Nf43b.c78f:c>`` is 47 + 38 and asks for ``f5b80``. The level is their digits.

    `AddDigits` on the rows of `Collect`, each with the two digits of a column, ones first; behind the last one stands the carry.

    >>> AddAlong().solve("Nf43b.c78f:c>"), AddAlong().effort("Nf43b.c78f:c>")
    ('f5b80', 3)
    """

    title: ClassVar[str] = "columns"
    area: ClassVar[str] = "arithmetic"
    mark: ClassVar[str] = "N"
    width: ClassVar[int] = 2
    levels: tuple[int, ...] = (2, 3, 4, 5, 6)

    def answer(self, body: str) -> str:
        """Column by column, with a carry."""
        carry, found = 0, list[str]()
        for row in self.walk(body):
            carry, digit = divmod(int(row[1]) + int(row[2]) + carry, 10)
            found.append(f"{row[-1]}{digit}")
        return "".join(found) + str(carry)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectRows(Terse):
    """Write the values of the rows with a key, in order: ``Da3b4a2:a>`` asks for ``32``. The level is the number of rows.

    >>> SelectRows().solve("Da3b4a2:a>")
    '32'
    """

    title: ClassVar[str] = "select"
    area: ClassVar[str] = "tables"
    mark: ClassVar[str] = "D"
    letters: ClassVar[str] = "abc" + _DIGITS + ":"
    replies: ClassVar[str] = _DIGITS
    levels: tuple[int, ...] = (3, 4, 5, 6, 7, 8, 9, 10)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Keys and values drawn evenly; asked for is the key of a row."""
        keys = pick_symbols(rng, "abc", level)
        rows = "".join(f"{k}{v}" for k, v in zip(keys, pick_symbols(rng, _DIGITS, level), strict=True))
        return f"{rows}:{keys[int(rng.integers(0, level))]}"

    def answer(self, body: str) -> str:
        """Row after row."""
        rows, key = body.split(":")
        return "".join(value for name, value in zip(rows[::2], rows[1::2], strict=True) if name == key)

    def effort(self, prompt: str) -> int:
        """Rows read."""
        return (len(prompt) - 4) // 2
