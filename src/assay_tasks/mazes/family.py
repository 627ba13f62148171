"""Ways through a maze that is seen from above, and through one that is seen from inside."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError
from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.verify.exact import ExactMatch
from assay.verify.structure.maze import MazePath
from assay.verify.text.number import Numeric
from assay_tasks.mazes.grid import GOAL, MOVES, START, WALL, Cell, carve, find, placed
from assay_tasks.mazes.walk import MazeWalk

__all__ = ["AnyWay", "MazeDistance", "MazeReachable", "ShortestWay", "mazes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maze(Problem):
    """Base of problems on a maze that is seen from above. Level n has n + 1 or n + 2 rooms on each side.

    Rooms stand at even rows and columns, walls and passages between them, so that a maze of n rooms on a side has 2 n - 1 cells.
    It is drawn as rows of marks, or told by the coordinates of its walls.

    Attributes:
        loops: share of the walls between rooms that are opened beyond those that join all rooms.

    Raises:
        ConfigError: a share outside [0, 1], or levels beyond 20.
    """

    domain: str = "logic"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    loops: float = 0.15

    asks: ClassVar[tuple[str, ...]] = ()
    """Questions."""
    how: ClassVar[str] = ""
    """How the answer is written."""

    def __post_init__(self) -> None:
        super(Maze, self).__post_init__()
        if not 0.0 <= self.loops <= 1.0:
            raise ConfigError(f"{self.name}.loops is a share in [0, 1], got {self.loops}")
        if self.levels[-1] > 20:
            raise ConfigError(f"{self.name}.levels go up to 20, got {self.levels}")

    def grid(self, level: int, rng: Random) -> list[list[str]]:
        """A maze with its start and goal."""
        rows, cols = rng.choice(((level + 1, level + 2), (level + 2, level + 1), (level + 2, level + 2)))
        grid = carve(rows, cols, self.loops, rng)
        placed(grid, rng)
        return grid

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """The maze as text, one row to a line."""
        return {"maze": "\n".join(["".join(row) for row in self.grid(level, rng)])}

    @abstractmethod
    def found(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
        """The answer and the gold, from a shortest way; None where there is no way."""
        ...

    def solve(self, facts: Facts) -> Solution:
        """Breadth first from the start."""
        rows = str(facts["maze"]).split("\n")
        way, effort = shortest(rows)
        answer, gold = self.found(rows, way)
        return Solution(answer=answer, gold=gold, effort=effort)

    @property
    def variants(self) -> int:
        """Each question on a drawing and on coordinates."""
        return 2 * len(self.asks)

    def word(self, facts: Facts, variant: int) -> str:
        """The maze, the question and how the answer is written."""
        rows = str(facts["maze"]).split("\n")
        told = _coordinates(rows) if variant % 2 else _drawing(rows)
        return f"{told}\n{self.asks[variant // 2]}{self.how}"


def shortest(rows: list[str]) -> tuple[list[str] | None, int]:
    """The moves of a shortest way from start to goal, None where there is none, and the cells looked at."""
    start, goal = find(rows, START), find(rows, GOAL)
    before: dict[Cell, tuple[Cell, str]] = {start: (start, "")}
    queue, effort = [start], 0
    for here in queue:
        if here == goal:
            break
        for name, (down, right) in MOVES.items():
            effort += 1
            r, c = there = (here[0] + down, here[1] + right)
            if 0 <= r < len(rows) and 0 <= c < len(rows[0]) and rows[r][c] != WALL and there not in before:
                before[there] = (here, name)
                queue.append(there)
    if goal not in before:
        return None, effort
    moves: list[str] = []
    here = goal
    while here != start:
        here, name = before[here]
        moves.append(name)
    return moves[::-1], effort


def _drawing(rows: list[str]) -> str:
    maze = "\n".join(rows)
    return (
        f"In this maze S is the start, G the goal, # a wall and . an open cell. One move leads up, down, left or right.\n{maze}"
    )


def _coordinates(rows: list[str]) -> str:
    walls = ", ".join([f"({r}, {c})" for r, row in enumerate(rows) for c, mark in enumerate(row) if mark == WALL])
    start, goal = find(rows, START), find(rows, GOAL)
    return (
        f"A maze has {len(rows)} rows and {len(rows[0])} columns of cells. (row, column) names a cell, and (0, 0) is the one "
        f"at the top left. One move leads up (to the row before), down, left or right, never out of the maze nor into a "
        f"wall. The walls: {walls or 'none'}. The start is {start}, the goal {goal}."
    )


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

    def found(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
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

    def found(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
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

    def found(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
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

    def found(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
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
    # a module of its own, which builds on this one
    from assay_tasks.mazes.winding import WindingWay

    return Problems(
        name="mazes",
        summary="Ways through mazes, seen from above or from inside.",
        problems=(AnyWay(), ShortestWay(), MazeDistance(), MazeReachable(), WindingWay(), MazeWalk()),
    )
