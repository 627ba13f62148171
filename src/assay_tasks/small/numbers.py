"""Numbers: binary to octal, the largest, sums digit by digit, a running total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay_tasks.small.terse import Terse, pick_symbols

__all__ = ["AddDigits", "Largest", "RunningTotal", "ToOctal"]

_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToOctal(Terse):
    """Write a binary number in base eight: ``O101011>`` asks for ``53``. The level is the number of octal digits.

    Leading zeros stay, three bits to a digit. The lowest level has only 64 questions.

    >>> ToOctal().solve("O101011>")
    '53'
    """

    title: ClassVar[str] = "octal"
    area: ClassVar[str] = "numbers"
    mark: ClassVar[str] = "O"
    letters: ClassVar[str] = "01"
    replies: ClassVar[str] = "01234567"
    levels: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Bits drawn evenly."""
        return "".join(pick_symbols(rng, "01", 3 * level))

    def answer(self, body: str) -> str:
        """Three bits to a digit."""
        return "".join(str(int(body[i : i + 3], 2)) for i in range(0, len(body), 3))

    def effort(self, prompt: str) -> int:
        """Bits read."""
        return len(prompt) - 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest(Terse):
    """Write the largest of some two-digit numbers: ``M23.45>`` asks for ``45``. The level is how many there are.

    >>> Largest().solve("M23.45.07>")
    '45'
    """

    title: ClassVar[str] = "largest"
    area: ClassVar[str] = "numbers"
    mark: ClassVar[str] = "M"
    letters: ClassVar[str] = _DIGITS + "."
    replies: ClassVar[str] = _DIGITS
    levels: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Numbers from 00 to 99, drawn evenly."""
        return ".".join(f"{n:02d}" for n in rng.integers(0, 100, level))

    def answer(self, body: str) -> str:
        """The largest."""
        return max(body.split("."))

    def effort(self, prompt: str) -> int:
        """Comparisons."""
        return prompt.count(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddDigits(Terse):
    """Add two numbers written digit by digit, ones first: ``A7843>`` is 47 + 38 and asks for ``580``. The level is their digits.

    The prompt has the ones of both, then the tens of both, and so on; the answer has the sum's digits in the same order, one more
    than the numbers have.

    >>> AddDigits().solve("A7843>")  # 85, ones first
    '580'
    """

    title: ClassVar[str] = "addition"
    area: ClassVar[str] = "arithmetic"
    mark: ClassVar[str] = "A"
    letters: ClassVar[str] = _DIGITS
    replies: ClassVar[str] = _DIGITS
    levels: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Digits drawn evenly."""
        return "".join(pick_symbols(rng, _DIGITS, 2 * level))

    def answer(self, body: str) -> str:
        """Column by column, with a carry."""
        carry, found = 0, list[str]()
        for a, b in zip(body[::2], body[1::2], strict=True):
            carry, digit = divmod(int(a) + int(b) + carry, 10)
            found.append(str(digit))
        return "".join(found) + str(carry)

    def effort(self, prompt: str) -> int:
        """Columns, and the carries between them."""
        carry = steps = 0
        for a, b in zip(prompt[1:-1:2], prompt[2:-1:2], strict=True):
            carry = int(int(a) + int(b) + carry > 9)
            steps += 1 + carry
        return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTotal(Terse):
    """Write the last digit of the total so far, behind each digit: ``G475>`` asks for ``416``. The level is the number of digits.

    >>> RunningTotal().solve("G475>")
    '416'
    """

    title: ClassVar[str] = "total"
    area: ClassVar[str] = "arithmetic"
    mark: ClassVar[str] = "G"
    letters: ClassVar[str] = _DIGITS
    replies: ClassVar[str] = _DIGITS
    levels: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 9)

    def body(self, level: int, rng: np.random.Generator) -> str:
        """Digits drawn evenly."""
        return "".join(pick_symbols(rng, _DIGITS, level))

    def answer(self, body: str) -> str:
        """Digit after digit, tens dropped."""
        total, found = 0, list[str]()
        for digit in body:
            total = (total + int(digit)) % 10
            found.append(str(total))
        return "".join(found)

    def effort(self, prompt: str) -> int:
        """Additions."""
        return len(prompt) - 2
