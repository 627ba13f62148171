"""What the small families share: a mark, an end sign, symbols drawn evenly, and a verifier of the exact text."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.core.protocols import Verifier
from assay.tasks.single import SingleTurn
from assay.verify.exact import ExactMatch, FormatIs, Together

__all__ = ["Terse", "pick_symbols"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terse(SingleTurn):
    """Base of families whose prompt is a mark, a body and ``>``, and whose answer is one text.

    A family says ``title``, ``area``, ``mark``, ``symbols`` (of answers), ``letters`` (of bodies), ``body`` and ``answer``.
    """

    title: ClassVar[str]
    area: ClassVar[str]
    mark: ClassVar[str]
    letters: ClassVar[str]
    replies: ClassVar[str]

    @property
    def name(self) -> str:
        """Name of family and arm."""
        return self.title

    @property
    def domain(self) -> str:
        """What the tasks are about."""
        return self.area

    @property
    def symbols(self) -> str:
        """Characters of answers."""
        return self.replies

    @property
    def alphabet(self) -> str:
        """Characters of answers and prompts."""
        return "".join(dict.fromkeys(self.replies + self.letters + self.mark + ">"))

    @abstractmethod
    def body(self, level: int, rng: np.random.Generator) -> str:
        """What stands between the mark and ``>``."""
        ...

    @abstractmethod
    def answer(self, body: str) -> str:
        """The right answer."""
        ...

    def ask(self, level: int, rng: np.random.Generator) -> str:
        """Mark, body, ``>``."""
        return f"{self.mark}{self.body(level, rng)}>"

    def solve(self, prompt: str) -> str:
        """The right answer to a prompt."""
        return self.answer(prompt[1:-1])

    def verifier(self) -> Verifier:
        """``correct``: the exact text; ``format``: as many symbols of answers."""
        pattern = "".join(f"\\{c}" if c in "[](){}^.*+?|-" else c for c in self.replies)
        return Together((ExactMatch(), FormatIs(f"[{pattern}]*", like_answer=True)))


def pick_symbols(rng: np.random.Generator, symbols: str | list[str], n: int) -> list[str]:
    """``n`` of the symbols, drawn evenly and independently."""
    return [symbols[i] for i in rng.integers(0, len(symbols), n)]
