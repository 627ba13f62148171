"""Grids of things that keep apart: stars, shaded cells, tents, lamps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, cast

from assay.tasks.problem import Facts, Solution
from assay_tasks.puzzles.constraints import AllDifferent, Constraint, Count
from assay_tasks.puzzles.marks import ON, all_neighbours, exactly, mark_grid
from assay_tasks.puzzles.puzzle import GridPuzzle, board, list_words, renumber
from assay_tasks.puzzles.solver import Model
from assay_tasks.puzzles.squares import edge_neighbours, grid_of, move_cells, place, square, turning

__all__ = ["Akari", "Hitori", "StarBattle", "Tents"]


def at_most_one(cells: Sequence[int]) -> Count:
    """No two of the cells are marked."""
    return Count(cells, (ON,) * len(cells), 0, 1)


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
        stars = _spaced_columns(n, rng)
        if stars is None:
            return None
        regions = _grow_regions(n, [i * n + c for i, c in enumerate(stars)], rng)
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

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The stars."""
        return mark_grid(values, facts["size"], ".*")

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored; regions are lettered anew."""
        n, turn = facts["size"], turning(facts["size"], rng)
        return {
            "size": n,
            "regions": _letter_regions(move_cells(facts["regions"], turn)),
            "empty": renumber(facts["empty"], turn),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The regions and hints."""
        n = facts["size"]
        names = list_words([place(c, n) for c in facts["empty"]])
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


def _spaced_columns(n: int, rng: Random) -> list[int] | None:
    """A column for each row, all different, more than one apart from row to row; None where a try failed."""
    columns: list[int] = []
    for _ in range(n):
        free = [c for c in range(n) if c not in columns and (not columns or abs(c - columns[-1]) > 1)]
        if not free:
            return None
        columns.append(rng.choice(free))
    return columns


def _grow_regions(n: int, seeds: Sequence[int], rng: Random) -> list[str]:
    """Connected regions, one around each seed, that fill a square."""
    owner = {cell: i for i, cell in enumerate(seeds)}
    edge = [(near, i) for cell, i in owner.items() for near in edge_neighbours(cell, n)]
    while edge:
        at = rng.randrange(len(edge))
        cell, i = edge[at]
        edge[at] = edge[-1]
        edge.pop()
        if cell not in owner:
            owner[cell] = i
            edge += [(near, i) for near in edge_neighbours(cell, n) if near not in owner]
    return _letter_regions([owner[c] for c in range(n * n)])


def _letter_regions(owners: Sequence[object]) -> list[str]:
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
            if len(shaded) < count and not shaded & set(edge_neighbours(cell, n)):
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
            model.add(*(at_most_one((c, other)) for other in edge_neighbours(c, n) if other > c))
        for i in range(n):
            for line in (range(i * n, i * n + n), range(i, n * n, n)):
                for value in sorted({cells[c] for c in line}):
                    same = [c for c in line if cells[c] == value]
                    if len(same) > 1:
                        model.add(Count(same, (1,) * len(same), 0, 1))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
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
            if len(tents) == count or cell in trees or any(c in tents for c in all_neighbours(cell, n)):
                continue
            free = [c for c in edge_neighbours(cell, n) if c not in tents and c not in trees]
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
        sides = {tree: [c for c in edge_neighbours(tree, n) if c not in trees] for tree in trees}
        owns = {tree: model.var(sides[tree] or [tree]) for tree in trees}
        model.add(AllDifferent(list(owns.values())))
        every = (1 << n * n) - 1
        for cell in range(n * n):
            near = [owns[tree] for tree in trees if cell in sides[tree]]
            if cell not in trees and not near:
                model.domains[cell] = 1
            for own in near:  # where a tree's tent stands there is one
                model.add(Count((own, cell), (every ^ 1 << cell, ON), 1, 2))
            if near:  # a tent there is some tree's
                model.add(Count((*near, cell), (*((1 << cell,) * len(near)), 1), 1, len(near) + 1))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
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
            "n": str(n),
            "trees": str(len(trees)),
            "grid": grid_of(["T" if c in trees else "." for c in range(n * n)], n),
            "row_counts": list_words([str(k) for k in facts["rows"]]),
            "column_counts": list_words([str(k) for k in facts["columns"]]),
            "rows": "Write the campsite row by row with spaces between the cells: T for a tree, * for a tent, . for other cells.",
        }


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
        pool: list[Constraint] = [exactly(edge_neighbours(c, n), sum(truth[k] for k in edge_neighbours(c, n))) for c in walls]
        chosen = base.clues(truth, pool, rng)
        if chosen is None:
            return None
        for i in chosen:
            cells[walls[i]] = str(sum(truth[k] for k in edge_neighbours(walls[i], n)))
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
                model.add(Count(seen, (ON,) * len(seen), 1, len(seen)))
            else:
                model.domains[c] = 1
                if text != "#":
                    model.add(exactly(edge_neighbours(c, n), int(text)))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The grid with its lamps."""
        n = facts["size"]
        cells = ["*" if v else text for v, text in zip(values, facts["cells"], strict=True)]
        rows = [cells[i : i + n] for i in range(0, n * n, n)]
        return Solution(answer=board(rows), gold=rows)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored."""
        return {"size": facts["size"], "cells": move_cells(facts["cells"], turning(facts["size"], rng))}

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
