"""A maze that is seen from above: how it is drawn, worded and solved."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError
from assay.tasks.problem import Facts, Problem, Solution
from assay_tasks.mazes.grid import GOAL, MOVES, START, WALL, Cell, carve, find, place_ends

__all__ = ["Maze", "shortest"]


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
        place_ends(grid, rng)
        return grid

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """The maze as text, one row to a line."""
        return {"maze": "\n".join(["".join(row) for row in self.grid(level, rng)])}

    @abstractmethod
    def find_answer(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
        """The answer and the gold, from a shortest way; None where there is no way."""
        ...

    def solve(self, facts: Facts) -> Solution:
        """Breadth first from the start."""
        rows = str(facts["maze"]).split("\n")
        way, effort = shortest(rows)
        answer, gold = self.find_answer(rows, way)
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
