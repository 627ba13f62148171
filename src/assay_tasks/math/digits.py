"""How numbers are written: bases, digits, continued fractions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.exact import ExactMatch
from assay.verify.text.items import ListMatch
from assay_tasks.math.exact import ExactProblem

__all__ = ["BaseConversion", "ContinuedFraction", "DigitSums"]

_SYMBOLS = "0123456789ABCDEF"
_PLACES = ("ones", "tens", "hundreds", "thousands", "ten thousands", "hundred thousands")


def _write_digits(n: int, base: int) -> str:
    out = ""
    while n:
        out = _SYMBOLS[n % base] + out
        n //= base
    return out or "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseConversion(ExactProblem):
    r"""A number in another base. The level is its number of digits in decimal, less one.

    >>> BaseConversion().solve({"digits": "1011", "base": 2, "to": 3}).steps
    '(((1 × 2 + 0) × 2 + 1) × 2 + 1) = 11 in base 10\n11 = 3 × 3 + 2\n3 = 1 × 3 + 0\n1 = 0 × 3 + 1'
    """

    name: str = "numbers/base"
    levels: tuple[int, ...] = tuple(range(1, 8))

    templates: ClassVar[tuple[str, ...]] = (
        "The number {digits} is written in base {base}. Write it in base {to}{letters}.",
        "Convert {digits} from base {base} to base {to}{letters}.",
        "How is the number whose base-{base} digits are {digits} written in base {to}{letters}?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A number and two bases from 2 to 16."""
        base, to = rng.sample(range(2, 17), 2)
        return {"digits": _write_digits(rng.randrange(10**level, 10 ** (level + 1)), base), "base": base, "to": to}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The digits, the bases, and what stands for digits above 9 where there are such."""
        most = max(facts["base"], facts["to"])
        letters = " (A is the digit 10)" if most == 11 else f" (the digits from 10 to {most - 1} are A to {_SYMBOLS[most - 1]})"
        return {key: str(facts[key]) for key in ("digits", "base", "to")} | {"letters": letters if most > 10 else ""}

    def verifier(self, form: Form) -> Verifier:
        """The digits themselves, small letters forgiven."""
        return ExactMatch(strip=True, casefold=True, where=form.place)

    def solve(self, facts: Facts) -> Solution:
        """By way of the number: Horner's scheme, then division with remainder."""
        base, to = facts["base"], facts["to"]
        value, text, steps, out = 0, "", list[str](), ""
        for i, symbol in enumerate(facts["digits"]):
            digit = _SYMBOLS.index(symbol)
            value = value * base + digit
            text = f"({text} × {base} + {digit})" if i else str(digit)
        if base != 10:
            steps.append(f"{text} = {value} in base 10")
        if to == 10:
            return Solution(answer=str(value), steps="\n".join(steps), effort=len(facts["digits"]))
        rest = value
        while rest:
            steps.append(f"{rest} = {rest // to} × {to} + {rest % to}")
            out = _SYMBOLS[rest % to] + out
            rest //= to
        return Solution(answer=out, steps="\n".join(steps), effort=len(facts["digits"]) + len(out))


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitSums(ExactProblem):
    r"""How many numbers up to a bound have a given sum of digits. The level is the number of the bound's digits, less one.

    >>> print(DigitSums().solve({"n": 25, "total": 5}).steps)
    from 0 to 19, by the tens digit: 1 + 1 = 2
    from 20 to 24, by the ones digit: 0 + 0 + 0 + 1 + 0 = 1
    25 itself has another sum: 3 in all
    """

    name: str = "numbers/digit_sums"

    templates: ClassVar[tuple[str, ...]] = (
        "How many whole numbers from 1 to {n}, both included, have the digit sum {total}?",
        "Count the integers n with 1 ≤ n ≤ {n} whose decimal digits add up to {total}.",
        "All whole numbers from 1 up to and including {n} are written down. For how many of them is the sum of the "
        "digits {total}?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A bound, and the sum of a random number below it."""
        n = rng.randrange(10**level, 10 ** (level + 1))
        return {"n": n, "total": sum(map(int, str(rng.randint(1, n))))}

    def solve(self, facts: Facts) -> Solution:
        """Place by place: a smaller digit leaves the places behind it free."""
        n: int = facts["n"]
        left: int = facts["total"]
        text = str(n)
        free = _free(len(text))
        steps: list[str] = []
        answer = effort = start = 0
        for i, digit in enumerate(map(int, text)):
            places = len(text) - i - 1
            counts = [free[places][left - d] if 0 <= left - d < len(free[places]) else 0 for d in range(digit)]
            effort += len(counts) + places
            if counts:
                end = start + digit * 10**places
                said = " + ".join(map(str, counts)) + (f" = {sum(counts)}" if len(counts) > 1 else "")
                steps.append(f"from {start} to {end - 1}, by the {_PLACES[places]} digit: {said}")
                start = end
            answer += sum(counts)
            left -= digit
        answer += left == 0
        steps.append(f"{n} itself has {'this' if left == 0 else 'another'} sum: {answer} in all")
        return Solution(answer=str(answer), steps="\n".join(steps), effort=effort)


def _free(places: int) -> list[list[int]]:
    """How many ways so many digits have each sum, for each number of places up to the largest."""
    out = [[1]]
    for _ in range(places):
        last = out[-1]
        out.append([sum(last[max(0, s - 9) : s + 1]) for s in range(len(last) + 9)])
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuedFraction(ExactProblem):
    r"""The continued fraction of a fraction. The level is its number of terms, less two.

    >>> ContinuedFraction().solve({"above": 30, "below": 13}).steps
    '30 = 2 × 13 + 4\n13 = 3 × 4 + 1\n4 = 4 × 1 + 0'
    >>> ContinuedFraction().solve({"above": 30, "below": 13}).answer
    '2, 3, 4'
    """

    name: str = "numbers/continued_fraction"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "Expand {above}/{below} as a continued fraction a0 + 1/(a1 + 1/(a2 + ...)) with a0 a whole number, all further "
        "terms positive "
        "and the last at least 2. List the terms a0, a1, a2, ... with commas.",
        "Write {above}/{below} as a simple continued fraction [a0; a1, a2, ...] whose last term is greater than 1. "
        "Answer with the terms in order, separated by commas.",
        "What are the terms of the continued fraction of {above}/{below} that Euclid's algorithm gives? List the "
        "quotients in order, "
        "separated by commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """The fraction of random terms."""
        terms = [rng.randint(0, 12), *(rng.randint(1, 12) for _ in range(level)), rng.randint(2, 12)]
        value = Fraction(terms.pop())
        for term in reversed(terms):
            value = term + 1 / value
        return {"above": value.numerator, "below": value.denominator}

    def verifier(self, form: Form) -> Verifier:
        """The terms in their order."""
        return ListMatch(where=form.place)

    def solve(self, facts: Facts) -> Solution:
        """Euclid's algorithm."""
        a, b = facts["above"], facts["below"]
        steps: list[str] = []
        terms: list[int] = []
        while b:
            steps.append(f"{a} = {a // b} × {b} + {a % b}")
            terms.append(a // b)
            a, b = b, a % b
        return Solution(answer=", ".join(map(str, terms)), gold=terms, steps="\n".join(steps), effort=len(terms))
