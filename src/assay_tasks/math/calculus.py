"""Calculus of polynomials and quotients: derivatives, integrals, limits, series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import factorial
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts, Solution
from assay.tasks.problems import Problems
from assay_tasks.math.exact import ExactProblem, wrap_number
from assay_tasks.math.polynomials import multiply, polynomial

__all__ = ["Derivative", "Extremum", "Integral", "Limit", "Taylor", "calculus"]


def _coefficients(degree: int, most: int, rng: Random) -> list[int]:
    return [rng.choice((-1, 1)) * rng.randint(1, most), *(rng.randint(-most, most) for _ in range(degree))]


def _derivative(p: list[int]) -> list[int]:
    top = len(p) - 1
    return [c * (top - i) for i, c in enumerate(p[:-1])] or [0]


def _value(p: list[int], at: int | Fraction) -> Fraction:
    out = Fraction(0)
    for c in p:
        out = out * at + c
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivative(ExactProblem):
    r"""A derivative: of a polynomial, of products, of higher order. The level sets degree, factors and order.

    >>> Derivative().solve({"factors": [[1, 0, 1], [2, -1]], "order": 1}).steps
    'f(x) = 2x^3 - x^2 + 2x - 1\nf^(1)(x) = 6x^2 - 2x + 2'
    """

    name: str = "calculus/derivative"

    written: ClassVar[str] = "expanded"
    templates: ClassVar[tuple[str, ...]] = (
        "Find the {order} derivative of f(x) = {function}. Give it as a polynomial without brackets.",
        "Let f(x) = {function}. What is the {order} derivative of f, multiplied out?",
        "Differentiate {function} {times} with respect to x, and write the result as a sum of powers of x.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """One to three factors; the order never exceeds the degree."""
        degrees, orders = (((2,), (1,)), ((3,), (1,)), ((2, 2), (1,)), ((3, 2), (1, 2)), ((2, 2, 2), (2, 3)))[level - 1]
        return {"factors": [_coefficients(d, 9 if level < 3 else 5, rng) for d in degrees], "order": rng.choice(orders)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The function, and the order in words."""
        parts = [polynomial(f) for f in facts["factors"]]
        k: int = facts["order"] - 1
        return {
            "function": parts[0] if len(parts) == 1 else "".join(f"({p})" for p in parts),
            "order": ("first", "second", "third")[k],
            "times": ("once", "twice", "three times")[k],
        }

    def solve(self, facts: Facts) -> Solution:
        """Multiplied out first, then power by power."""
        value, *rest = facts["factors"]
        effort = len(value)
        for factor in rest:
            effort += len(value) * len(factor)
            value = [int(c) for c in multiply(value, factor)]
        steps = [f"f(x) = {polynomial(value)}"]
        for k in range(1, facts["order"] + 1):
            value = _derivative(value)
            effort += len(value)
            steps.append(f"f^({k})(x) = {polynomial(value)}")
        return Solution(answer=polynomial(value), steps="\n".join(steps), effort=effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integral(ExactProblem):
    r"""The integral of a polynomial between two bounds. The level is its degree.

    >>> Integral().solve({"coefficients": [3, 0, 1], "low": -1, "high": 2}).steps
    'F(x) = x^3 + x\nF(2) - F(-1) = 10 - (-2) = 12'
    """

    name: str = "calculus/integral"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "Compute the definite integral of {function} from x = {low} to x = {high}.",
        "What is ∫ ({function}) dx between the bounds {low} (lower) and {high} (upper)? Give the exact value.",
        "Integrate f(x) = {function} over the interval [{low}, {high}]. Answer with a whole number or a reduced fraction.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Small coefficients and bounds."""
        low = rng.randint(-3, 2)
        return {"coefficients": _coefficients(level, 9, rng), "low": low, "high": low + rng.randint(1, 4)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The function and the bounds."""
        return {"function": polynomial(facts["coefficients"]), "low": str(facts["low"]), "high": str(facts["high"])}

    def solve(self, facts: Facts) -> Solution:
        """By the antiderivative."""
        given = facts["coefficients"]
        whole = [Fraction(c, len(given) - i) for i, c in enumerate(given)] + [Fraction(0)]
        low, high = (sum(c * facts[k] ** (len(given) - i) for i, c in enumerate(whole)) for k in ("low", "high"))
        answer = Fraction(high - low)
        ends = f"F({facts['high']}) - F({facts['low']}) = {high} - {wrap_number(Fraction(low))} = {answer}"
        return Solution(answer=str(answer), steps=f"F(x) = {polynomial(whole)}\n{ends}", effort=len(given))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(ExactProblem):
    r"""The limit of a quotient of polynomials, where both are 0, or at infinity. The level sets the degrees.

    >>> Limit().solve({"above": [1, -1, -2], "below": [1, 0, -4], "at": 2}).steps
    'divided by x - 2: (x + 1) / (x + 2)\n3 / 4 = 3/4'
    >>> Limit().solve({"above": [6, 1], "below": [4, 0], "at": None}).steps
    'the leading terms: 6x / 4x, in the limit 3/2'
    """

    name: str = "calculus/limit"
    levels: tuple[int, ...] = (1, 2, 3)

    templates: ClassVar[tuple[str, ...]] = (
        "What is the limit of ({above})/({below}) as x tends to {at}?",
        "Compute lim x→{at} of ({above})/({below}).",
        "Find the value that ({above})/({below}) approaches as x approaches {at}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A common factor x - at, up to twice; for one in four of equal degree at infinity."""
        if rng.random() < 0.25:
            return {"above": _coefficients(level, 9, rng), "below": _coefficients(level, 9, rng), "at": None}
        at = rng.choice((-1, 1)) * rng.randint(1, 6)
        above, below = _coefficients(level, 5, rng), _coefficients(1 + level // 2, 5, rng)
        while not _value(below, at):
            below[-1] += 1
        for _ in range(1 if level < 3 else 2):
            above, below = ([int(c) for c in multiply(p, [1, -at])] for p in (above, below))
        return {"above": above, "below": below, "at": at}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Both polynomials, and the place."""
        at = facts["at"]
        return {
            "above": polynomial(facts["above"]),
            "below": polynomial(facts["below"]),
            "at": "∞" if at is None else str(at),
        }

    def solve(self, facts: Facts) -> Solution:
        """Common factors out, or the leading terms."""
        above, below, at = list(facts["above"]), list(facts["below"]), facts["at"]
        if at is None:
            answer = Fraction(above[0], below[0])
            lead = [polynomial([p[0], *[0] * (len(p) - 1)]) for p in (above, below)]
            said = f"the leading terms: {lead[0]} / {lead[1]}, in the limit {answer}"
            return Solution(answer=str(answer), steps=said, effort=len(above))
        steps: list[str] = []
        effort = len(above)
        while not _value(below, at):
            above, below = _divide_root(above, at), _divide_root(below, at)
            steps.append(f"divided by {polynomial([1, -at])}: ({polynomial(above)}) / ({polynomial(below)})")
            effort += len(above) + len(below)
        x, y = _value(above, at), _value(below, at)
        steps.append(f"{x} / {wrap_number(y)} = {x / y}")
        return Solution(answer=str(x / y), steps="\n".join(steps), effort=effort)


def _divide_root(p: list[int], root: int) -> list[int]:
    """Divided by x - root, which divides it."""
    out: list[int] = []
    for c in p[:-1]:
        out.append(c + root * (out[-1] if out else 0))
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Extremum(ExactProblem):
    r"""The largest or smallest value of a polynomial on an interval. The level is its degree, less one.

    The derivative has whole roots.

    >>> print(Extremum().solve({"coefficients": [2, -3, -12, 1], "low": -2, "high": 4, "what": "largest"}).steps)
    f'(x) = 6x^2 - 6x - 12, which is 0 for x = -1, 2
    f(-2) = -3, f(4) = 33, f(-1) = 8, f(2) = -19
    largest: 33
    """

    name: str = "calculus/extremum"
    levels: tuple[int, ...] = (1, 2, 3)

    templates: ClassVar[tuple[str, ...]] = (
        "What is the {what} value of f(x) = {function} for {low} ≤ x ≤ {high}?",
        "Find the {what} value that {function} takes on the interval [{low}, {high}].",
        "Let f(x) = {function}. Determine the {what} value of f on [{low}, {high}], both ends included.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A function of degree 2, 3 or 4, integrated from a derivative with whole roots."""
        roots = sorted(rng.sample(range(-4, 5), level))
        derivative: list[int] = [12 * rng.choice((-1, 1)) if level > 1 else 2 * rng.choice((-3, -2, -1, 1, 2, 3))]
        for r in roots:
            derivative = [int(c) for c in multiply(derivative, [1, -r])]
        top = len(derivative)
        function = [c // (top - i) for i, c in enumerate(derivative)] + [rng.randint(-20, 20)]
        return {
            "coefficients": function,
            "low": roots[0] - rng.randint(-1, 3),
            "high": roots[-1] + rng.randint(2, 4),
            "what": rng.choice(("largest", "smallest")),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The function and the interval."""
        return {
            "function": polynomial(facts["coefficients"]),
            "low": str(facts["low"]),
            "high": str(facts["high"]),
            "what": facts["what"],
        }

    def solve(self, facts: Facts) -> Solution:
        """At the ends, and where the derivative is 0."""
        p, low, high = facts["coefficients"], facts["low"], facts["high"]
        derivative = _derivative(p)
        inside = [x for x in range(low + 1, high) if not _value(derivative, x)]
        zeros = f"which is 0 for x = {', '.join(map(str, inside))}" if inside else "which is not 0 in between"
        values = {x: _value(p, x) for x in (low, high, *inside)}
        answer = (max if facts["what"] == "largest" else min)(values.values())
        said = ", ".join(f"f({x}) = {v}" for x, v in values.items())
        steps = f"f'(x) = {polynomial(derivative)}, {zeros}\n{said}\n{facts['what']}: {answer}"
        return Solution(answer=str(answer), steps=steps, effort=len(p) * len(values))


_SERIES = {
    "exp": "e^({a}x)",
    "sin": "sin({a}x)",
    "cos": "cos({a}x)",
    "log": "ln(1 + {a}x)",
    "geometric": "1/(1 - {a}x)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taylor(ExactProblem):
    r"""A coefficient of a Taylor series at 0, of a function times a polynomial. The level is the power, at least.

    >>> Taylor().solve({"kind": "exp", "a": 2, "times": [1, -1], "power": 3}).steps
    'e^(2x): coefficient of x^3 4/3, of x^2 2\n(-1) × (4/3) + 1 × 2 = 2/3'
    """

    name: str = "calculus/taylor"

    templates: ClassVar[tuple[str, ...]] = (
        "What is the coefficient of x^{power} in the Taylor series of {function} around x = 0?",
        "Expand {function} in powers of x. Which number stands before x^{power}?",
        "Find the coefficient of x^{power} in the Maclaurin series of {function}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A function that is not constant, stretched, and a polynomial of degree at most the level."""
        kind = rng.choice(tuple(_SERIES))
        a = rng.choice((1, 2, 3, 4, 5)) if kind == "log" else rng.choice((-3, -2, -1, 2, 3, 4, 5))
        times = [rng.choice((-1, 1)) * rng.randint(1, 6) for _ in range(level)]
        return {"kind": kind, "a": a, "times": times, "power": level + rng.randint(1, 3)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The product."""
        text, times = _function(facts["kind"], facts["a"]), polynomial(facts["times"])
        if len(facts["times"]) > 1:
            text = f"({times}) · {text}"
        elif times != "1":
            text = f"{times} · {text}"
        return {"function": text, "power": str(facts["power"])}

    def solve(self, facts: Facts) -> Solution:
        """The known series, multiplied."""
        kind, a, n = facts["kind"], facts["a"], facts["power"]
        times: list[int] = list(reversed(facts["times"]))
        values = [_series(kind, a, n - k) for k in range(len(times))]
        answer = sum((c * v for c, v in zip(times, values, strict=True)), Fraction(0))
        of = ", of ".join(f"x^{n - k} {v}" for k, v in enumerate(values))
        sums = " + ".join(f"{wrap_number(c)} × {wrap_number(v)}" for c, v in zip(times, values, strict=True))
        return Solution(
            answer=str(answer), steps=f"{_function(kind, a)}: coefficient of {of}\n{sums} = {answer}", effort=n + len(times)
        )


def _function(kind: str, a: int) -> str:
    text = _SERIES[kind].format(a="" if a == 1 else "-" if a == -1 else a)
    return text.replace("1 - -x", "1 + x").replace("1 - -", "1 + ")


def _series(kind: str, a: int, n: int) -> Fraction:
    """The coefficient of x^n."""
    match kind:
        case "exp":
            return Fraction(a**n, factorial(n))
        case "sin":
            return Fraction((-1) ** (n // 2) * a**n, factorial(n)) if n % 2 else Fraction(0)
        case "cos":
            return Fraction(0) if n % 2 else Fraction((-1) ** (n // 2) * a**n, factorial(n))
        case "log":
            return Fraction((-1) ** (n + 1) * a**n, n) if n else Fraction(0)
        case _:
            return Fraction(a**n)


def calculus() -> Problems:
    """Derivatives, integrals, limits, extreme values, series."""
    return Problems(
        name="calculus",
        summary="Derivatives, integrals, limits, extreme values, series.",
        problems=(Derivative(), Integral(), Limit(), Extremum(), Taylor()),
    )
