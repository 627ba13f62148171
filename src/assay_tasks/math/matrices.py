"""Matrices: determinants, products, inverses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar, cast

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.text.jsonvalue import JsonMatch
from assay_tasks.math.exact import ExactProblem, wrap_number

__all__ = ["Determinant", "MatrixInverse", "MatrixProduct"]

Matrix = list[list[int]]


def _rows(matrix: Matrix) -> str:
    return json.dumps(matrix)


def _random(n: int, m: int, most: int, rng: Random) -> Matrix:
    return [[rng.randint(-most, most) for _ in range(m)] for _ in range(n)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Determinant(ExactProblem):
    r"""The determinant of a square matrix. The level is its number of rows, less one.

    >>> Determinant().solve({"matrix": [[1, 2], [3, 4]]}).steps
    '1 × 4 - 2 × 3 = -2'
    """

    name: str = "algebra/determinant"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "What is the determinant of the matrix with the rows {rows}?",
        "Compute det(A) for A = {rows}, a matrix given by its rows.",
        "A square matrix has, from top to bottom, the rows {rows}. Find its determinant.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Small entries."""
        return {"matrix": _random(level + 1, level + 1, 9 if level < 3 else 5, rng)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The rows in brackets."""
        return {"rows": _rows(facts["matrix"])}

    def solve(self, facts: Facts) -> Solution:
        """Expansion along the first row, down to two rows."""
        steps: list[str] = []
        value = _determinant(facts["matrix"], steps)
        return Solution(answer=str(value), steps="\n".join(steps), effort=len(steps))


def _determinant(matrix: Matrix, steps: list[str]) -> int:
    if len(matrix) == 2:
        (a, b), (c, d) = matrix
        value = a * d - b * c
        steps.append(f"{wrap_number(a)} × {wrap_number(d)} - {wrap_number(b)} × {wrap_number(c)} = {value}")
        return value
    terms: list[str] = []
    value = 0
    for j, entry in enumerate(matrix[0]):
        if entry:
            minor = _determinant([row[:j] + row[j + 1 :] for row in matrix[1:]], steps)
            value += (-1) ** j * entry * minor
            terms.append(f"{'-' if j % 2 else '+'} {wrap_number(entry)} × {wrap_number(minor)}")
    steps.append(f"{' '.join(terms).removeprefix('+ ') or 0} = {value}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixProduct(ExactProblem):
    r"""The product of two matrices. The level sets their size.

    >>> MatrixProduct().solve({"left": [[1, 2]], "right": [[3], [4]]}).steps
    'row 1: 1 × 3 + 2 × 4 = 11'
    """

    name: str = "algebra/matrix_product"

    templates: ClassVar[tuple[str, ...]] = (
        "Compute the matrix product A B for A = {left} and B = {right}, given by their rows. Answer with the rows of the product "
        "in the same notation.",
        "A = {left} and B = {right} are matrices, written row by row. What is A times B? Use the same notation, [[...], ...].",
        "Multiply the matrix with the rows {left} from the left with the matrix with the rows {right}, that is, compute {left} · "
        "{right}. Write the result as a list of rows.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Small entries."""
        n, k, m = ((1, 2, 2), (2, 2, 2), (2, 3, 2), (3, 3, 3), (4, 4, 4))[level - 1]
        return {"left": _random(n, k, 9, rng), "right": _random(k, m, 9, rng)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Both as rows in brackets."""
        return {"left": _rows(facts["left"]), "right": _rows(facts["right"])}

    def verifier(self, form: Form) -> Verifier:
        """The rows as JSON."""
        return JsonMatch(where=form.place)

    def solve(self, facts: Facts) -> Solution:
        """Row by row."""
        left, right = cast("Matrix", facts["left"]), cast("Matrix", facts["right"])
        columns = list(zip(*right, strict=True))
        out: Matrix = []
        steps: list[str] = []
        for i, row in enumerate(left, 1):
            out.append([sum(a * b for a, b in zip(row, column, strict=True)) for column in columns])
            sums = [" + ".join(f"{wrap_number(a)} × {wrap_number(b)}" for a, b in zip(row, c, strict=True)) for c in columns]
            steps.append(f"row {i}: " + ", ".join(f"{s} = {v}" for s, v in zip(sums, out[-1], strict=True)))
        effort = len(left) * len(right) * len(columns)
        return Solution(answer=_rows(out), gold=out, steps="\n".join(steps), effort=effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixInverse(ExactProblem):
    """The inverse of a matrix of determinant 1 or -1, whose entries are whole numbers. The level is the number of rows, less one.

    >>> MatrixInverse().solve({"matrix": [[2, 1], [1, 1]]}).answer
    '[[1, -1], [-1, 2]]'
    """

    name: str = "algebra/inverse_matrix"
    levels: tuple[int, ...] = (1, 2, 3)

    templates: ClassVar[tuple[str, ...]] = (
        "Find the inverse of the matrix A = {rows}, given by its rows. All entries of the inverse are whole numbers; "
        "answer in the same notation.",
        "A = {rows} is a matrix, written row by row. What is A^(-1)? Write it in the same notation, [[...], ...].",
        "Which matrix B satisfies A B = I for the matrix A with the rows {rows}, I being the identity? Write B as a "
        "list of rows.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """The identity after random additions of rows."""
        n = level + 1
        matrix = [[int(i == j) for j in range(n)] for i in range(n)]
        for _ in range(4 + 2 * level):
            i, j = rng.sample(range(n), 2)
            k = rng.choice((-3, -2, -1, 1, 2, 3)) if level == 1 else rng.choice((-2, -1, 1, 2))
            matrix[i] = [a + k * b for a, b in zip(matrix[i], matrix[j], strict=True)]
        return {"matrix": matrix}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The rows in brackets."""
        return {"rows": _rows(facts["matrix"])}

    def verifier(self, form: Form) -> Verifier:
        """The rows as JSON."""
        return JsonMatch(where=form.place)

    def solve(self, facts: Facts) -> Solution:
        """Gauss and Jordan."""
        n = len(facts["matrix"])
        rows = [[Fraction(x) for x in row] + [Fraction(i == j) for j in range(n)] for i, row in enumerate(facts["matrix"])]
        steps: list[str] = []
        for c in range(n):
            pivot = next(i for i in range(c, n) if rows[i][c])
            if pivot != c:
                rows[c], rows[pivot] = rows[pivot], rows[c]
                steps.append(f"swap rows {c + 1} and {pivot + 1}")
            by = rows[c][c]
            if by != 1:
                rows[c] = [x / by for x in rows[c]]
                steps.append(f"divide row {c + 1} by {by}")
            for i in range(n):
                k = rows[i][c]
                if i != c and k:
                    rows[i] = [a - k * b for a, b in zip(rows[i], rows[c], strict=True)]
                    steps.append(f"subtract {k} times row {c + 1} from row {i + 1}")
        out = [[int(x) for x in row[n:]] for row in rows]
        return Solution(answer=_rows(out), gold=out, steps="\n".join(steps), effort=n * len(steps))
