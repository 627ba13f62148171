"""A long answer worked out line by line, of which only the last line is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.core.protocols import Verifier
from assay.verify.answer_verifier import AnswerPlace
from assay.verify.exact import ExactMatch
from assay_tasks.small.terse import pick_symbols
from assay_tasks.small.worlds import Cells

__all__ = ["Generations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generations(Cells):
    """Run the automaton of `Cells` on 14 cells: ``I00000000000001:03>`` asks for the third row, ``01.00000000001101``.

    The level is the number of rows. The oracle writes every row on a line of its own, behind how many are to come with it:
    eighteen characters a line. Only the last line is judged: an error on the way costs the whole answer, and nothing says where
    it was.

    >>> print(Generations().solve("I00000000000001:03>"))
    03.00000000000011
    02.00000000000111
    01.00000000001101
    """

    title: ClassVar[str] = "generations"
    mark: ClassVar[str] = "I"
    letters: ClassVar[str] = "0123456789.:"
    replies: ClassVar[str] = "0123456789.\n"
    levels: tuple[int, ...] = (2, 4, 6, 8, 10, 12, 14, 16)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Cells drawn evenly, and how many rows are asked for."""
        return f"{''.join(pick_symbols(rng, '01', 14))}:{level:02d}"

    def answer(self, body: str) -> str:
        """Row by row."""
        row, level = body.split(":")
        lines: list[str] = []
        for left in range(int(level), 0, -1):
            row = Cells.answer(self, row)
            lines.append(f"{left:02d}.{row}")
        return "\n".join(lines)

    def gold(self, prompt: str) -> str:
        """The last line."""
        return self.solve(prompt).rpartition("\n")[2]

    def effort(self, prompt: str) -> int:
        """Cells computed."""
        row, level = prompt[1:-1].split(":")
        return len(row) * int(level)

    def verifier(self) -> Verifier:
        """``correct``: the last line is right, whatever stands above it."""
        return ExactMatch(where=AnswerPlace.LINE)
