"""String reversal: the shortest family that is complete."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core.protocols import Verifier
from assay.tasks.single import SingleTurn
from assay.verify.exact import ExactMatch, FormatIs, Together

__all__ = ["Reverse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverse(SingleTurn):
    """Write the letters backwards: ``Rabca>`` asks for ``acba``. The level is the number of letters.

    >>> Reverse().solve("Rabca>")
    'acba'
    """

    levels: tuple[int, ...] = (3, 4, 5, 6, 7, 8)

    @property
    def name(self) -> str:
        """``reverse``."""
        return "reverse"

    @property
    def symbols(self) -> str:
        """Eight letters."""
        return "abcdefgh"

    @property
    def alphabet(self) -> str:
        """The letters, ``R`` and ``>``."""
        return self.symbols + "R>"

    def ask(self, level: int, rng: np.random.Generator) -> str:
        """Letters drawn evenly and independently."""
        return f"R{''.join(self.symbols[i] for i in rng.integers(0, len(self.symbols), level))}>"

    def solve(self, prompt: str) -> str:
        """The letters, last first."""
        return prompt[-2:0:-1]

    def verifier(self) -> Verifier:
        """Exact match, and a format of as many letters as the answer has."""
        return Together((ExactMatch(), FormatIs("[a-h]*", like_answer=True)))
