"""Grids whose cells are marked or left: pictures, mines, lamps, tents, stars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from random import Random
from typing import Any, ClassVar, cast

from assay.tasks.problem import Facts, Solution
from assay.tasks.puzzles.constraints import AllDifferent, Constraint, Count, Pair, Rows, mask_of
from assay.tasks.puzzles.puzzle import GridPuzzle, board, listed, renumbered
from assay.tasks.puzzles.solver import Model
from assay.tasks.puzzles.squares import beside, grid_of, moved, place, repaired, square, turning, with_givens

__all__ = ["Akari", "Hitori", "Mines", "Nonogram", "Queens", "StarBattle", "Takuzu", "Tents"]

_ON = 2
"""The domain of a cell that is marked: 1 of 0 and 1."""


def marked(values: Sequence[int], n: int, signs: str) -> Solution:
    """A grid of n columns, its cells written by ``signs``."""
    rows = [[signs[v] for v in values[i : i + n]] for i in range(0, len(values), n)]
    return Solution(answer=board(rows), gold=rows)


def exactly(cells: Sequence[int], count: int) -> Count:
    """So many of the cells are marked."""
    return Count(cells, (_ON,) * len(cells), count, count)


def at_most_one(cells: Sequence[int]) -> Count:
    """No two of the cells are marked."""
    return Count(cells, (_ON,) * len(cells), 0, 1)


def around(cell: int, n: int, height: int = 0) -> list[int]:
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
        cells = None if truth is None else repaired(self._rules(n), truth, keep, rng)
        return None if cells is None else {"size": n, "cells": cells}

    def model(self, facts: Facts) -> Model:
        """Rows, columns, threes."""
        return with_givens(self._rules(facts["size"]), facts["cells"])

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored, digits exchanged or not."""
        cells = moved(facts["cells"], turning(facts["size"], rng))
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
                model.add(*(Count(line[k : k + 3], (_ON,) * 3, 1, 2) for k in range(n - 2)))
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

    def told(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The picture."""
        return marked(values, len(facts["columns"]), ".#")

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
            "height": str(len(rows)), "width": str(len(columns)),
            "row_runs": "\n".join(f"row {i + 1}: {' '.join(map(str, runs))}" for i, runs in enumerate(rows)),
            "column_runs": "\n".join(f"column {i + 1}: {' '.join(map(str, runs))}" for i, runs in enumerate(columns)),
            "rows": "Write the picture row by row, # for a filled cell and . for an empty one, with spaces between.",
        }  # fmt: skip


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
            line += [1] * (gap - line.count(1)) + [_ON] * run
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
        pool: list[Constraint] = [_number(c, sum(truth[k] for k in around(c, width, height)), width, height) for c in free]
        base.add(*pool[:keep])
        more = base.clues(truth, pool[keep:], rng, lean=False)
        if more is None:
            return None
        cells = ["."] * size
        for i in (*range(keep), *(keep + k for k in more)):
            cells[free[i]] = str(sum(truth[k] for k in around(free[i], width, height)))
        return {"size": width, "height": height, "mines": mines, "cells": cells}

    def model(self, facts: Facts) -> Model:
        """All mines, and those around each number."""
        width, height = facts["size"], facts["height"]
        model = Model()
        model.block(width * height, 3)
        model.add(exactly(range(width * height), facts["mines"]))
        model.add(*(_number(c, int(text), width, height) for c, text in enumerate(facts["cells"]) if text != "."))
        return model

    def told(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The field."""
        return marked(values, facts["size"], ".*")

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
    near = around(cell, width, height)
    # its own cell counts as a mine too many, so that it cannot hold one
    return Count((*near, *([cell] * 9)), (_ON,) * (len(near) + 9), mines, mines)


@dataclass(frozen=True, slots=True, kw_only=True)
class StarBattle(GridPuzzle):
    r"""One star in each row, column and region, no two touching. The level counts size and hints.

    >>> facts = {"size": 4, "regions": list("AABB" "AABB" "CCDD" "CCDD"), "empty": [2]}
    >>> StarBattle().solve(facts).answer
    '. * . .\n. . . *\n* . . .\n. . * .'
    """

    name: str = "grids/stars"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((5, 8), (5, 3), (6, 5), (7, 10), (8, 20))
    templates: ClassVar[tuple[str, ...]] = (
        "Place {n} stars in the {n} by {n} grid below, one in each row, one in each column and one in each region (cells "
        "with the same letter form a region). No two stars may touch, not even at a corner.{hints}\n\n{grid}\n\n{rows}",
        "Solve this star battle. Letters mark the regions:\n\n{grid}\n\nEvery row, every column and every region contains "
        "exactly one star, and stars are never in neighbouring cells, also not diagonally.{hints} {rows}",
        "{grid}\n\nEach letter above names a region of the grid. Put exactly one star into every region so that every row "
        "and every column also has exactly one, and no star is next to another one in any of the eight directions.{hints} "
        "{rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Stars that do not touch, regions grown around them, and cells said to be empty until there is one solution."""
        n, hints = cast("tuple[int, int]", self.shapes[level - 1])
        stars = _apart(n, rng)
        if stars is None:
            return None
        regions = _grown(n, [i * n + c for i, c in enumerate(stars)], rng)
        empty = [c for c in rng.sample(range(n * n), n * n) if stars[c // n] != c % n]
        truth = [int(stars[c // n] == c % n) for c in range(n * n)]
        model = self._rules(n, regions)
        for cell in empty[:hints]:
            model.domains[cell] = 1
        chosen = model.clues(truth, [Count((c,), (1,), 1, 1) for c in empty[hints:]], rng)
        if chosen is None or len(chosen) > n:
            return None
        return {"size": n, "regions": regions, "empty": sorted([*empty[:hints], *(empty[hints + i] for i in chosen)])}

    def model(self, facts: Facts) -> Model:
        """Rows, columns, regions, neighbours."""
        model = self._rules(facts["size"], facts["regions"])
        for cell in facts["empty"]:
            model.domains[cell] = 1
        return model

    def told(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The stars."""
        return marked(values, facts["size"], ".*")

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored; regions are lettered anew."""
        n, turn = facts["size"], turning(facts["size"], rng)
        return {"size": n, "regions": _lettered(moved(facts["regions"], turn)), "empty": renumbered(facts["empty"], turn)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The regions and hints."""
        n = facts["size"]
        names = listed([place(c, n) for c in facts["empty"]])
        hints = f" There is no star in {names} (r1c2 is row 1, column 2)." if facts["empty"] else ""
        rows = "Write the grid row by row with spaces between the cells: * for a star and . for any other cell."
        return {"grid": grid_of(facts["regions"], n), "n": str(n), "hints": hints, "rows": rows}

    @staticmethod
    def _rules(n: int, regions: Sequence[str]) -> Model:
        model = Model()
        model.block(n * n, 3)
        for i in range(n):
            model.add(exactly(range(i * n, i * n + n), 1), exactly(range(i, n * n, n), 1))
        for letter in sorted(set(regions)):
            model.add(exactly([c for c in range(n * n) if regions[c] == letter], 1))
        for i in range(n - 1):
            for j in range(n - 1):
                model.add(at_most_one([i * n + j, i * n + j + 1, i * n + n + j, i * n + n + j + 1]))
        return model


def _apart(n: int, rng: Random) -> list[int] | None:
    """A column for each row, all different, more than one apart from row to row; None where a try failed."""
    columns: list[int] = []
    for _ in range(n):
        free = [c for c in range(n) if c not in columns and (not columns or abs(c - columns[-1]) > 1)]
        if not free:
            return None
        columns.append(rng.choice(free))
    return columns


def _grown(n: int, seeds: Sequence[int], rng: Random) -> list[str]:
    """Connected regions, one around each seed, that fill a square."""
    owner = {cell: i for i, cell in enumerate(seeds)}
    edge = [(near, i) for cell, i in owner.items() for near in beside(cell, n)]
    while edge:
        at = rng.randrange(len(edge))
        cell, i = edge[at]
        edge[at] = edge[-1]
        edge.pop()
        if cell not in owner:
            owner[cell] = i
            edge += [(near, i) for near in beside(cell, n) if near not in owner]
    return _lettered([owner[c] for c in range(n * n)])


def _lettered(owners: Sequence[object]) -> list[str]:
    letters: dict[object, str] = {}
    return [letters.setdefault(o, "ABCDEFGHIJKL"[len(letters)]) for o in owners]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hitori(GridPuzzle):
    r"""Shade so many cells that no number repeats in a row or column, none beside another. The level counts rows and columns.

    >>> facts = {"size": 3, "cells": [1, 1, 1, 1, 2, 3, 2, 3, 1], "shaded": 2}
    >>> Hitori().solve(facts).answer
    '# 1 #\n1 2 3\n2 3 1'
    """

    name: str = "grids/hitori"
    levels: tuple[int, ...] = (1, 2, 3, 4)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 3), (5, 5), (6, 7), (7, 10))
    templates: ClassVar[tuple[str, ...]] = (
        "Shade exactly {shaded} cells of this grid such that no number occurs more than once among the unshaded cells of any "
        "row or any column, and no two shaded cells share an edge.\n\n{grid}\n\n{rows}",
        "{grid}\n\nBlacken {shaded} numbers in the grid above. Two blackened cells must not be next to each other, sideways "
        "or up and down. The numbers that are left must all differ within each row and within each column. {rows}",
        "This is a variant of hitori: cross out exactly {shaded} cells, never two that are direct neighbours (diagonal is "
        "allowed), so that afterwards every row and every column is free of repeated numbers.\n\n{grid}\n\n{rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A square in which shaded cells get numbers of their row or column; refused where one may shade otherwise."""
        n, count = self.shapes[level - 1]
        shaded: set[int] = set()
        for cell in rng.sample(range(n * n), n * n):
            if len(shaded) < count and not shaded & set(beside(cell, n)):
                shaded.add(cell)
        if len(shaded) < count:
            return None
        cells = square(n, rng)
        for cell in sorted(shaded):
            row, column = divmod(cell, n)
            line = [c for c in (*range(row * n, row * n + n), *range(column, n * n, n)) if c not in shaded]
            cells[cell] = cells[rng.choice(line)]
        facts = {"size": n, "cells": cells, "shaded": count}
        found = self.model(facts).solve(2, 4000)
        return facts if len(found.solutions) == 1 and found.complete else None

    def model(self, facts: Facts) -> Model:
        """How many, no neighbours, and of equal numbers in a line all but one."""
        n, cells = facts["size"], facts["cells"]
        model = Model()
        model.block(n * n, 3)
        model.add(exactly(range(n * n), facts["shaded"]))
        for c in range(n * n):
            model.add(*(at_most_one((c, other)) for other in beside(c, n) if other > c))
        for i in range(n):
            for line in (range(i * n, i * n + n), range(i, n * n, n)):
                for value in sorted({cells[c] for c in line}):
                    same = [c for c in line if cells[c] == value]
                    if len(same) > 1:
                        model.add(Count(same, (1,) * len(same), 0, 1))
        return model

    def told(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The grid with # for what is shaded."""
        n = facts["size"]
        cells = ["#" if v else str(number) for v, number in zip(values, facts["cells"], strict=True)]
        rows = [cells[i : i + n] for i in range(0, n * n, n)]
        return Solution(answer=board(rows), gold=rows)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Other numbers."""
        other = rng.sample(range(1, facts["size"] + 1), facts["size"])
        return {**facts, "cells": [other[v - 1] for v in facts["cells"]]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid."""
        rows = "Write the grid row by row with spaces between the cells, # in place of each shaded number."
        return {"grid": grid_of(facts["cells"], facts["size"]), "shaded": str(facts["shaded"]), "rows": rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tents(GridPuzzle):
    r"""A tent beside each tree, no two tents touching, so many in each row and column. The level counts size and trees.

    >>> facts = {"size": 3, "trees": [0, 5], "rows": [1, 0, 1], "columns": [0, 1, 1]}
    >>> Tents().solve(facts).answer
    'T * .\n. . T\n. . *'
    """

    name: str = "grids/tents"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 3), (5, 4), (6, 6), (7, 9), (8, 12))
    templates: ClassVar[tuple[str, ...]] = (
        "A campsite of {n} by {n} cells has {trees} trees (T). Each tree has its own tent in a cell that shares an edge with "
        "it; tents never touch each other, not even at a corner, and do not stand on trees. The rows, from the top, have "
        "{row_counts} tents; the columns, from the left, {column_counts}.\n\n{grid}\n\n{rows}",
        "Solve this puzzle of tents and trees. Every T gets exactly one tent of its own, directly above, below, left or "
        "right of it, in a cell without a tree. No tent is adjacent to another one, diagonals included.\n\n{grid}\n\nTents "
        "per row (top to bottom): {row_counts}. Tents per column (left to right): {column_counts}. {rows}",
        "{grid}\n\nT is a tree and a dot is free ground. Pitch one tent for each tree on free ground next to it (sharing an "
        "edge), such that no two tents are neighbours in any of the eight directions. Numbers of tents by row from the top: "
        "{row_counts}; by column from the left: {column_counts}. {rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Tents that do not touch, trees beside them; refused where they may stand elsewhere."""
        n, count = self.shapes[level - 1]
        tents: list[int] = []
        trees: list[int] = []
        for cell in rng.sample(range(n * n), n * n):
            if len(tents) == count or cell in trees or any(c in tents for c in around(cell, n)):
                continue
            free = [c for c in beside(cell, n) if c not in tents and c not in trees]
            if free:
                tents.append(cell)
                trees.append(rng.choice(free))
        if len(tents) < count:
            return None
        rows = [sum(c // n == i for c in tents) for i in range(n)]
        columns = [sum(c % n == i for c in tents) for i in range(n)]
        facts = {"size": n, "trees": sorted(trees), "rows": rows, "columns": columns}
        found = self.model(facts).solve(2, 4000)
        return facts if len(found.solutions) == 1 and found.complete else None

    def model(self, facts: Facts) -> Model:
        """For each cell whether it holds a tent, for each tree where its tent stands."""
        n, trees = facts["size"], facts["trees"]
        model = Model()
        model.block(n * n, 3)
        for cell in trees:
            model.domains[cell] = 1
        for i in range(n):
            model.add(exactly(range(i * n, i * n + n), facts["rows"][i]), exactly(range(i, n * n, n), facts["columns"][i]))
        for i in range(n - 1):
            for j in range(n - 1):
                model.add(at_most_one([i * n + j, i * n + j + 1, i * n + n + j, i * n + n + j + 1]))
        sides = {tree: [c for c in beside(tree, n) if c not in trees] for tree in trees}
        owns = {tree: model.var(sides[tree] or [tree]) for tree in trees}
        model.add(AllDifferent(list(owns.values())))
        every = (1 << n * n) - 1
        for cell in range(n * n):
            near = [owns[tree] for tree in trees if cell in sides[tree]]
            if cell not in trees and not near:
                model.domains[cell] = 1
            for own in near:  # where a tree's tent stands there is one
                model.add(Count((own, cell), (every ^ 1 << cell, _ON), 1, 2))
            if near:  # a tent there is some tree's
                model.add(Count((*near, cell), (*((1 << cell,) * len(near)), 1), 1, len(near) + 1))
        return model

    def told(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The campsite."""
        n = facts["size"]
        cells = ["T" if c in facts["trees"] else ".*"[values[c]] for c in range(n * n)]
        rows = [cells[i : i + n] for i in range(0, n * n, n)]
        return Solution(answer=board(rows), gold=rows)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Mirrored or rows and columns exchanged."""
        n, trees, rows, columns = facts["size"], facts["trees"], facts["rows"], facts["columns"]
        if rng.random() < 0.5:
            trees, rows, columns = [c % n * n + c // n for c in trees], columns, rows
        if rng.random() < 0.5:
            trees, rows = [(n - 1 - c // n) * n + c % n for c in trees], rows[::-1]
        if rng.random() < 0.5:
            trees, columns = [c // n * n + n - 1 - c % n for c in trees], columns[::-1]
        return {"size": n, "trees": sorted(trees), "rows": rows, "columns": columns}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The campsite and the counts."""
        n, trees = facts["size"], facts["trees"]
        return {
            "n": str(n), "trees": str(len(trees)), "grid": grid_of(["T" if c in trees else "." for c in range(n * n)], n),
            "row_counts": listed([str(k) for k in facts["rows"]]), "column_counts": listed([str(k) for k in facts["columns"]]),
            "rows": "Write the campsite row by row with spaces between the cells: T for a tree, * for a tent, . for other cells.",
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Akari(GridPuzzle):
    r"""Lamps that light every free cell and never one another. The level counts rows and columns.

    >>> facts = {"size": 3, "cells": list("..." ".2." "...")}
    >>> Akari().solve(facts)
    Traceback (most recent call last):
    assay.core.errors.DataError: a puzzle needs exactly one solution; a search of effort ... found 2
    >>> Akari().solve({"size": 3, "cells": list("..." ".0." "...")}).effort > 0
    Traceback (most recent call last):
    assay.core.errors.DataError: a puzzle needs exactly one solution; a search of effort ... found 2
    >>> Akari().solve({"size": 2, "cells": list("2." "..")}).answer
    '2 *\n* .'
    """

    name: str = "grids/akari"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 5), (5, 7), (6, 11), (7, 16), (8, 21))
    templates: ClassVar[tuple[str, ...]] = (
        "Place lamps on free cells (dots) of this {n} by {n} grid. A lamp lights its own cell and shines along its row and "
        "column until it meets a wall (# or a digit). Every free cell must be lit, no lamp may shine on another lamp, and a "
        "digit is the number of lamps on the cells that share an edge with it. A wall marked # may have any number.\n\n"
        "{grid}\n\n{rows}",
        "Solve this akari (light up) puzzle.\n\n{grid}\n\nDots are white cells; # and digits are walls. Put lamps in white "
        "cells so that every white cell is lit. A lamp lights the cell it is in and all white cells in the four straight "
        "directions up to the next wall. Two lamps must not see each other. A digit tells how many lamps stand directly "
        "above, below, left and right of it. {rows}",
        "{grid}\n\nIn the plan above, dots are open floor, # and digits are pillars that stop light. Decide where lamps "
        "stand on the floor: each floor cell must have a lamp or be in line with one (same row or column, no pillar "
        "between), but no lamp may be in line with another. A digit on a pillar counts the lamps in the up to four cells "
        "beside it. {rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Random walls and lamps; numbers on walls that are needed."""
        n, count = self.shapes[level - 1]
        walls = rng.sample(range(n * n), count)
        cells = ["#" if c in walls else "." for c in range(n * n)]
        base = self.model({"size": n, "cells": cells})
        truth = base.sample(rng, 3000)
        if truth is None:
            return None
        pool: list[Constraint] = [exactly(beside(c, n), sum(truth[k] for k in beside(c, n))) for c in walls]
        chosen = base.clues(truth, pool, rng)
        if chosen is None:
            return None
        for i in chosen:
            cells[walls[i]] = str(sum(truth[k] for k in beside(walls[i], n)))
        return {"size": n, "cells": cells}

    def model(self, facts: Facts) -> Model:
        """Lit cells, lamps apart, digits."""
        n, cells = facts["size"], facts["cells"]
        model = Model()
        model.block(n * n, 3)
        stretches = _stretches(n, cells)
        for stretch in stretches:
            model.add(at_most_one(stretch))
        for c, text in enumerate(cells):
            if text == ".":
                seen = sorted({k for stretch in stretches if c in stretch for k in stretch} | {c})
                model.add(Count(seen, (_ON,) * len(seen), 1, len(seen)))
            else:
                model.domains[c] = 1
                if text != "#":
                    model.add(exactly(beside(c, n), int(text)))
        return model

    def told(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The grid with its lamps."""
        n = facts["size"]
        cells = ["*" if v else text for v, text in zip(values, facts["cells"], strict=True)]
        rows = [cells[i : i + n] for i in range(0, n * n, n)]
        return Solution(answer=board(rows), gold=rows)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored."""
        return {"size": facts["size"], "cells": moved(facts["cells"], turning(facts["size"], rng))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid."""
        n = facts["size"]
        rows = (
            "Write the grid row by row with spaces between the cells, as above, with * in place of the dot where a lamp stands."
        )
        return {"grid": grid_of(facts["cells"], n), "n": str(n), "rows": rows}


def _stretches(n: int, cells: Sequence[str]) -> list[list[int]]:
    """Rows and columns of free cells between walls, of two or more."""
    out: list[list[int]] = []
    for i in range(n):
        for line in (range(i * n, i * n + n), range(i, n * n, n)):
            now: list[int] = []
            for c in line:
                if cells[c] == ".":
                    now.append(c)
                else:
                    out.append(now)
                    now = []
            out.append(now)
    return [stretch for stretch in out if len(stretch) > 1]


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

    def told(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The board."""
        n: int = facts["size"]
        return marked([int(values[c // n] == c % n) for c in range(n * n)], n, ".Q")

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored."""
        n: int = facts["size"]
        turn = turning(n, rng)
        return {"size": n, "given": _cells(renumbered(_numbers(facts["given"], n), turn), n)}

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
        model.add(*(Pair(i, j, _unattacked(n, j - i)) for i in range(n) for j in range(i + 1, n)))
        return model


@lru_cache(maxsize=256)
def _unattacked(n: int, apart: int) -> tuple[int, ...]:
    return tuple(mask_of(b for b in range(n) if abs(a - b) not in (0, apart)) for a in range(n))


def _numbers(cells: Sequence[Sequence[int]], n: int) -> list[int]:
    return [row * n + column for row, column in cells]


def _cells(numbers: Sequence[int], n: int) -> list[list[int]]:
    return [[number // n, number % n] for number in numbers]
