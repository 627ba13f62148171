"""Grids whose cells are marked or left: pictures, mines, lamps, tents, stars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from random import Random
from typing import Any, ClassVar, cast

from assay.tasks.problem import Facts, Solution
from assay_tasks.puzzles.constraints import AllDifferent, Constraint, Count, Pair, Rows, mask_of
from assay_tasks.puzzles.puzzle import GridPuzzle, board, renumber
from assay_tasks.puzzles.solver import Model
from assay_tasks.puzzles.squares import grid_of, move_cells, repair_givens, turning, with_givens

__all__ = ["Mines", "Nonogram", "Queens", "Takuzu"]

ON = 2
"""The domain of a cell that is marked: 1 of 0 and 1."""


def mark_grid(values: Sequence[int], n: int, signs: str) -> Solution:
    """A grid of n columns, its cells written by ``signs``."""
    rows = [[signs[v] for v in values[i : i + n]] for i in range(0, len(values), n)]
    return Solution(answer=board(rows), gold=rows)


def exactly(cells: Sequence[int], count: int) -> Count:
    """So many of the cells are marked."""
    return Count(cells, (ON,) * len(cells), count, count)


def all_neighbours(cell: int, n: int, height: int = 0) -> list[int]:
    """Cells that share an edge or a corner with one, in a grid n wide."""
    height = height or n
    row, column = divmod(cell, n)
    near = [(row + i, column + j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    return [r * n + c for r, c in near if 0 <= r < height and 0 <= c < n]


@dataclass(frozen=True, slots=True, kw_only=True)
class Takuzu(GridPuzzle):
    r"""A binary puzzle: as many zeros as ones in each line, no three alike side by side. The level counts size and empty cells.

    >>> Takuzu().solve({"size": 4, "cells": list("00.1" "..1." "..0." "0..1")}).answer
    '0 0 1 1\n1 0 1 0\n1 1 0 0\n0 1 0 1'
    """

    name: str = "grids/takuzu"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 8), (4, 3), (6, 16), (6, 6), (8, 16))
    templates: ClassVar[tuple[str, ...]] = (
        "Fill the dots of this {n} by {n} grid with 0 and 1. Every row and every column must hold as many zeros as ones, and "
        "nowhere may three equal digits stand directly next to each other in a row or in a column.\n\n{grid}\n\n{rows}",
        "Solve this binary puzzle; dots are empty cells.\n\n{grid}\n\nRules: each row and each column has {half} zeros and "
        "{half} ones; no row and no column has the same digit three times in succession. {rows}",
        "{grid}\n\nReplace each dot above by 0 or 1 such that (1) zeros and ones are equally many in every row, (2) likewise "
        "in every column, and (3) there are never three equal digits side by side or one below the other. {rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A random full grid, of which cells are kept."""
        n, keep = self.shapes[level - 1]
        truth = self._rules(n).sample(rng)
        cells = None if truth is None else repair_givens(self._rules(n), truth, keep, rng)
        return None if cells is None else {"size": n, "cells": cells}

    def model(self, facts: Facts) -> Model:
        """Rows, columns, threes."""
        return with_givens(self._rules(facts["size"]), facts["cells"])

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored, digits exchanged or not."""
        cells = move_cells(facts["cells"], turning(facts["size"], rng))
        other = {"0": "1", "1": "0"} if rng.random() < 0.5 else {}
        return {"size": facts["size"], "cells": [other.get(cell, cell) for cell in cells]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid."""
        n = facts["size"]
        rows = "Write the finished grid row by row, with spaces between the digits."
        return {"grid": grid_of(facts["cells"], n), "n": str(n), "half": str(n // 2), "rows": rows}

    @staticmethod
    def _rules(n: int) -> Model:
        model = Model()
        model.block(n * n, 3)
        for i in range(n):
            for line in (range(i * n, i * n + n), range(i, n * n, n)):
                model.add(exactly(line, n // 2))
                model.add(*(Count(line[k : k + 3], (ON,) * 3, 1, 2) for k in range(n - 2)))
        return model


@dataclass(frozen=True, slots=True, kw_only=True)
class Nonogram(GridPuzzle):
    r"""A picture from the lengths of its runs of black cells. The level counts rows and columns.

    >>> facts = {"rows": [[1], [2]], "columns": [[1], [2]]}
    >>> Nonogram().solve(facts).answer
    '. #\n# #'
    """

    name: str = "grids/nonogram"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)
    shapes: ClassVar[tuple[Any, ...]] = ((3, 4), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9))
    templates: ClassVar[tuple[str, ...]] = (
        "Solve this nonogram of {height} rows and {width} columns. The numbers of a row are the lengths of its runs of "
        "filled cells, from left to right; those of a column, from top to bottom. There is at least one empty cell between "
        "two runs; 0 means that nothing is filled.\nRows, from the top:\n{row_runs}\nColumns, from the left:\n"
        "{column_runs}\n\n{rows}",
        "A picture has {height} rows and {width} columns of cells, each black or white. Listed are the lengths of the blocks "
        "of black cells in order (0 for none); blocks in one line are separated by one or more white cells.\n\nEach row, "
        "read from the left:\n{row_runs}\n\nEach column, read from above:\n{column_runs}\n\nReconstruct the picture. {rows}",
        "Which cells of a grid with {height} rows and {width} columns are filled? For each line the lengths of its groups of "
        "consecutive filled cells are known, in order, with gaps of at least one cell between groups (0: no filled cell).\n\n"
        "Rows:\n{row_runs}\n\nColumns:\n{column_runs}\n\nRows count from the top and are read left to right, columns count "
        "from the left and are read top to bottom. {rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A random picture; refused where another has the same runs."""
        height, width = self.shapes[level - 1]
        share = rng.uniform(0.5, 0.7)
        cells = [int(rng.random() < share) for _ in range(height * width)]
        rows = [_runs(cells[i * width : i * width + width]) for i in range(height)]
        columns = [_runs(cells[j::width]) for j in range(width)]
        facts = {"rows": rows, "columns": columns}
        found = self.model(facts).solve(2, 2000)
        return facts if len(found.solutions) == 1 and found.complete else None

    def model(self, facts: Facts) -> Model:
        """Each line is one of those with its runs."""
        height, width = len(facts["rows"]), len(facts["columns"])
        model = Model()
        model.block(height * width, 3)
        for i, runs in enumerate(facts["rows"]):
            model.add(Rows(range(i * width, i * width + width), _lines(width, tuple(runs))))
        for j, runs in enumerate(facts["columns"]):
            model.add(Rows(range(j, height * width, width), _lines(height, tuple(runs))))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The picture."""
        return mark_grid(values, len(facts["columns"]), ".#")

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Mirrored."""
        rows, columns = facts["rows"], facts["columns"]
        if rng.random() < 0.5:
            rows, columns = rows[::-1], [runs[::-1] for runs in columns]
        if rng.random() < 0.5:
            rows, columns = [runs[::-1] for runs in rows], columns[::-1]
        return {"rows": rows, "columns": columns}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The runs of rows and columns."""
        rows, columns = facts["rows"], facts["columns"]
        return {
            "height": str(len(rows)),
            "width": str(len(columns)),
            "row_runs": "\n".join(f"row {i + 1}: {' '.join(map(str, runs))}" for i, runs in enumerate(rows)),
            "column_runs": "\n".join(f"column {i + 1}: {' '.join(map(str, runs))}" for i, runs in enumerate(columns)),
            "rows": "Write the picture row by row, # for a filled cell and . for an empty one, with spaces between.",
        }


def _runs(line: Sequence[int]) -> list[int]:
    return [len(run) for run in "".join(map(str, line)).replace("0", " ").split()] or [0]


@lru_cache(maxsize=20_000)
def _lines(n: int, runs: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All lines of n cells with these runs, as single bits."""
    lengths = [run for run in runs if run]
    spare = n - sum(lengths)
    out: list[tuple[int, ...]] = []
    for gaps in combinations(range(spare + 1), len(lengths)):  # before which white cell each run stands
        line: list[int] = []
        for gap, run in zip(gaps, lengths, strict=True):
            line += [1] * (gap - line.count(1)) + [ON] * run
        out.append(tuple(line + [1] * (n - len(line))))
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Mines(GridPuzzle):
    """Where the mines are, from numbers of mines around. The level counts size and hidden cells.

    >>> facts = {"size": 3, "height": 1, "mines": 1, "cells": [".", ".", "0"]}
    >>> Mines().solve(facts).answer
    '* . .'
    """

    name: str = "grids/mines"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    shapes: ClassVar[tuple[Any, ...]] = ((3, 4, 3, 3), (4, 4, 4, 6), (5, 5, 6, 6), (5, 5, 5, 9), (6, 6, 8, 12), (8, 8, 14, 26))
    templates: ClassVar[tuple[str, ...]] = (
        "This is a minefield of {height} rows and {width} columns with {mines} mines. A number says how many of the up to "
        "eight cells around it (sideways, up, down and diagonal) hold a mine; a cell with a number holds none. A dot hides "
        "either a mine or nothing.\n\n{grid}\n\nFind all mines. {rows}",
        "Deduce where the {mines} mines lie in this position of Minesweeper ({height} rows, {width} columns). Digits count "
        "the mines in the neighbouring cells, diagonals included, and are themselves safe; dots are covered cells.\n\n"
        "{grid}\n\n{rows}",
        "{grid}\n\nIn the grid above, {mines} of the cells marked with a dot contain a mine. Each digit is the number of "
        "mines in the cells that touch its cell at an edge or a corner. There is just one arrangement of the mines; find it. "
        "{rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Random mines; some numbers, and more that are needed."""
        height, width, mines, keep = self.shapes[level - 1]
        size = height * width
        under = set(rng.sample(range(size), mines))
        truth = [int(c in under) for c in range(size)]
        free = [c for c in rng.sample(range(size), size) if c not in under]
        base = Model()
        base.block(size, 3)
        base.add(exactly(range(size), mines))
        pool: list[Constraint] = [
            _number(c, sum(truth[k] for k in all_neighbours(c, width, height)), width, height) for c in free
        ]
        base.add(*pool[:keep])
        more = base.clues(truth, pool[keep:], rng, lean=False)
        if more is None:
            return None
        cells = ["."] * size
        for i in (*range(keep), *(keep + k for k in more)):
            cells[free[i]] = str(sum(truth[k] for k in all_neighbours(free[i], width, height)))
        return {"size": width, "height": height, "mines": mines, "cells": cells}

    def model(self, facts: Facts) -> Model:
        """All mines, and those around each number."""
        width, height = facts["size"], facts["height"]
        model = Model()
        model.block(width * height, 3)
        model.add(exactly(range(width * height), facts["mines"]))
        model.add(*(_number(c, int(text), width, height) for c, text in enumerate(facts["cells"]) if text != "."))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The field."""
        return mark_grid(values, facts["size"], ".*")

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Mirrored."""
        width, cells = facts["size"], facts["cells"]
        rows = [cells[i : i + width] for i in range(0, len(cells), width)]
        rows = rows[::-1] if rng.random() < 0.5 else rows
        rows = [row[::-1] for row in rows] if rng.random() < 0.5 else rows
        return {**facts, "cells": [cell for row in rows for cell in row]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The field."""
        rows = "Write the field row by row with spaces between the cells: * for a mine and . for every other cell, numbers too."
        width, height, mines = (str(facts[key]) for key in ("size", "height", "mines"))
        return {"grid": grid_of(facts["cells"], facts["size"]), "width": width, "height": height, "mines": mines, "rows": rows}


def _number(cell: int, mines: int, width: int, height: int) -> Count:
    """A number: mines around it, none in it."""
    near = all_neighbours(cell, width, height)
    # its own cell counts as a mine too many, so that it cannot hold one
    return Count((*near, *([cell] * 9)), (ON,) * (len(near) + 9), mines, mines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queens(GridPuzzle):
    r"""A queen in every row, none attacking another, some standing already. The level counts rows and columns.

    >>> Queens().solve({"size": 4, "given": [[0, 1]]}).answer
    '. Q . .\n. . . Q\nQ . . .\n. . Q .'
    """

    name: str = "grids/queens"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    shapes: ClassVar[tuple[Any, ...]] = ((7, 4), (8, 4), (8, 1), (9, 1), (10, 1), (12, 1))
    templates: ClassVar[tuple[str, ...]] = (
        "Some queens stand on this {n} by {n} chessboard (Q is a queen, a dot an empty square).\n\n{grid}\n\nAdd {more} "
        "queens so that there are {n} in all and no two of them share a row, a column or a diagonal. {rows}",
        "Complete the position: {n} queens on a board of {n} by {n} squares, none of them attacking another along a row, a "
        "column or a diagonal. Queens already placed (Q) stay where they are; {more} are missing.\n\n{grid}\n\n{rows}",
        "{grid}\n\nThis is an unfinished solution of the {n} queens problem, Q for a queen and . for a free square. Put "
        "{more} further queens on free squares such that no queen attacks another one. {rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A random solution, of which queens are kept, and others added until it is the only one."""
        n, keep = cast("tuple[int, int]", self.shapes[level - 1])
        truth = self._rules(n).sample(rng)
        if truth is None:
            return None
        rows = rng.sample(range(n), n)
        base = self._rules(n)
        for row in rows[:keep]:
            base.domains[row] = 1 << truth[row]
        more = base.clues(truth, [Count((row,), (1 << truth[row],), 1, 1) for row in rows[keep:]], rng, most=20_000)
        if more is None:
            return None
        shown = sorted([*rows[:keep], *(rows[keep + i] for i in more)])
        return {"size": n, "given": [[row, truth[row]] for row in shown]} if len(shown) < n else None

    def model(self, facts: Facts) -> Model:
        """The column of the queen in each row."""
        model = self._rules(facts["size"])
        for row, column in facts["given"]:
            model.domains[row] &= 1 << column
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The board."""
        n: int = facts["size"]
        return mark_grid([int(values[c // n] == c % n) for c in range(n * n)], n, ".Q")

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored."""
        n: int = facts["size"]
        turn = turning(n, rng)
        return {"size": n, "given": _cells(renumber(_numbers(facts["given"], n), turn), n)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The board."""
        n, stand = facts["size"], {r * facts["size"] + c for r, c in facts["given"]}
        grid = grid_of(["Q" if c in stand else "." for c in range(n * n)], n)
        rows = "Write the finished board row by row with spaces between the squares, Q for a queen and . for an empty square."
        return {"grid": grid, "n": str(n), "more": str(n - len(stand)), "rows": rows}

    @staticmethod
    def _rules(n: int) -> Model:
        model = Model()
        model.block(n, mask_of(range(n)))
        model.add(AllDifferent(range(n), (1 << n) - 1))
        model.add(*(Pair(i, j, _place_queens(n, j - i)) for i in range(n) for j in range(i + 1, n)))
        return model


@lru_cache(maxsize=256)
def _place_queens(n: int, apart: int) -> tuple[int, ...]:
    return tuple(mask_of(b for b in range(n) if abs(a - b) not in (0, apart)) for a in range(n))


def _numbers(cells: Sequence[Sequence[int]], n: int) -> list[int]:
    return [row * n + column for row, column in cells]


def _cells(numbers: Sequence[int], n: int) -> list[list[int]]:
    return [[number // n, number % n] for number in numbers]
