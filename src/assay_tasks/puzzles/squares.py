"""Squares of numbers in which no number stands twice in a row or column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from math import prod
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts
from assay_tasks.puzzles.constraints import AllDifferent, Constraint, Linear, Pair, Rows, mask_of
from assay_tasks.puzzles.puzzle import GridPuzzle, board, bullets, given_constraint, renumber
from assay_tasks.puzzles.solver import Model

__all__ = ["Futoshiki", "Kenken", "Kropki", "Latin", "Skyscrapers", "Sudoku"]

_ROWS = "Write the finished grid row by row, with spaces between the numbers."


def latin(n: int) -> Model:
    """A square of the numbers 1 to n, each once in every row and column."""
    model, full = Model(), mask_of(range(1, n + 1))
    model.block(n * n, full)
    for i in range(n):
        model.add(AllDifferent(range(i * n, i * n + n), full), AllDifferent(range(i, n * n, n), full))
    return model


def square(n: int, rng: Random) -> list[int]:
    """A random square of that kind: rows, columns and numbers of one that a search meets at random, shuffled."""
    model = latin(n)
    for cell, value in zip(range(n), rng.sample(range(1, n + 1), n), strict=True):
        model.domains[cell] = 1 << value
    found = model.sample(rng)
    return list(found or ())


def with_givens(model: Model, cells: Sequence[str]) -> Model:
    """The model with the numbers that stand in the cells; ``.`` is empty."""
    for cell, text in enumerate(cells):
        if text != ".":
            model.domains[cell] &= 1 << int(text)
    return model


def repair_givens(model: Model, truth: Sequence[int], keep: int, rng: Random) -> list[str] | None:
    """Givens of ``keep`` random cells, and of as many more as make the truth the only solution."""
    cells = rng.sample(range(len(truth)), len(truth))
    start = list(model.domains)
    for cell in cells[:keep]:
        model.domains[cell] = 1 << truth[cell]
    more = model.clues(truth, [given_constraint(cell, truth[cell]) for cell in cells[keep:]], rng, lean=False)
    model.domains[:] = start
    if more is None:
        return None
    shown = {*cells[:keep], *(cells[keep + i] for i in more)}
    return [str(truth[cell]) if cell in shown else "." for cell in range(len(truth))]


def grid_of(cells: Sequence[object], n: int) -> str:
    """Cells as text, n to a row."""
    return board(cells[i : i + n] for i in range(0, len(cells), n))


def relabel(cells: Sequence[str], n: int, rng: Random) -> list[str]:
    """The numbers 1 to n exchanged at random."""
    other = dict(zip(map(str, range(1, n + 1)), map(str, rng.sample(range(1, n + 1), n)), strict=True))
    return [other.get(cell, cell) for cell in cells]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Square(GridPuzzle):
    """Base of squares with some numbers given."""

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid, its size, and how it is to be written."""
        n = facts["size"]
        return {"grid": grid_of(facts["cells"], n), "n": str(n), "rows": _ROWS}

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Other numbers for the same pattern."""
        return {**facts, "cells": relabel(facts["cells"], facts["size"], rng)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sudoku(_Square):
    r"""Sudoku of 4, 6 or 9 rows. The level counts size and empty cells.

    >>> Sudoku().solve({"size": 4, "box": [2, 2], "cells": list("1..." "..1." ".1.." "...1")[:15] + ["."]}).answer
    Traceback (most recent call last):
    assay.core.errors.DataError: a puzzle needs exactly one solution; a search of effort ... found 2
    >>> Sudoku().solve({"size": 4, "box": [2, 2], "cells": list("12.." "..12" ".1.3" "4.2.")}).answer
    '1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1'
    """

    name: str = "grids/sudoku"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    shapes: ClassVar[tuple[Any, ...]] = (
        (4, 2, 2, 10),
        (4, 2, 2, 4),
        (6, 2, 3, 24),
        (6, 2, 3, 12),
        (9, 3, 3, 50),
        (9, 3, 3, 40),
        (9, 3, 3, 32),
        (9, 3, 3, 26),
    )
    templates: ClassVar[tuple[str, ...]] = (
        "Solve this sudoku. Every row, every column and every box of {h} rows by {w} columns holds each number from 1 to {n} "
        "once. A dot is an empty cell.\n\n{grid}\n\n{rows}",
        "Here is a {n} by {n} sudoku; dots stand for empty cells.\n\n{grid}\n\nFill it so that the numbers 1 to {n} appear "
        "exactly once in each row, in each column and in each {h}-by-{w} box ({h} rows high, {w} columns wide). {rows}",
        "Complete the grid below. Replace each dot by a number from 1 to {n}. No number may repeat in a row, in a column, or "
        "in one of the boxes, which are {h} rows high and {w} columns wide and tile the grid from its top left corner.\n\n"
        "{grid}\n\n{rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A full grid, of which some cells are kept and others added until it has one solution."""
        n, h, w, keep = self.shapes[level - 1]
        model = self._rules(n, h, w)
        for box in range(min(n // h, n // w)):  # boxes on the diagonal do not see one another
            for i, value in enumerate(rng.sample(range(1, n + 1), n)):
                model.domains[(box * h + i // w) * n + box * w + i % w] = 1 << value
        found = model.solve(1, 3000).solutions
        if not found:
            return None
        cells = repair_givens(self._rules(n, h, w), found[0], keep, rng)
        return None if cells is None else {"size": n, "box": [h, w], "cells": cells}

    def model(self, facts: Facts) -> Model:
        """Rows, columns and boxes."""
        return with_givens(self._rules(facts["size"], *facts["box"]), facts["cells"])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid and the height and width of a box."""
        h, w = facts["box"]
        return {**_Square.fields(self, facts), "h": str(h), "w": str(w)}

    @staticmethod
    def _rules(n: int, h: int, w: int) -> Model:
        model, full = latin(n), mask_of(range(1, n + 1))
        for top, left in product(range(0, n, h), range(0, n, w)):
            model.add(AllDifferent([(top + i) * n + left + j for i in range(h) for j in range(w)], full))
        return model


@dataclass(frozen=True, slots=True, kw_only=True)
class Latin(_Square):
    r"""A Latin square is completed. The level counts size and empty cells.

    >>> Latin().solve({"size": 3, "cells": list("1.." ".3." "...")}).answer
    '1 2 3\n2 3 1\n3 1 2'
    """

    name: str = "grids/latin"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 8), (4, 3), (5, 8), (6, 14), (7, 19), (8, 24))
    templates: ClassVar[tuple[str, ...]] = (
        "Complete this Latin square: every row and every column holds each number from 1 to {n} exactly once. Dots are empty "
        "cells.\n\n{grid}\n\n{rows}",
        "Fill in the dots with numbers from 1 to {n} so that no number occurs twice in any row or in any column.\n\n"
        "{grid}\n\n{rows}",
        "The {n} by {n} square below is partly filled.\n\n{grid}\n\nEach of the numbers 1 to {n} must appear once in each "
        "row and once in each column. Replace the dots. {rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A random square, of which some cells are kept."""
        n, keep = self.shapes[level - 1]
        cells = repair_givens(latin(n), square(n, rng), keep, rng)
        return None if cells is None else {"size": n, "cells": cells}

    def model(self, facts: Facts) -> Model:
        """Rows and columns."""
        return with_givens(latin(facts["size"]), facts["cells"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Futoshiki(GridPuzzle):
    r"""A Latin square with signs of inequality between neighbours. The level counts size, and drops idle signs.

    >>> facts = {"size": 2, "cells": list("...."), "less": [[0, 1]]}
    >>> Futoshiki().fields(facts)["signs"], Futoshiki().solve(facts).answer
    ('- r1c1 < r1c2', '1 2\n2 1')
    """

    name: str = "grids/futoshiki"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 6, False), (4, 0, False), (4, 0, True), (5, 3, False), (5, 0, True), (6, 5, False))
    templates: ClassVar[tuple[str, ...]] = (
        "Solve this futoshiki: fill the {n} by {n} grid so that every row and every column holds each number from 1 to {n} "
        "once, and all inequalities are true.\n\nThe grid, with dots for empty cells:\n{grid}\n\nThe inequalities, where "
        "r2c3 is the cell in row 2 and column 3:\n{signs}\n\n{rows}",
        "Each number from 1 to {n} stands exactly once in each row and in each column of this grid:\n{grid}\n\nBesides, "
        "these cells compare as follows (r1c2 means row 1, column 2):\n{signs}\n\nReplace the dots. {rows}",
        "In a {n} by {n} Latin square of the numbers 1 to {n}, no number repeats in a row or a column. Some numbers are "
        "known, a dot hides the others:\n{grid}\n\nIt is also known, writing r for the row and c for the column of a cell, "
        "that\n{signs}\n\nFind the whole square. {rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A square; signs, then numbers, that are needed to make it the only one."""
        n, keep, lean = self.shapes[level - 1]
        truth = square(n, rng)
        near = [(c, c + 1) for c in range(n * n) if c % n < n - 1] + [(c, c + n) for c in range(n * n - n)]
        signs = [(a, b) if truth[a] < truth[b] else (b, a) for a, b in rng.sample(near, len(near))]
        signs = signs[: len(signs) * 3 // 4]
        cells = rng.sample(range(n * n), n * n)
        shown, model = set(cells[:keep]), latin(n)
        for c in shown:
            model.domains[c] = 1 << truth[c]
        pool: list[Constraint] = [Linear(pair, (1, -1), None, -1) for pair in signs]
        chosen = model.clues(truth, [*pool, *(given_constraint(c, truth[c]) for c in cells)], rng, lean=lean)
        if chosen is None:
            return None
        shown |= {cells[i - len(signs)] for i in chosen if i >= len(signs)}
        less = sorted(signs[i] for i in (chosen if lean else range(len(signs))) if i < len(signs))
        return {
            "size": n,
            "cells": [str(v) if c in shown else "." for c, v in enumerate(truth)],
            "less": [list(pair) for pair in less],
        }

    def model(self, facts: Facts) -> Model:
        """Rows, columns and inequalities."""
        model = with_givens(latin(facts["size"]), facts["cells"])
        model.add(*(Linear(pair, (1, -1), None, -1) for pair in facts["less"]))
        return model

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored."""
        n, turn = facts["size"], turning(facts["size"], rng)
        less = sorted(renumber((a,), turn) + renumber((b,), turn) for a, b in facts["less"])
        return {"size": n, "cells": move_cells(facts["cells"], turn), "less": less}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid and the signs."""
        n = facts["size"]
        signs = bullets(f"{place(a, n)} < {place(b, n)}" for a, b in facts["less"])
        return {"grid": grid_of(facts["cells"], n), "n": str(n), "signs": signs, "rows": _ROWS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kropki(GridPuzzle):
    r"""A Latin square with dots where neighbours are one apart or one is double the other. The level counts size and empty cells.

    Between 1 and 2 both hold; such a pair counts as one apart.

    >>> facts = {"size": 2, "cells": list("1..."), "apart": [[0, 1], [0, 2], [1, 3], [2, 3]], "double": []}
    >>> Kropki().solve(facts).answer
    '1 2\n2 1'
    """

    name: str = "grids/kropki"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 6), (4, 0), (5, 3), (5, 0), (6, 4))
    templates: ClassVar[tuple[str, ...]] = (
        "Fill this {n} by {n} grid so that every row and column holds each number from 1 to {n} once. Dots are empty cells.\n"
        "{grid}\n\nCells are named by row and column: r2c3 is in row 2, column 3. The numbers in these pairs of neighbouring "
        "cells differ by exactly 1: {apart}. In these pairs one number is twice the other: {double}. In all other pairs of "
        "cells that share an edge neither is the case. {rows}",
        "A {n} by {n} Latin square holds 1 to {n} once in each row and each column. These neighbours are consecutive "
        "numbers: {apart}. These neighbours are in the ratio 1 to 2 and are not consecutive: {double}. No other two cells "
        "that share an edge are consecutive or in the ratio 1 to 2. (r1c2 is the cell in row 1, column 2.) What is known so "
        "far:\n{grid}\n\nReplace the dots. {rows}",
        "This is a kropki puzzle without its picture. Put a number from 1 to {n} into each cell; no number repeats in a row "
        "or a column.\n{grid}\n\nWhite dots (the two numbers differ by 1) lie between {apart}. Black dots (one number is "
        "double the other) lie between {double}. All dots are given, and between 1 and 2 there is always a white one. r3c1 "
        "means row 3, column 1. {rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A square with all its dots, and numbers that make it the only one."""
        n, keep = self.shapes[level - 1]
        truth = square(n, rng)
        pairs = [(c, c + 1) for c in range(n * n) if c % n < n - 1] + [(c, c + n) for c in range(n * n - n)]
        apart = [[a, b] for a, b in pairs if abs(truth[a] - truth[b]) == 1]
        double = [[a, b] for a, b in pairs if (_is_double(truth[a], truth[b]))]
        facts = {"size": n, "cells": ["."] * (n * n), "apart": apart, "double": double}
        cells = repair_givens(self.model(facts), truth, keep, rng)
        return None if cells is None or not apart or not double else {**facts, "cells": cells}

    def model(self, facts: Facts) -> Model:
        """Rows, columns, and all pairs of neighbours."""
        n = facts["size"]
        model = with_givens(latin(n), facts["cells"])
        apart, double = ({tuple(pair) for pair in facts[key]} for key in ("apart", "double"))
        for c in range(n * n):
            for pair in ([(c, c + 1)] if c % n < n - 1 else []) + ([(c, c + n)] if c < n * n - n else []):
                kind = "apart" if pair in apart else "double" if pair in double else "neither"
                model.add(Pair(*pair, _dots(n, kind)))
        return model

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored."""
        turn = turning(facts["size"], rng)
        both = {key: sorted(renumber(pair, turn) for pair in facts[key]) for key in ("apart", "double")}
        return {"size": facts["size"], "cells": move_cells(facts["cells"], turn), **both}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid and the pairs."""
        n = facts["size"]
        pairs = {
            key: "; ".join(f"{place(a, n)} and {place(b, n)}" for a, b in facts[key]) or "none" for key in ("apart", "double")
        }
        return {"grid": grid_of(facts["cells"], n), "n": str(n), **pairs, "rows": _ROWS}


def _is_double(a: int, b: int) -> bool:
    return (a == 2 * b or b == 2 * a) and abs(a - b) != 1


@lru_cache(maxsize=64)
def _dots(n: int, kind: str) -> tuple[int, ...]:
    def fits(a: int, b: int) -> bool:
        mine = "apart" if abs(a - b) == 1 else "double" if _is_double(a, b) else "neither"
        return mine == kind

    return tuple(mask_of(b for b in range(1, n + 1) if a and fits(a, b)) for a in range(n + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Skyscrapers(GridPuzzle):
    r"""A Latin square of heights, with how many buildings are seen from its edges. The level counts size and drops views.

    >>> facts = {"size": 2, "cells": list("...."), "views": [["row", 0, 2]]}
    >>> Skyscrapers().fields(facts)["views"], Skyscrapers().solve(facts).answer
    ('- from the left end of row 1: 2', '1 2\n2 1')
    """

    name: str = "grids/skyscrapers"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 9, False), (4, 5, False), (4, 0, False), (4, 0, True), (5, 0, False))
    templates: ClassVar[tuple[str, ...]] = (
        "A town has {n} rows of {n} buildings. Their heights are 1 to {n}, each once in every row and every column. Looking "
        "along a row or column from its end, a building is seen when all buildings before it are lower. The number of "
        "buildings seen is\n{views}\n\nKnown heights (dots are unknown):\n{grid}\n\nFind all heights. {rows}",
        "Solve this skyscrapers puzzle on a {n} by {n} grid: each row and each column holds the heights 1 to {n} once, and "
        "taller buildings hide lower ones behind them. How many buildings can be seen:\n{views}\n\nThe grid, with dots for "
        "what is to be found:\n{grid}\n\n{rows}",
        "Fill the grid with the numbers 1 to {n}, none of them twice in a row or column.\n{grid}\n\nA clue says how many "
        "numbers, read from that end, are greater than all numbers before them (the first one always counts):\n{views}\n\n"
        "{rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A square; views, then heights, that are needed."""
        n, keep, lean = self.shapes[level - 1]
        truth = square(n, rng)
        views: list[Any] = [
            [side, i, _count_visible([truth[c] for c in _line(n, side, i)])]
            for side in ("row", "row back", "column", "column back")
            for i in range(n)
        ]
        rng.shuffle(views)
        cells = rng.sample(range(n * n), n * n)
        shown = set(cells[:keep])
        model = latin(n)
        for c in shown:
            model.domains[c] = 1 << truth[c]
        pool: list[Constraint] = [*(_view(n, *view) for view in views), *(given_constraint(c, truth[c]) for c in cells)]
        chosen = model.clues(truth, pool, rng, lean=lean)
        if chosen is None:
            return None
        shown |= {cells[i - len(views)] for i in chosen if i >= len(views)}
        used = sorted((views[i] for i in chosen if i < len(views)), key=_order) if lean else sorted(views, key=_order)
        return {"size": n, "cells": [str(v) if c in shown else "." for c, v in enumerate(truth)], "views": used}

    def model(self, facts: Facts) -> Model:
        """Rows, columns and views."""
        n = facts["size"]
        model = with_givens(latin(n), facts["cells"])
        model.add(*(_view(n, *view) for view in facts["views"]))
        return model

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Rows and columns exchanged, or the whole turned back to front."""
        n, views, cells = facts["size"], facts["views"], facts["cells"]
        if rng.random() < 0.5:
            views = [[_EXCHANGED[side], i, k] for side, i, k in views]
            cells = [cells[c % n * n + c // n] for c in range(n * n)]
        if rng.random() < 0.5:
            views = [[_REVERSED[side], n - 1 - i, k] for side, i, k in views]
            cells = cells[::-1]
        return {"size": n, "cells": cells, "views": sorted(views, key=_order)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid and the views."""
        views = bullets(f"from the {_END[side]} {i + 1}: {k}" for side, i, k in facts["views"])
        return {"grid": grid_of(facts["cells"], facts["size"]), "n": str(facts["size"]), "views": views, "rows": _ROWS}


_END = {
    "row": "left end of row",
    "row back": "right end of row",
    "column": "top of column",
    "column back": "bottom of column",
}
_EXCHANGED = {"row": "column", "column": "row", "row back": "column back", "column back": "row back"}
_REVERSED = {"row": "row back", "row back": "row", "column": "column back", "column back": "column"}


def _order(view: Sequence[Any]) -> tuple[int, int]:
    return (list(_END).index(view[0]), view[1])


def _line(n: int, side: str, i: int) -> list[int]:
    cells = list(range(i * n, i * n + n)) if side.startswith("row") else list(range(i, n * n, n))
    return cells[::-1] if side.endswith("back") else cells


def _count_visible(heights: Sequence[int]) -> int:
    seen = top = 0
    for height in heights:
        if height > top:
            seen, top = seen + 1, height
    return seen


@lru_cache(maxsize=64)
def _views(n: int) -> dict[int, list[tuple[int, ...]]]:
    table: dict[int, list[tuple[int, ...]]] = {k: [] for k in range(1, n + 1)}
    for line in permutations(range(1, n + 1)):
        table[_count_visible(line)].append(tuple(1 << v for v in line))
    return table


def _view(n: int, side: str, i: int, seen: int) -> Rows:
    return Rows(_line(n, side, i), _views(n)[seen])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kenken(GridPuzzle):
    r"""A Latin square with cages whose numbers add, multiply, subtract or divide to a target. The level counts size and cages.

    >>> facts = {"size": 2, "cages": [["+", 5, [0, 1, 2]], ["=", 1, [3]]]}
    >>> Kenken().fields(facts)["cages"], Kenken().solve(facts).answer
    ('- r1c1, r1c2, r2c1: 5 by +\n- r2c2: 1', '1 2\n2 1')
    """

    name: str = "grids/kenken"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((3, 2), (4, 2), (4, 3), (5, 3), (6, 3))
    templates: ClassVar[tuple[str, ...]] = (
        "Fill a {n} by {n} grid with the numbers 1 to {n} so that none repeats in a row or in a column. The grid is divided "
        "into cages, and the numbers of each cage give its target by the operation named: with + their sum, with x their "
        "product, with - the greater less the smaller, with / the greater divided by the smaller. r2c3 is the cell in row 2 "
        "and column 3.\n{cages}\n\n{rows}",
        "Solve this kenken. Every row and every column of the {n} by {n} grid holds 1 to {n} once each. Each line below "
        "names the cells of one cage (r for row, c for column), the result, and the operation that makes it from the numbers "
        "in the cage, where - and / take the greater number first.\n{cages}\n\n{rows}",
        "Numbers from 1 to {n} are to be put into {n} rows of {n} cells, each number once in every row and once in every "
        "column, such that the following is true; a cell r1c4 lies in row 1 and column 4, and differences and quotients are "
        "of the greater and the smaller number.\n{cages}\n\n{rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A square, cut into cages at random; refused where another square fits."""
        n, most = self.shapes[level - 1]
        truth = square(n, rng)
        cages = [_cage_clue(cage, truth, rng) for cage in _cut(n, most, rng)]
        facts = {"size": n, "cages": cages}
        found = self.model(facts).solve(2, 4000)
        return facts if found.complete and len(found.solutions) == 1 else None

    def model(self, facts: Facts) -> Model:
        """Rows, columns and cages."""
        n = facts["size"]
        model = latin(n)
        for sign, target, cells in facts["cages"]:
            if sign == "=":
                model.domains[cells[0]] &= 1 << target
            elif sign == "+":
                model.add(Linear(cells, (1,) * len(cells), target, target))
            else:
                model.add(Rows(cells, _cage_rows(n, sign, target, len(cells))))
        return model

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored."""
        turn = turning(facts["size"], rng)
        cages = [[sign, target, renumber(cells, turn)] for sign, target, cells in facts["cages"]]
        return {"size": facts["size"], "cages": sorted(cages, key=_cells_of)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The cages."""
        n = facts["size"]
        lines = (
            f"{', '.join(place(c, n) for c in cells)}: {target}{'' if sign == '=' else f' by {sign}'}"
            for sign, target, cells in facts["cages"]
        )
        return {"n": str(n), "cages": bullets(lines), "rows": _ROWS}


def _cells_of(cage: Sequence[Any]) -> list[int]:
    return cage[2]


def _cut(n: int, most: int, rng: Random) -> list[list[int]]:
    """The cells of a square in connected pieces of up to ``most``."""
    free = set(range(n * n))
    cages: list[list[int]] = []
    for first in range(n * n):
        if first not in free:
            continue
        cage, size = [first], rng.randint(2, most)
        free.remove(first)
        while len(cage) < size:
            edge = sorted({c for cell in cage for c in edge_neighbours(cell, n) if c in free})
            if not edge:
                break
            cage.append(rng.choice(edge))
            free.remove(cage[-1])
        cages.append(sorted(cage))
    return cages


def _cage_clue(cage: list[int], truth: Sequence[int], rng: Random) -> list[Any]:
    values = [truth[c] for c in cage]
    if len(cage) == 1:
        return ["=", values[0], cage]
    signs = ["+", "x"]
    if len(cage) == 2:
        signs += ["-"] + ["/"] * 3 * (not max(values) % min(values))
    sign = rng.choice(signs)
    return [sign, _result(sign, values), cage]


def _result(sign: str, values: Sequence[int]) -> int:
    match sign:
        case "+":
            return sum(values)
        case "x":
            return prod(values)
        case "-":
            return max(values) - min(values)
        case _:
            return max(values) // min(values) if not max(values) % min(values) else 0


@lru_cache(maxsize=4096)
def _cage_rows(n: int, sign: str, target: int, count: int) -> list[tuple[int, ...]]:
    every = product(range(1, n + 1), repeat=count)
    return [tuple(1 << v for v in line) for line in every if _result(sign, line) == target]


def place(cell: int, n: int) -> str:
    """A cell's name, as ``r1c2``."""
    return f"r{cell // n + 1}c{cell % n + 1}"


def edge_neighbours(cell: int, n: int, height: int = 0) -> list[int]:
    """Cells that share an edge with one, in a grid n wide."""
    height = height or n
    row, column = divmod(cell, n)
    near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return [r * n + c for r, c in near if 0 <= r < height and 0 <= c < n]


def turning(n: int, rng: Random) -> list[int]:
    """Where each cell of a square goes when it is turned and mirrored at random."""
    flip, mirror, swap = (rng.random() < 0.5 for _ in range(3))
    out: list[int] = []
    for row, column in product(range(n), repeat=2):
        r, c = (n - 1 - row if flip else row), (n - 1 - column if mirror else column)
        out.append(c * n + r if swap else r * n + c)
    return out


def move_cells(cells: Sequence[Any], turn: Sequence[int]) -> list[Any]:
    """Cells in their new places."""
    out: list[Any] = [None] * len(cells)
    for old, new in enumerate(turn):
        out[new] = cells[old]
    return out
