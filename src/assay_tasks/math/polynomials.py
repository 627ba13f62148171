"""Polynomials: values, products, quotients, roots, signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, isqrt
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts, Solution
from assay_tasks.math.exact import ExactProblem, sum_text, wrap_number

__all__ = ["Division", "Evaluation", "Expansion", "Inequality", "Quadratic", "multiply", "polynomial"]

Coefficients = Sequence[int | Fraction]
"""Of a polynomial, the highest power first."""


def polynomial(coefficients: Coefficients, symbol: str = "x") -> str:
    """A polynomial as text.

    >>> polynomial([1, -3, 0, 2]), polynomial([0])
    ('x^3 - 3x^2 + 2', '0')
    """
    top = len(coefficients) - 1
    powers = (f"{symbol}^{k}" if k > 1 else symbol if k else "" for k in range(top, -1, -1))
    return sum_text(coefficients, powers)


def multiply(p: Coefficients, q: Coefficients) -> list[int | Fraction]:
    """The product of two polynomials.

    >>> multiply([1, 1], [1, -1])
    [1, 0, -1]
    """
    out: list[int | Fraction] = [0] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            out[i + j] += a * b
    return out


def _random(degree: int, most: int, rng: Random) -> list[int]:
    """Whole coefficients, the first not 0."""
    return [rng.choice((-1, 1)) * rng.randint(1, most), *(rng.randint(-most, most) for _ in range(degree))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(ExactProblem):
    r"""The value of a polynomial at a place. The level is its degree.

    >>> Evaluation().solve({"coefficients": [2, 0, -3], "at": -2}).steps
    '2\n2 × (-2) + 0 = -4\n(-4) × (-2) - 3 = 5'
    """

    name: str = "algebra/evaluate"

    templates: ClassVar[tuple[str, ...]] = (
        "What is the value of p(x) = {polynomial} at x = {at}?",
        "Let p(x) = {polynomial}. Compute p({at}).",
        "Substitute x = {at} into {polynomial} and calculate the result.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Small coefficients and a small place."""
        return {"coefficients": _random(level, 9, rng), "at": rng.choice((-1, 1)) * rng.randint(2, 7)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The polynomial as text."""
        return {"polynomial": polynomial(facts["coefficients"]), "at": str(facts["at"])}

    def solve(self, facts: Facts) -> Solution:
        """Horner's scheme."""
        value, *rest = facts["coefficients"]
        at = facts["at"]
        steps = [str(value)]
        for c in rest:
            found = value * at + c
            steps.append(f"{wrap_number(value)} × {wrap_number(at)} {'-' if c < 0 else '+'} {abs(c)} = {found}")
            value = found
        return Solution(answer=str(value), steps="\n".join(steps), effort=len(rest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion(ExactProblem):
    r"""A product of polynomials, multiplied out. The level is the number of multiplications.

    >>> Expansion().solve({"factors": [[1, 2], [1, -2], [2, 1]]}).steps
    '(x + 2)(x - 2) = x^2 - 4\n(x^2 - 4)(2x + 1) = 2x^3 + x^2 - 8x - 4'
    """

    name: str = "algebra/expand"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    written: ClassVar[str] = "expanded"
    templates: ClassVar[tuple[str, ...]] = (
        "Expand {product} and collect like terms.",
        "Multiply out: {product}. Give a polynomial in x without brackets.",
        "Write {product} as a sum of powers of x with coefficients.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Factors of degree 1, and at most one of degree 2."""
        factors = [[rng.choice((1, 1, 2, 3)), rng.choice((-1, 1)) * rng.randint(1, 9)] for _ in range(level + 1)]
        if rng.random() < 0.4:
            factors[-1] = _random(2, 5, rng)
        return {"factors": sorted(factors)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The factors in brackets."""
        return {"product": "".join(f"({polynomial(f)})" for f in facts["factors"])}

    def solve(self, facts: Facts) -> Solution:
        """One factor after the other."""
        value: Coefficients = facts["factors"][0]
        steps: list[str] = []
        effort = 0
        for factor in facts["factors"][1:]:
            found = multiply(value, factor)
            steps.append(f"({polynomial(value)})({polynomial(factor)}) = {polynomial(found)}")
            effort += len(value) * len(factor)
            value = found
        return Solution(answer=polynomial(value), steps="\n".join(steps), effort=effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class Division(ExactProblem):
    r"""Quotient or remainder of a division of polynomials. The level is the degree of the quotient.

    >>> Division().solve({"dividend": [1, 0, -1, 5], "divisor": [1, -1], "what": "remainder"}).steps
    'x^2 (x - 1), left: x^2 - x + 5\nx (x - 1), left: 5\nquotient x^2 + x, remainder 5'
    """

    name: str = "algebra/divide"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    written: ClassVar[str] = "expanded"
    templates: ClassVar[tuple[str, ...]] = (
        "Divide {dividend} by {divisor}. What is the {what}?",
        "Find the {what} of the polynomial division of {dividend} by {divisor}.",
        "Long division: ({dividend}) ÷ ({divisor}). State the {what}, a polynomial in x or a number.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A divisor with leading coefficient 1, a quotient and a remainder."""
        degree = rng.choice((1, 2))
        divisor = [1, *_random(degree - 1, 6, rng)]
        dividend = multiply(divisor, _random(level, 5, rng))
        rest = [rng.randint(-9, 9) for _ in range(degree)]
        return {
            "dividend": [a + b for a, b in zip(dividend, [0] * (len(dividend) - degree) + rest, strict=True)],
            "divisor": divisor,
            "what": rng.choice(("quotient", "remainder")),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Both polynomials, and what is asked for."""
        return {
            "dividend": polynomial(facts["dividend"]),
            "divisor": polynomial(facts["divisor"]),
            "what": facts["what"],
        }

    def solve(self, facts: Facts) -> Solution:
        """Long division."""
        left, divisor = list(facts["dividend"]), facts["divisor"]
        quotient: list[int] = []
        steps: list[str] = []
        effort = 0
        while len(left) >= len(divisor):
            c = left[0]
            left = [a - c * b for a, b in zip(left, divisor + [0] * (len(left) - len(divisor)), strict=True)][1:]
            quotient.append(c)
            effort += len(divisor)
            if c:
                term = polynomial([c] + [0] * (len(left) - len(divisor) + 1))
                steps.append(f"{term} ({polynomial(divisor)}), left: {polynomial(left)}")
        steps.append(f"quotient {polynomial(quotient)}, remainder {polynomial(left)}")
        answer = polynomial(quotient if facts["what"] == "quotient" else left)
        return Solution(answer=answer, steps="\n".join(steps), effort=effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadratic(ExactProblem):
    r"""The real roots of a quadratic equation. The levels: whole roots, fractions, square roots, both.

    The lowest level has only about 600 questions.

    >>> Quadratic().solve({"coefficients": [1, -2, -4]}).steps
    'discriminant: (-2)^2 - 4 × 1 × (-4) = 20\nsqrt(20) = 2 × sqrt(5)\nx = (2 ± 2 × sqrt(5)) / 2'
    >>> Quadratic().solve({"coefficients": [1, -2, -4]}).answer
    '1 - sqrt(5), 1 + sqrt(5)'
    """

    name: str = "algebra/quadratic"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    unique: ClassVar[bool | None] = False  # beside a part of the roots they are the same set
    written: ClassVar[str] = "simple"
    templates: ClassVar[tuple[str, ...]] = (
        "Solve {equation} = 0 over the real numbers. List all solutions exactly, separated by commas.",
        "Find all real x with {equation} = 0. Give exact values (fractions, sqrt(...)) with commas in between.",
        "What are the real roots of {equation}? Answer with exact values, separated by commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """From the roots where they are rational, and otherwise from coefficients whose discriminant is no square."""
        if level <= 2:
            a, b = (1, 1) if level == 1 else (rng.randint(2, 6), rng.randint(1, 6))
            first, second = ([c, -rng.randint(-15, 15)] for c in (a, b))
            return {"coefficients": _reduce_coefficients(multiply(first, second))}
        while True:
            a, b, c = (1 if level == 3 else rng.randint(2, 9)), rng.randint(-12, 12), rng.randint(-15, 15)
            inside = b * b - 4 * a * c
            if inside > 0 and isqrt(inside) ** 2 != inside:
                return {"coefficients": _reduce_coefficients([a, b, c])}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The left side."""
        return {"equation": polynomial(facts["coefficients"])}

    def solve(self, facts: Facts) -> Solution:
        """The formula, with the square taken out of the root."""
        a, b, c = facts["coefficients"]
        inside = b * b - 4 * a * c
        steps = [f"discriminant: {wrap_number(b)}^2 - 4 × {a} × {wrap_number(c)} = {inside}"]
        out, left = _square_out(inside)
        if left == 1 or not inside:
            roots = sorted({Fraction(-b - out, 2 * a), Fraction(-b + out, 2 * a)}) if inside else [Fraction(-b, 2 * a)]
            steps.append(f"x = ({-b} ± {out if inside else 0}) / {2 * a}")
            return Solution(answer=", ".join(map(str, roots)), steps="\n".join(steps), effort=3 + a.bit_length())
        steps.append(f"sqrt({inside}) = {out} × sqrt({left})" if out > 1 else f"sqrt({inside}) has no square in it")
        root = f"{out} × sqrt({left})" if out > 1 else f"sqrt({left})"
        steps.append(f"x = ({-b} ± {root}) / {2 * a}")
        common = gcd(gcd(b, out), 2 * a)
        answer = ", ".join(_radical(-b // common, sign * out // common, left, 2 * a // common) for sign in (-1, 1))
        return Solution(answer=answer, steps="\n".join(steps), effort=5 + out.bit_length() + a.bit_length())


def _reduce_coefficients(coefficients: Sequence[int | Fraction]) -> list[int]:
    whole = [int(c) for c in coefficients]
    common = gcd(*whole) * (-1 if whole[0] < 0 else 1)
    return [c // common for c in whole]


def _square_out(n: int) -> tuple[int, int]:
    """The largest square in a number, as its root, and what is left."""
    out, k = 1, 2
    while k * k <= n:
        if n % (k * k):
            k += 1
        else:
            n //= k * k
            out *= k
    return out, n


def _radical(whole: int, factor: int, inside: int, below: int) -> str:
    root = ("" if abs(factor) == 1 else f"{abs(factor)}*") + f"sqrt({inside})"
    text = f"{whole} {'-' if factor < 0 else '+'} {root}" if whole else f"{'-' if factor < 0 else ''}{root}"
    return f"({text})/{below}" if below > 1 else text


_SHOWN = {"<": "<", "<=": "≤", ">": ">", ">=": "≥"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inequality(ExactProblem):
    r"""Where a product is positive, negative or 0. The level is the number of factors, less one; some stand below a line.

    >>> Inequality().solve({"roots": [-1, 2], "below": [], "sign": "<"}).answer
    '(-1, 2)'
    >>> Inequality().solve({"roots": [1], "below": [3], "sign": ">="}).steps
    'the sign changes at 1, 3\n(-∞, 1) positive, (1, 3) negative, (3, ∞) positive'
    """

    name: str = "algebra/inequality"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    unique: ClassVar[bool | None] = False  # joined with a part of itself an interval is the same
    written: ClassVar[str] = "interval"
    templates: ClassVar[tuple[str, ...]] = (
        "Solve {left} {sign} 0 over the real numbers. Answer in interval notation, such as (-∞, 1] ∪ (3, ∞).",
        "For which real x is {left} {sign} 0? Give the solution set as an interval or a union of intervals.",
        "Find all real solutions of {left} {sign} 0 in interval notation.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Different roots; in half of the questions one factor divides."""
        roots = rng.sample(range(-12, 13), level + 1)
        below = roots[level:] if rng.random() < 0.5 else []
        return {"roots": sorted(roots[: len(roots) - len(below)]), "below": below, "sign": rng.choice(("<", "<=", ">", ">="))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The product or quotient, and the sign."""
        above, below = ("".join(f"({polynomial([1, -r])})" for r in facts[key]) for key in ("roots", "below"))
        return {"left": f"{above}/{below}" if below else above, "sign": _SHOWN[facts["sign"]]}

    def solve(self, facts: Facts) -> Solution:
        """The sign between each two roots."""
        roots = sorted([*facts["roots"], *facts["below"]])
        ends = ["-∞", *map(str, roots), "∞"]
        closed = "=" in facts["sign"]
        parts: list[list[str]] = []
        said: list[str] = []
        for i in range(len(roots) + 1):
            positive = (len(roots) - i) % 2 == 0
            low, high = ends[i], ends[i + 1]
            said.append(f"({low}, {high}) {'positive' if positive else 'negative'}")
            if positive == (facts["sign"][0] == ">"):
                parts.append([self._end(low, "([", facts, closed), low, high, self._end(high, ")]", facts, closed)])
        text = " ∪ ".join(f"{a}{low}, {high}{b}" for a, low, high, b in parts)
        steps = f"the sign changes at {', '.join(map(str, roots))}\n{', '.join(said)}"
        return Solution(answer=text, steps=steps, effort=len(roots) + 1)

    def _end(self, end: str, brackets: str, facts: Facts, closed: bool) -> str:
        return brackets[closed and "∞" not in end and int(end) in facts["roots"]]
