"""Ways through a maze that is seen from above, and through one that is seen from inside."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Form
from assay.tasks.problems import Problems
from assay.verify.exact import ExactMatch
from assay.verify.structure.maze import MazePath
from assay.verify.text.number import Numeric
from assay_tasks.mazes.grid import MOVES, START, WALL, Cell, find
from assay_tasks.mazes.maze import Maze, shortest
from assay_tasks.mazes.walk import MazeWalk
from assay_tasks.mazes.winding import WindingWay

__all__ = ["AnyWay", "MazeDistance", "MazeReachable", "ShortestWay", "mazes"]


_MOVES = " Write the moves, each up, down, left or right, in order with commas between."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyWay(Maze):
    """Any way from start to goal. Level n has n + 1 or n + 2 rooms on each side.

    >>> AnyWay().solve({"maze": "S.#" + chr(10) + "#.G"}).answer
    'right, down, right'
    """

    name: str = "mazes/path"
    asks: ClassVar[tuple[str, ...]] = (
        "Find a way from the start to the goal; it need not be the shortest.",
        "How can one get to the goal? Any way will do.",
    )
    how: ClassVar[str] = _MOVES

    def find_answer(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
        """The moves."""
        return ", ".join(way or ()), {"maze": rows}

    def verifier(self, form: Form) -> Verifier:
        """Walk."""
        return MazePath(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortestWay(Maze):
    """A shortest way from start to goal. Level n has n + 1 or n + 2 rooms on each side.

    >>> ShortestWay().solve({"maze": "S.." + chr(10) + "..G"}).gold["value"]
    3
    """

    name: str = "mazes/shortest"
    loops: float = 0.3
    asks: ClassVar[tuple[str, ...]] = (
        "Find a way from the start to the goal with as few moves as possible.",
        "What is the quickest way from the start to the goal? Any of the shortest ones will do.",
    )
    how: ClassVar[str] = _MOVES

    def find_answer(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
        """The moves."""
        return ", ".join(way or ()), {"maze": rows, "value": len(way or ())}

    def verifier(self, form: Form) -> Verifier:
        """Walk, and count."""
        return MazePath(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class MazeDistance(Maze):
    """The fewest moves from start to goal. Level n has n + 1 or n + 2 rooms on each side.

    >>> MazeDistance().solve({"maze": "S.." + chr(10) + "..G"}).answer
    '3'
    """

    name: str = "mazes/distance"
    loops: float = 0.3
    asks: ClassVar[tuple[str, ...]] = (
        "How many moves does a shortest way from the start to the goal take?",
        "What is the least number of moves in which one can get from the start to the goal?",
    )

    def find_answer(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
        """How many moves."""
        return str(len(way or ())), None

    def verifier(self, form: Form) -> Verifier:
        """Equality of numbers; nothing else may be said."""
        return Numeric(alone=True, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class MazeReachable(Maze):
    """Whether there is a way from start to goal: in half of the questions. Level n has n + 1 or n + 2 rooms on each side.

    >>> MazeReachable().solve({"maze": "S.#" + chr(10) + ".#G"}).answer
    'no'
    """

    name: str = "mazes/reachable"
    asks: ClassVar[tuple[str, ...]] = ("Is there a way from the start to the goal?", "Can one get from the start to the goal?")
    how: ClassVar[str] = " Answer yes or no."

    def grid(self, level: int, rng: Random) -> list[list[str]]:
        """A maze with passages walled up: so that no way is left, or as many others, as a coin says."""
        grid = super(MazeReachable, self).grid(level, rng)
        wanted = rng.getrandbits(1)
        closed: list[Cell] = []
        trial = [list(row) for row in grid]
        while (way := shortest(["".join(row) for row in trial])[0]) is not None:
            cells = [cell for cell in _cells(find(["".join(row) for row in trial], START), way) if sum(cell) % 2]
            closed.append(rng.choice(cells))
            trial[closed[-1][0]][closed[-1][1]] = WALL
        if not wanted:
            return trial
        spare = [(r, c) for r, row in enumerate(grid) for c, mark in enumerate(row) if mark == "." and (r + c) % 2]
        rng.shuffle(spare)
        for r, c in spare:
            if not closed:
                break
            grid[r][c] = WALL
            if shortest(["".join(row) for row in grid])[0] is None:
                grid[r][c] = "."
            else:
                closed.pop()
        return grid

    def find_answer(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
        """Yes or no."""
        return "no" if way is None else "yes", None

    def verifier(self, form: Form) -> Verifier:
        """The same word."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


def _cells(start: Cell, way: list[str]) -> list[Cell]:
    """The cells that moves lead to."""
    out: list[Cell] = []
    for name in way:
        start = (start[0] + MOVES[name][0], start[1] + MOVES[name][1])
        out.append(start)
    return out


def mazes() -> Problems:
    """Ways through mazes, seen from above or from inside.

    Carries: Ariadne (arXiv 2511.00710).
    """
    return Problems(
        name="mazes",
        summary="Ways through mazes, seen from above or from inside.",
        problems=(AnyWay(), ShortestWay(), MazeDistance(), MazeReachable(), WindingWay(), MazeWalk()),
    )
