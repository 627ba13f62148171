"""Matrices: which environments are one, transposed ones, and small determinants."""

from __future__ import annotations

from collections.abc import Sequence

from assay.verify.math.poly import Undecidable
from assay.verify.math.ratio import Ratio, number
from assay.verify.math.values import Formula, Many, Matrix, Value

__all__ = ["MATRICES", "ROWS", "determinant", "transpose"]

MATRICES = frozenset(["matrix", "pmatrix", "bmatrix", "Bmatrix", "smallmatrix", "array", "tabular"])
ROWS = frozenset(["cases", "aligned", "align", "alignedat", "gathered", "gather", "split", "equation"])
"""Environments whose rows are lines."""


def transpose(value: Value | None) -> Value:
    """The transposed matrix; of a row in brackets the point.

    Raises:
        Undecidable: neither of them.
    """
    if isinstance(value, Matrix):
        return Matrix(tuple(zip(*value.rows, strict=True)))
    if not isinstance(value, Many) or len(value.items) < 2:
        raise Undecidable("a power T of something that is no row")
    return value


def determinant(rows: Sequence[Sequence[Value]], source: str) -> Formula:
    """The determinant of up to four rows.

    Raises:
        Undecidable: it is larger, not square, or of other things than formulas.
    """
    cells = [[cell.ratio for cell in row if isinstance(cell, Formula) and cell.unit is None] for row in rows]
    if len(rows) > 4 or any(len(row) != len(rows) for row in cells):
        raise Undecidable("a determinant that is not computed")
    return Formula(_expand_rows(cells), source)


def _expand_rows(rows: Sequence[Sequence[Ratio]]) -> Ratio:
    if not rows:
        return number(1)
    total = number(0)
    for n, cell in enumerate(rows[0]):
        minor = _expand_rows([[*row[:n], *row[n + 1 :]] for row in rows[1:]])
        total = total - cell * minor if n % 2 else total + cell * minor
    return total
