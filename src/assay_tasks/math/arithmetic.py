"""Arithmetic of any depth, exact: the generator of RandomCalculation (arXiv 2507.10532)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar, cast

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.verify.math.verifier import MathAnswer

__all__ = ["Expression", "arithmetic", "number_in"]

Tree = int | list[Any]
"""A number, ``["^", number, exponent]``, a fraction ``["//", above, below]`` or ``[operation, left, right]`` with ``+ - * /``."""

_SIGNS = {"+": "+", "-": "-", "*": "×", "/": "÷"}
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression(Problem):
    r"""The exact value of an expression. The level is the number of operations.

    Operands are whole numbers from 0 to ``most``, fractions of such, their squares and cubes; operations ``+ - × ÷`` are joined
    in a random tree, in which nothing is divided by 0. A fraction, square or cube is an operand, not an operation.

    >>> Expression().solve({"tree": ["*", ["+", 1, ["/", 1, 2]], 4]}).steps
    '1 ÷ 2 = 1/2\n1 + (1/2) = 3/2\n(3/2) × 4 = 6'
    """

    name: str = "arithmetic/expression"
    domain: str = "math"
    levels: tuple[int, ...] = tuple(range(1, 21))
    most: int = 100

    unique: ClassVar[bool | None] = True
    templates: ClassVar[tuple[str, ...]] = (
        "Calculate {expression}. The answer is a whole number or a fraction in lowest terms.",
        "What is the exact value of {expression}? Give a whole number or a fraction in lowest terms.",
        "Evaluate the expression\n{expression}\nexactly, as a whole number or a reduced fraction.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A random tree over random operands."""
        return {"tree": self._tree(level, rng)[0]}

    def solve(self, facts: Facts) -> Solution:
        """From the innermost operation outwards."""
        steps: list[str] = []
        value = _value(facts["tree"], steps)
        return Solution(answer=str(value), steps="\n".join(steps), effort=len(steps))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The expression, with no more brackets than it needs."""
        return {"expression": _text(facts["tree"])}

    def verifier(self, form: Form) -> Verifier:
        """Equality of numbers, however they are written."""
        return number_in(form)

    def _tree(self, operations: int, rng: Random) -> tuple[Tree, Fraction]:
        if not operations:
            return self._operand(rng)
        left = rng.randrange(operations)
        (a, x), (b, y) = self._tree(left, rng), self._tree(operations - 1 - left, rng)
        sign = rng.choice("+-*/" if y else "+-*")
        return [sign, a, b], _apply(sign, x, y)

    def _operand(self, rng: Random) -> tuple[Tree, Fraction]:
        kind, number = rng.randrange(6), rng.randint(0, self.most)
        if kind < 3:
            return number, Fraction(number)
        if kind < 5:
            power = kind - 1
            small = rng.randint(0, 10)
            return ["^", small, power], Fraction(small) ** power
        below = rng.randint(1, self.most)
        return ["//", number, below], Fraction(number, below)


def number_in(form: Form, written: str = "number") -> MathAnswer:
    """Exact equality of numbers in the form asked for, without the symbolic tier: in process, in microseconds.

    A number must be written out: an expression that has its value, such as the question itself, is no answer. For other answers
    ``written`` says what is asked of them (`assay.verify.math.MathAnswer`, ``form``).
    """
    look = {Form.TAG: "tag", Form.BOX: "box", Form.MARK: "phrase", Form.PLAIN: "line"}[form]
    return MathAnswer(look=(look,), symbolic=False, form=written)


def arithmetic() -> Problems:
    """Calculations of any depth."""
    return Problems(name="arithmetic", summary="Calculations of any depth.", problems=(Expression(),))


def _apply(sign: str, x: Fraction, y: Fraction) -> Fraction:
    match sign:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
        case _:
            return x / y


def _value(tree: Tree, steps: list[str]) -> Fraction:
    if isinstance(tree, int):
        return Fraction(tree)
    sign, a, b = cast("tuple[str, Any, Any]", tuple(tree))
    if sign in ("^", "//"):
        return Fraction(a**b) if sign == "^" else Fraction(a, b)
    x, y = _value(a, steps), _value(b, steps)
    found = _apply(sign, x, y)
    steps.append(f"{_text_of(x)} {_SIGNS[sign]} {_text_of(y)} = {found}")
    return found


def _text_of(value: Fraction) -> str:
    return f"({value})" if value < 0 or value.denominator > 1 else str(value)


def _text(tree: Tree, above: int = 0, right: bool = False) -> str:
    if isinstance(tree, int):
        return str(tree)
    sign, a, b = cast("tuple[str, Any, Any]", tuple(tree))
    if sign in ("^", "//"):
        return f"{a}^{b}" if sign == "^" else f"({a}/{b})"
    rank = _RANK[sign]
    text = f"{_text(a, rank)} {_SIGNS[sign]} {_text(b, rank, True)}"
    return f"({text})" if rank < above or (right and rank == above) else text
