"""Little worlds: a walk through a strip, a machine with one counter, a row of cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.protocols import Verifier
from assay.verify.answer_verifier import AnswerPlace
from assay.verify.exact import FormatIs, Together
from assay.verify.structure.maze import MazePath
from assay_tasks.small.terse import Terse, pick_symbols

__all__ = ["Cells", "Counter", "Strip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip(Terse):
    """Walk a strip of two rows: ``W.^._>`` asks for such as ``rdrrurr``. The level counts columns.

    The walker starts in the upper row, left of the first column, and must reach the upper row right of the last; both of those
    columns are free. ``^`` is a wall in the upper row, ``_`` one in the lower, ``.`` none. Moves are ``r``, ``u`` and ``d``; any
    way is right that meets no wall. The lowest level has only 41 questions.

    >>> Strip().solve("W.^._>")
    'rdrrurr'
    """

    title: ClassVar[str] = "strip"
    area: ClassVar[str] = "mazes"
    mark: ClassVar[str] = "W"
    letters: ClassVar[str] = ".^_"
    replies: ClassVar[str] = "rud"
    levels: tuple[int, ...] = (4, 5, 6, 7, 8, 9, 10)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Columns drawn evenly; a wall right behind one in the other row is left out, for nobody could pass."""
        columns = pick_symbols(rng, self.letters, level)
        for i in range(1, level):
            if {columns[i - 1], columns[i]} == {"^", "_"}:
                columns[i] = "."
        return "".join(columns)

    def answer(self, body: str) -> str:
        """Right, and up or down only before a wall, or at the end."""
        moves, upper = "", True
        for column in body:
            if column == ("^" if upper else "_"):
                moves += "d" if upper else "u"
                upper = not upper
            moves += "r"
        return moves + ("r" if upper else "ru")

    def gold(self, prompt: str) -> FrozenMap:
        """The strip as a maze with ``S``, ``G`` and ``#``."""
        body = prompt[1:-1]
        upper, lower = ("".join("#" if c == wall else "." for c in body) for wall in "^_")
        return FrozenMap({"maze": (f"S{upper}G", f".{lower}.")})

    def effort(self, prompt: str) -> int:
        """Moves."""
        return len(self.solve(prompt))

    def verifier(self) -> Verifier:
        """``correct``: a way to the goal; ``format``: moves."""
        return Together((MazePath(where=AnswerPlace.WHOLE), FormatIs("[rud]*")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter(Terse):
    """Run a program for a counter from 0 to 4: ``X+1*3-2>`` asks for ``131``. The level is the number of instructions.

    The counter starts at 0; each instruction adds, subtracts or multiplies by its digit, and leaves the remainder by 5. The
    answer has the counter behind each. The lowest level has only 225 questions.

    >>> Counter().solve("X+1*3-2>")
    '131'
    """

    title: ClassVar[str] = "counter"
    area: ClassVar[str] = "programs"
    mark: ClassVar[str] = "X"
    letters: ClassVar[str] = "+-*01234"
    replies: ClassVar[str] = "01234"
    levels: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 9)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Instructions drawn evenly."""
        return "".join(f"{o}{d}" for o, d in zip(pick_symbols(rng, "+-*", level), pick_symbols(rng, "01234", level), strict=True))

    def answer(self, body: str) -> str:
        """Instruction by instruction."""
        value, found = 0, list[str]()
        for sign, digit in zip(body[::2], body[1::2], strict=True):
            n = int(digit)
            value = (value + n if sign == "+" else value - n if sign == "-" else value * n) % 5
            found.append(str(value))
        return "".join(found)

    def effort(self, prompt: str) -> int:
        """Instructions."""
        return (len(prompt) - 2) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells(Terse):
    """Write the next row of a cellular automaton: ``C01101>`` asks for ``11111``. The level is the number of cells.

    Rule 110 of Wolfram's numbering (https://mathworld.wolfram.com/Rule110.html), with 0 beyond the ends: a cell becomes 0 where
    it and its right neighbour are 0, or it and both neighbours 1, and 1 elsewhere. The lowest level has only 32 questions.

    >>> Cells().solve("C01101>")
    '11111'
    """

    title: ClassVar[str] = "cells"
    area: ClassVar[str] = "automata"
    mark: ClassVar[str] = "C"
    letters: ClassVar[str] = "01"
    replies: ClassVar[str] = "01"
    levels: tuple[int, ...] = (5, 6, 7, 8, 9, 10, 11, 12)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Cells drawn evenly."""
        return "".join(pick_symbols(rng, "01", level))

    def answer(self, body: str) -> str:
        """Cell by cell."""
        row = f"0{body}0"
        return "".join(str(110 >> int(row[i : i + 3], 2) & 1) for i in range(len(body)))

    def effort(self, prompt: str) -> int:
        """Cells computed."""
        return len(prompt) - 2
