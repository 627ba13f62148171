"""Grids of numbers with algebra."""

from __future__ import annotations

from random import Random

from assay_tasks.swe.kind import Example, Kind, Plant

__all__ = ["KIND"]

_GRID = '''\
"""Grids of numbers."""


class Grid:
    """Rows of numbers, all of one length. ValueError where they are not, or where there is none."""

    def __init__(self, rows):
        if not rows or any(len(row) != len(rows[0]) for row in rows):
            raise ValueError("rows must have one length")
        self.rows = [list(row) for row in rows]

    def size(self):
        """How many rows and columns there are."""
        return [len(self.rows), len(self.rows[0])]

    def flipped(self):
        """The grid whose rows are the columns of this one."""
        return Grid([[row[column] for row in self.rows] for column in range(len(self.rows[0]))])

    def plus(self, other):
        """The sum, cell by cell. ValueError for another size."""
        if self.size() != other.size():
            raise ValueError("sizes differ")
        return Grid([[a + b for a, b in zip(mine, theirs)] for mine, theirs in zip(self.rows, other.rows)])

    def times(self, other):
        """The matrix product. ValueError where the columns of this are not as many as the rows of the other."""
        if len(self.rows[0]) != len(other.rows):
            raise ValueError("sizes do not fit")
        columns = other.flipped().rows
        return Grid([[sum(a * b for a, b in zip(row, column)) for column in columns] for row in self.rows])

    def without(self, row, column):
        """The grid without one row and one column, counted from 0."""
        kept = self.rows[:row] + self.rows[row + 1 :]
        return Grid([line[:column] + line[column + 1 :] for line in kept])
'''

_ALGEBRA = '''\
"""Functions of square grids."""

from .grid import Grid


def unit_grid(size):
    """Ones from the upper left corner to the lower right one, zeros elsewhere."""
    return Grid([[1 if row == column else 0 for column in range(size)] for row in range(size)])


def determinant(grid):
    """The determinant, by the first row. ValueError for a grid that is not square."""
    height, width = grid.size()
    if height != width:
        raise ValueError("the grid is not square")
    if height == 1:
        return grid.rows[0][0]
    total = 0
    for column in range(width):
        part = grid.rows[0][column] * determinant(grid.without(0, column))
        total = total + part if column % 2 == 0 else total - part
    return total


def grid_power(grid, exponent):
    """The grid times itself, so many times; the unit grid for 0. ValueError for a negative exponent."""
    if exponent < 0:
        raise ValueError("the exponent is negative")
    result = unit_grid(len(grid.rows))
    for _ in range(exponent):
        result = result.times(grid)
    return result


def trace_of(grid):
    """The sum of the cells whose row and column have the same number, also where the grid is not square."""
    return sum(grid.rows[i][i] for i in range(min(grid.size())))


def is_symmetric(grid):
    """Whether it is its own flipped grid."""
    return grid.rows == grid.flipped().rows
'''


def _rows(rng: Random, height: int, width: int) -> list[list[int]]:
    return [[rng.randint(-4, 9) for _ in range(width)] for _ in range(height)]


def _grid_asked(rng: Random) -> Example:
    h, w = rng.randint(1, 3), rng.randint(2, 3)
    asks = ("grid.size()", "grid.flipped().rows", f"grid.plus(Grid({_rows(rng, h, w)})).rows")
    return [f"grid = Grid({_rows(rng, h, w)})"], rng.choice(asks)


def _grid_product(rng: Random) -> Example:
    h, n, w = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3)
    return [f"one = Grid({_rows(rng, h, n)})", f"two = Grid({_rows(rng, n, w)})"], "one.times(two).rows"


def _grid_without(rng: Random) -> Example:
    n = rng.randint(2, 3)
    return [f"grid = Grid({_rows(rng, n, n + 1)})"], f"grid.without({rng.randrange(n)}, {rng.randrange(n + 1)}).rows"


def _grid_refused(rng: Random) -> Example:
    one, two = _rows(rng, 2, 3), _rows(rng, rng.choice((1, 2)), 2)
    asks = (f"Grid({one}).plus(Grid({two}))", f"Grid({one}).times(Grid({two}))", f"Grid({[*one, [1]]}).size()", "Grid([]).size()")
    return [], rng.choice(asks)


def _draw_determinant(rng: Random) -> Example:
    n = rng.choice((1, 2, 3, 3))
    return [f"grid = Grid({_rows(rng, n, n)})"], rng.choice(("determinant(grid)", "determinant(grid)", "trace_of(grid)"))


def _draw_power(rng: Random) -> Example:
    n = rng.randint(1, 2)
    asks = (f"grid_power(grid, {rng.randint(0, 3)}).rows", f"unit_grid({rng.randint(1, 3)}).rows")
    return [f"grid = Grid({_rows(rng, n, n)})"], rng.choice(asks)


def _symmetric(rng: Random) -> Example:
    a, b, c = (rng.randint(0, 9) for _ in range(3))
    return [f"grid = Grid({[[a, b], [rng.choice((b, b, c)), c]]})"], "is_symmetric(grid)"


def _algebra_refused(rng: Random) -> Example:
    asks = ("determinant(grid)", f"grid_power(grid, -{rng.randint(1, 3)})", "trace_of(grid)")
    return [f"grid = Grid({_rows(rng, 2, rng.choice((2, 3)))})"], rng.choice(asks)


KIND = Kind(
    "grid",
    {"grid": _GRID, "algebra": _ALGEBRA},
    {
        "Grid grid": ("Grid grid", "Matrix matrix", "Block block"),
        "algebra": ("algebra", "linear", "formulas"),
        "flipped": ("flipped", "transposed", "turned"),
        "times plus": ("times plus", "multiply add", "product sum_with"),
        "without": ("without", "minor", "cut_out"),
        "unit_grid": ("unit_grid", "identity", "ones_on_diagonal"),
        "determinant": ("determinant", "det", "det_of"),
        "grid_power": ("grid_power", "power", "raised"),
        "trace_of": ("trace_of", "trace", "diagonal_sum"),
        "is_symmetric": ("is_symmetric", "symmetric", "mirrors_itself"),
    },
    (_grid_asked, _grid_product, _grid_without, _grid_refused, _draw_determinant, _draw_power, _symmetric, _algebra_refused),
    (
        Plant("swapped arguments", "algebra", "determinant(grid.without(0, column))", "determinant(grid.without(column, 0))"),
        Plant("missing step", "grid", "columns = other.flipped().rows", "columns = other.rows"),
        Plant("wrong name", "algebra", "result = result.times(grid)", "result = result.times(result)"),
        Plant("wrong name", "grid", "for column in range(len(self.rows[0]))", "for column in range(len(self.rows))"),
    ),
)
"""Grids of numbers with algebra."""
