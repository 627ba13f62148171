"""What problems with numbers share: exact answers, and numbers and formulas as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Form, Problem
from assay_tasks.math.arithmetic import number_in

__all__ = ["ExactProblem", "primes_of", "signed_term", "sum_text", "wrap_number"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactProblem(Problem):
    """Base of problems whose answers are numbers or formulas, judged by equality, however they are written."""

    domain: str = "math"

    unique: ClassVar[bool | None] = True
    """Whether the answer is right alone, in whatever form it is written."""

    written: ClassVar[str] = "number"
    """How an answer must be written (`assay.verify.math.MathAnswer`, ``form``)."""

    def verifier(self, form: Form) -> Verifier:
        """Equality in exact arithmetic."""
        return number_in(form, self.written)


def primes_of(n: int) -> list[int]:
    """Prime factors in ascending order, each as often as it divides, by trial division.

    >>> primes_of(360), primes_of(1), primes_of(97)
    ([2, 2, 2, 3, 3, 5], [], [97])
    """
    out: list[int] = []
    p = 2
    while p * p <= n:
        while n % p == 0:
            out.append(p)
            n //= p
        p += 1 if p == 2 else 2
    return [*out, n] if n > 1 else out


def wrap_number(value: int | Fraction) -> str:
    """A number as a factor or term behind a sign: negative ones and fractions in brackets.

    >>> wrap_number(3), wrap_number(-3), wrap_number(Fraction(1, 2))
    ('3', '(-3)', '(1/2)')
    """
    return f"({value})" if value < 0 or value.denominator != 1 else str(value)


def signed_term(coefficient: int | Fraction, symbol: str, first: bool = False) -> str:
    """A term of a sum, with the sign that joins it to what stands before; empty for 0.

    >>> signed_term(-1, "x"), signed_term(3, "y"), signed_term(Fraction(1, 2), "x", first=True), signed_term(-4, "", first=True)
    (' - x', ' + 3y', '(1/2)x', '-4')
    """
    if not coefficient:
        return ""
    size = abs(coefficient)
    number = "" if size == 1 and symbol else f"({size})" if size.denominator != 1 and symbol else str(size)
    if first:
        return f"{'-' if coefficient < 0 else ''}{number}{symbol}"
    return f" {'-' if coefficient < 0 else '+'} {number}{symbol}"


def sum_text(coefficients: Sequence[int | Fraction], symbols: Iterable[str]) -> str:
    """A sum of terms, those with coefficient 0 left out.

    >>> sum_text([2, 0, -1], ["x^2", "x", ""]), sum_text([0], ["x"])
    ('2x^2 - 1', '0')
    """
    out = ""
    for coefficient, symbol in zip(coefficients, symbols, strict=True):
        out += signed_term(coefficient, symbol, first=not out)
    return out or "0"
