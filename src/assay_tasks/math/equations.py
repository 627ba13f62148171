"""Equations: linear ones, systems, powers and logarithms; sequences and functions of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts, Solution
from assay.tasks.problems import Problems
from assay_tasks.math.exact import ExactProblem, signed_term, sum_text, wrap_number
from assay_tasks.math.matrices import Determinant, MatrixInverse, MatrixProduct
from assay_tasks.math.polynomials import Division, Evaluation, Expansion, Inequality, Quadratic

__all__ = ["Composition", "Exponents", "LinearEquation", "LinearSystem", "Logarithms", "Progression", "Recurrence", "algebra"]

_LETTERS = "xyzw"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearEquation(ExactProblem):
    r"""A linear equation in x. The level is the number of brackets with factors.

    >>> LinearEquation().solve({"left": [[2, 3, 1]], "right": [[1, 1, 6]]}).steps
    '6x + 2 = x + 6\n5x = 4\nx = 4/5'
    """

    name: str = "algebra/linear"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "Solve for x: {equation}",
        "Which number x satisfies {equation}?",
        "Find the solution of the equation {equation}, as a whole number or a fraction.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Terms k(ax + b), on both sides from level 2, with one solution."""
        while True:
            terms = [[rng.choice((-1, 1)) * rng.randint(2, 9), *_pair(rng)] for _ in range(level)]
            cut = (level + 1) // 2
            left, right = terms[:cut], [*terms[cut:], [1, 0 if level == 1 else rng.randint(-9, 9), rng.randint(-20, 20)]]
            if _slope(left) != _slope(right):
                return {"left": left, "right": right}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Both sides."""
        return {"equation": " = ".join(_side(facts[key]) for key in ("left", "right"))}

    def solve(self, facts: Facts) -> Solution:
        """Brackets out, unknowns to the left, numbers to the right."""
        left, right = facts["left"], facts["right"]
        a, c = _slope(left), _slope(right)
        b, d = (sum(k * rest for k, _, rest in side) for side in (left, right))
        answer = Fraction(d - b, a - c)
        first = f"{sum_text([a, b], ['x', ''])} = {sum_text([c, d], ['x', ''])}"
        steps = f"{first}\n{signed_term(a - c, 'x', True)} = {d - b}\nx = {answer}"
        return Solution(answer=str(answer), steps=steps, effort=2 * (len(left) + len(right)) + 1)


def _pair(rng: Random) -> tuple[int, int]:
    return rng.choice((-1, 1)) * rng.randint(1, 9), rng.choice((-1, 1)) * rng.randint(1, 12)


def _slope(side: Sequence[Sequence[int]]) -> int:
    return sum(k * a for k, a, _ in side)


def _side(terms: Sequence[Sequence[int]]) -> str:
    out = ""
    for k, a, b in terms:
        inside = sum_text([a, b], ["x", ""])
        if k == 1 and (inside != "0" or not out):
            out = f"{out} {'-' if inside[0] == '-' else '+'} {inside.removeprefix('-')}" if out else inside
        elif k != 1:
            out += signed_term(k, f"({inside})", first=not out)
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSystem(ExactProblem):
    r"""Linear equations in as many unknowns. The level is the number of unknowns, less one.

    >>> print(LinearSystem().solve({"rows": [[1, 1, 5], [1, -1, 1]]}).steps)
    subtract 1 times equation 1 from equation 2: -2y = -4
    y = 2
    x = 3
    """

    name: str = "algebra/system"
    levels: tuple[int, ...] = (1, 2, 3)

    templates: ClassVar[tuple[str, ...]] = (
        "Solve the system of equations\n{equations}\nAnswer in the form {pattern}.",
        "Find the numbers that satisfy all of these equations at once:\n{equations}\nAnswer in the form {pattern}.",
        "The following equations hold:\n{equations}\nWhat are the values of the unknowns? Answer in the form {pattern}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Small whole numbers planted in random equations; drawn anew until they are the only solution."""
        n = level + 1
        planted = [rng.randint(-9, 9) for _ in range(n)]
        while True:
            rows = [[rng.randint(-6, 6) for _ in range(n)] for _ in range(n)]
            full = [[*row, sum(a * x for a, x in zip(row, planted, strict=True))] for row in rows]
            if all(any(row) for row in rows) and _eliminate(full, []) is not None:
                return {"rows": full}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """One equation to a line."""
        letters = _LETTERS[: len(facts["rows"])]
        lines = [f"{sum_text(row[:-1], letters)} = {row[-1]}" for row in facts["rows"]]
        return {"equations": "\n".join(lines), "pattern": ", ".join(f"{c} = ..." for c in letters)}

    def solve(self, facts: Facts) -> Solution:
        """Gauss' elimination."""
        steps: list[str] = []
        found = _eliminate(facts["rows"], steps) or []
        answer = ", ".join(f"{c} = {v}" for c, v in zip(_LETTERS, found, strict=False))
        return Solution(answer=answer, steps="\n".join(steps), effort=len(found) * len(steps))


