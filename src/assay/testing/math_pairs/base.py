"""What the families share: draws, and ways to write a number."""

from __future__ import annotations

import random
from fractions import Fraction

__all__ = ["Made", "Rng", "bit", "decimal_or", "frac", "group_thousands", "list_numbers", "numbers"]


Rng = random.Random


Made = tuple[str, list[str], list[str]]
"""A gold answer, writings of the same value, writings of other values."""


def bit(rng: Rng, low: int = 1, high: int = 99) -> int:
    """A whole number that is not 0, of either sign."""
    return rng.choice((-1, 1)) * rng.randint(low, high)


def frac(value: Fraction, command: str = "\\frac") -> str:
    """A fraction in LaTeX; a whole number as it is."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{'-' if value < 0 else ''}{command}{{{abs(value.numerator)}}}{{{value.denominator}}}"


def group_thousands(n: int, comma: str = ",") -> str:
    """A whole number with its thousands set apart."""
    return f"{n:,}".replace(",", comma)


def numbers(rng: Rng, n: int) -> list[Fraction]:
    """Different numbers, whole ones and fractions."""
    out: list[Fraction] = []
    while len(out) < n:
        value = Fraction(bit(rng, 0, 20), rng.choice((1, 1, 1, 2, 3, 4)))
        if value not in out:
            out.append(value)
    return out


def decimal_or(value: Fraction, rng: Rng) -> str:
    """A number as decimal where that is short, or as fraction."""
    return str(float(value)) if value.denominator in (1, 2, 4) and rng.random() < 0.5 else frac(value)


def list_numbers(values: list[Fraction], rng: Rng | None = None) -> str:
    """Numbers with commas between."""
    return ", ".join(frac(v) if rng is None else decimal_or(v, rng) for v in values)
