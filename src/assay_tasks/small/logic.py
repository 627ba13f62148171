"""Logic: who lies, what a row of gates gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay_tasks.small.terse import Terse, pick_symbols

__all__ = ["Gates", "Knights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knights(Terse):
    """Tell truth-tellers from liars along a chain of claims: ``Kefbt>`` asks for ``ff``. The level is the number of claims.

    Each person, named by a letter, says of the next one that they tell the truth (``t``) or lie (``f``); the first tells the
    truth. The answer says of all but the first, in order, what they are. In the example ``e`` truly says that ``b`` lies; so
    ``b``, who says that the next tells the truth, is lying. The lowest level has only 18 questions.

    >>> Knights().solve("Kefbt>")
    'ff'
    """

    title: ClassVar[str] = "knights"
    area: ClassVar[str] = "logic"
    mark: ClassVar[str] = "K"
    letters: ClassVar[str] = "abcdegtfhij"
    replies: ClassVar[str] = "tf"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Different names, claims drawn evenly."""
        names = rng.permutation(list("abcdeghij"))[:level]
        return "".join(f"{name}{claim}" for name, claim in zip(names, pick_symbols(rng, "tf", level), strict=True))

    def answer(self, body: str) -> str:
        """From the first, who tells the truth, along the chain."""
        honest, found = True, list[str]()
        for claim in body[1::2]:
            honest = (claim == "t") == honest
            found.append("t" if honest else "f")
        return "".join(found)

    def effort(self, prompt: str) -> int:
        """Claims weighed."""
        return (len(prompt) - 2) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates(Terse):
    """Write the value behind each gate, from 0 on: ``L^1&0|1>`` asks for ``101``. The level is the number of gates.

    A gate takes the value before it and the digit behind it: ``&`` and, ``|`` or, ``^`` either but not both. The lowest level has
    only 36 questions.

    >>> Gates().solve("L^1&0|1>")
    '101'
    """

    title: ClassVar[str] = "gates"
    area: ClassVar[str] = "logic"
    mark: ClassVar[str] = "L"
    letters: ClassVar[str] = "&|^01"
    replies: ClassVar[str] = "01"
    levels: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 9)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Gates and digits drawn evenly."""
        return "".join(f"{g}{d}" for g, d in zip(pick_symbols(rng, "&|^", level), pick_symbols(rng, "01", level), strict=True))

    def answer(self, body: str) -> str:
        """Gate after gate."""
        value, found = 0, list[str]()
        for gate, digit in zip(body[::2], body[1::2], strict=True):
            other = int(digit)
            value = value & other if gate == "&" else value | other if gate == "|" else value ^ other
            found.append(str(value))
        return "".join(found)

    def effort(self, prompt: str) -> int:
        """Gates computed."""
        return (len(prompt) - 2) // 2