def _eliminate(given: Sequence[Sequence[int]], steps: list[str]) -> list[Fraction] | None:
    """The solution; None where there is not exactly one."""
    rows = [[Fraction(x) for x in row] for row in given]
    n = len(rows)
    for c in range(n):
        pivot = next((i for i in range(c, n) if rows[i][c]), None)
        if pivot is None:
            return None
        if pivot != c:
            rows[c], rows[pivot] = rows[pivot], rows[c]
            steps.append(f"exchange equations {c + 1} and {pivot + 1}")
        for i in range(c + 1, n):
            k = rows[i][c] / rows[c][c]
            if k:
                rows[i] = [a - k * b for a, b in zip(rows[i], rows[c], strict=True)]
                shown = f"{sum_text(rows[i][:-1], _LETTERS[:n])} = {rows[i][-1]}"
                steps.append(f"subtract {k} times equation {c + 1} from equation {i + 1}: {shown}")
    found: list[Fraction] = [Fraction(0)] * n
    for i in range(n - 1, -1, -1):
        known = sum((rows[i][j] * found[j] for j in range(i + 1, n)), Fraction(0))
        found[i] = (rows[i][n] - known) / rows[i][i]
        steps.append(f"{_LETTERS[i]} = {found[i]}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponents(ExactProblem):
    r"""A product of powers as one power. The level is the number of factors, less one.

    >>> Exponents().solve({"base": 2, "powers": [[2, 3, 1], [1, -4, 1], [3, 2, -1]]}).steps
    '4^3 = 2^6\n2^(-4)\n8^2 = 2^6\nx = 6 - 4 - 6 = -4'
    """

    name: str = "algebra/exponents"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "For which x is {product} = {base}^x?",
        "Write {product} as a single power {base}^x. What is x?",
        "Find the exponent x with {base}^x = {product}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Powers of powers of one prime, multiplied or divided; the first is a factor."""
        base = rng.choice((2, 3, 5, 7))
        most = 4 if base < 4 else 2
        exponents = [k for k in range(-6, 13) if k not in (0, 1)]
        powers = [[rng.randint(1, most), rng.choice(exponents), rng.choice((1, -1)) if i else 1] for i in range(level + 1)]
        return {"base": base, "powers": powers}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The product from left to right."""
        base, out = facts["base"], ""
        for i, (root, k, sign) in enumerate(facts["powers"]):
            out += f"{'' if not i else ' × ' if sign > 0 else ' ÷ '}{base**root}^{wrap_number(k)}"
        return {"product": out, "base": str(base)}

    def solve(self, facts: Facts) -> Solution:
        """Each factor as a power of the base."""
        base = facts["base"]
        steps = [
            f"{base**root}^{wrap_number(k)} = {base}^{wrap_number(root * k)}" if root > 1 else f"{base}^{wrap_number(k)}"
            for root, k, _ in facts["powers"]
        ]
        terms = [root * k * sign for root, k, sign in facts["powers"]]
        steps.append(f"x = {sum_text(terms, [''] * len(terms))} = {sum(terms)}")
        return Solution(answer=str(sum(terms)), steps="\n".join(steps), effort=len(terms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Logarithms(ExactProblem):
    r"""A sum of logarithms with rational values. The level is the number of terms, less one.

    Terms are factor, prime, exponent of the base, exponent of the argument.

    >>> Logarithms().solve({"terms": [[5, 2, 2, 1], [-1, 3, 2, 3]]}).steps
    'log_4(2) = 1/2\nlog_9(27) = 3/2\n5 × (1/2) - 1 × (3/2) = 1'
    """

    name: str = "algebra/logarithms"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "What is the exact value of {expression}? Here log_b is the logarithm to the base b.",
        "Compute {expression} exactly, where log_b denotes the logarithm to the base b.",
        "Evaluate {expression} as a whole number or a fraction (log_b is the logarithm to base b).",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Powers of the same prime as base and argument."""
        terms: list[list[int]] = []
        for _ in range(level + 1):
            prime = rng.choice((2, 2, 3, 5, 10))
            most = {2: 8, 3: 5, 5: 4, 10: 5}[prime]
            below = rng.randint(1, 3 if level > 1 else 2)
            terms.append([rng.choice((-3, -2, -1, 1, 2, 3, 4)), prime, below, rng.choice([k for k in range(-2, most) if k])])
        terms[0][0] = abs(terms[0][0])
        return {"terms": terms}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The terms with their signs."""
        factors = [k for k, *_ in facts["terms"]]
        return {"expression": sum_text(factors, [f" {_log(*term)}".lstrip() for _, *term in facts["terms"]])}

    def solve(self, facts: Facts) -> Solution:
        """Each as a quotient of exponents."""
        values = [Fraction(above, below) for _, _, below, above in facts["terms"]]
        steps = [f"{_log(*term)} = {value}" for (_, *term), value in zip(facts["terms"], values, strict=True)]
        total = sum((k * v for (k, *_), v in zip(facts["terms"], values, strict=True)), Fraction(0))
        parts = [
            f"{'-' if k < 0 else '+'} {abs(k)} × {wrap_number(v)}" for (k, *_), v in zip(facts["terms"], values, strict=True)
        ]
        steps.append(f"{' '.join(parts).removeprefix('+ ')} = {total}")
        return Solution(answer=str(total), steps="\n".join(steps), effort=2 * len(values))


def _log(prime: int, below: int, above: int) -> str:
    return f"log_{prime**below}({Fraction(prime) ** above})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progression(ExactProblem):
    r"""A term or a sum of an arithmetic or geometric sequence. The level sets the number of terms.

    >>> Progression().solve({"kind": "geometric", "first": "2", "step": "3", "n": 5, "what": "sum"}).steps
    'a_5 = 2 × 3^4 = 162\nsum: (3 × 162 - 2) / (3 - 1) = 242'
    """

    name: str = "algebra/progression"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "{kind} sequence begins with a_1 = {first} and a_2 = {second}. What is {what}?",
        "The first two terms of {small} sequence are {first} and {second}. Find {what}.",
        "In {small} sequence a_1 = {first} and {rule}. Compute {what}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A first term, a difference or ratio, and how far to go."""
        arithmetic = rng.random() < 0.5
        first = Fraction(rng.choice((-1, 1)) * rng.randint(1, 20), 1 if level < 3 else rng.randint(1, 4))
        if arithmetic:
            step = Fraction(rng.choice((-1, 1)) * rng.randint(1, 15), 1 if level < 3 else rng.randint(1, 3))
            n = rng.randint(10 * level, 30 * level)
        else:
            step = Fraction(*rng.choice(((2, 1), (3, 1), (-2, 1), (1, 2), (-1, 2), (5, 1), (2, 3), (3, 2))))
            n = rng.randint(level + 2, level + 4)
        what = rng.choice(("term", "sum"))
        return {
            "kind": "arithmetic" if arithmetic else "geometric",
            "first": str(first),
            "step": str(step),
            "n": n,
            "what": what,
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The first two terms, or the rule."""
        first, step, n = Fraction(facts["first"]), Fraction(facts["step"]), facts["n"]
        even = facts["kind"] == "arithmetic"
        rule = f"a_(n+1) = a_n {'-' if step < 0 else '+'} {abs(step)}" if even else f"a_(n+1) = {wrap_number(step)} × a_n"
        return {
            "kind": f"{'An' if even else 'A'} {facts['kind']}",
            "small": f"{'an' if even else 'a'} {facts['kind']}",
            "first": str(first),
            "second": str(first + step if even else first * step),
            "rule": rule,
            "what": f"a_{n}" if facts["what"] == "term" else f"the sum a_1 + a_2 + ... + a_{n} of the first {n} terms",
        }

    def solve(self, facts: Facts) -> Solution:
        """The formula for the last term, and the one for the sum."""
        a, d, n = Fraction(facts["first"]), Fraction(facts["step"]), facts["n"]
        even = facts["kind"] == "arithmetic"
        last = a + (n - 1) * d if even else a * d ** (n - 1)
        how = f"{a} + {n - 1} × {wrap_number(d)}" if even else f"{wrap_number(a)} × {wrap_number(d)}^{n - 1}"
        steps, answer = [f"a_{n} = {how} = {last}"], last
        if facts["what"] == "sum":
            answer = n * (a + last) / 2 if even else (d * last - a) / (d - 1)
            how = (
                f"{n} × ({a} + {wrap_number(last)}) / 2"
                if even
                else f"({wrap_number(d)} × {wrap_number(last)} - {wrap_number(a)}) / ({d} - 1)"
            )
            steps.append(f"sum: {how} = {answer}")
        return Solution(answer=str(answer), steps="\n".join(steps), effort=n + len(steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence(ExactProblem):
    r"""A term of a sequence in which each follows from the two before. The level sets how far it is away.

    >>> Recurrence().solve({"start": [1, 1], "factors": [1, 1], "plus": 0, "n": 5}).steps
    'a_3 = 1 × 1 + 1 × 1 + 0 = 2\na_4 = 1 × 2 + 1 × 1 + 0 = 3\na_5 = 1 × 3 + 1 × 2 + 0 = 5'
    """

    name: str = "algebra/recurrence"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "A sequence starts with a_1 = {first} and a_2 = {second} and continues with a_n = {rule} for n ≥ 3. What is a_{n}?",
        "Let a_1 = {first}, a_2 = {second} and, for every n ≥ 3, a_n = {rule}. Compute a_{n}.",
        "The recurrence a_n = {rule} (n ≥ 3) with a_1 = {first} and a_2 = {second} defines a sequence. Find its term number {n}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Small factors, so that the terms stay short."""
        return {
            "start": [rng.randint(-5, 9), rng.randint(-5, 9)],
            "factors": [rng.choice((1, 2, -1, 3)), rng.choice((1, -1, -2, 2))],
            "plus": rng.randint(-4, 4),
            "n": 2 * level + 2,
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The start and the rule."""
        rule = sum_text([*facts["factors"], facts["plus"]], ["a_(n-1)", "a_(n-2)", ""])
        first, second = facts["start"]
        return {"first": str(first), "second": str(second), "rule": rule, "n": str(facts["n"])}

    def solve(self, facts: Facts) -> Solution:
        """Term by term."""
        (a, b), (p, q), plus = facts["start"], facts["factors"], facts["plus"]
        steps: list[str] = []
        for n in range(3, facts["n"] + 1):
            found = p * b + q * a + plus
            products = f"{p} × {wrap_number(b)} {'-' if q < 0 else '+'} {abs(q)} × {wrap_number(a)}"
            sums = f"{products} {'-' if plus < 0 else '+'} {abs(plus)}"
            steps.append(f"a_{n} = {sums} = {found}")
            a, b = b, found
        return Solution(answer=str(b), steps="\n".join(steps), effort=len(steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition(ExactProblem):
    r"""The value of functions applied one after the other. The level is the number of applications, less one.

    >>> Composition().solve({"functions": {"f": [1, 0, 1], "g": [2, -3]}, "order": "fg", "at": 4}).steps
    'g(4) = 5\nf(5) = 26'
    """

    name: str = "algebra/composition"

    templates: ClassVar[tuple[str, ...]] = (
        "Let {functions}. What is {applied}?",
        "The functions {functions} are given. Compute {applied}.",
        "Given {functions}, evaluate {applied}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Linear functions, of which one may be a square."""
        names = "fgh"[: 2 if level < 3 else 3]
        functions = {c: [rng.choice((-3, -2, 2, 3, 4, 5)), rng.randint(-9, 9)] for c in names}
        functions[names[-1]] = [1, rng.randint(-3, 3), rng.randint(-9, 9)]
        rest = [rng.choice(names[:-1]) for _ in range(level)]
        rest.insert(rng.randrange(len(rest) + 1), names[-1])
        return {"functions": functions, "order": "".join(rest), "at": rng.randint(-4, 6)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Each function, and the application."""
        said = [f"{name}(x) = {_poly(c)}" for name, c in facts["functions"].items() if name in facts["order"]]
        text = "(".join(facts["order"]) + f"({facts['at']})" + ")" * (len(facts["order"]) - 1)
        return {"functions": f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0], "applied": text}

    def solve(self, facts: Facts) -> Solution:
        """From the inside."""
        value = facts["at"]
        steps: list[str] = []
        for name in reversed(facts["order"]):
            found = 0
            for c in facts["functions"][name]:
                found = found * value + c
            steps.append(f"{name}({value}) = {found}")
            value = found
        return Solution(answer=str(value), steps="\n".join(steps), effort=len(steps))


def _poly(coefficients: Sequence[int]) -> str:
    return sum_text(coefficients, ("x^2", "x", "")[-len(coefficients) :])


def algebra() -> Problems:
    """Equations, polynomials, sequences, matrices."""
    return Problems(
        name="algebra",
        summary="Equations, polynomials, sequences, matrices.",
        problems=(
            LinearEquation(),
            LinearSystem(),
            Quadratic(),
            Inequality(),
            Evaluation(),
            Expansion(),
            Division(),
            Exponents(),
            Logarithms(),
            Progression(),
            Recurrence(),
            Composition(),
            Determinant(),
            MatrixProduct(),
            MatrixInverse(),
        ),
    )
