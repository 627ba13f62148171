"""Mazes whose only way has an exact number of moves and turns, as Ariadne controls them (arXiv 2511.00710)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Verifier
from assay.tasks.draws import TRIES
from assay.tasks.problem import Form
from assay.verify.structure.maze import MazePath
from assay_tasks.mazes.grid import GOAL, MOVES, START, WALL, Cell
from assay_tasks.mazes.maze import Maze

__all__ = ["WindingWay", "count_turns"]

_STAGES = ((2, 0), (3, 1), (4, 1), (5, 2), (6, 2), (8, 3), (10, 4), (12, 5), (16, 7), (20, 9))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindingWay(Maze):
    """The only way from start to goal, of an exact number of moves and turns. The level is the number of a stage, from 1.

    The way is drawn first: a walk with so many moves and turns that never comes beside itself. Dead ends are then opened off it,
    one cell after another, each beside a single open cell, so that no second way arises.

    Attributes:
        stages: moves (2 to 40) and turns (0 to moves - 1) of each level.
        loops: 0: a loop would be another way.
        dead: share of the walls in the maze that are tried, in random order, as cells of dead ends.
        margin: rows and columns, at most, that the maze has beyond the way, on each side.

    Raises:
        ConfigError: levels that are no stages, a stage out of range, loops, or a share outside [0, 1].
        DataError: the draws found no such walk: a stage with nearly as many turns as moves.

    Source: Ariadne (arXiv 2511.00710), which sets path length and number of turns; how it draws them is not published.

    >>> WindingWay().solve({"maze": "S.#" + chr(10) + "#.G"}).answer
    'right, down, right'
    """

    name: str = "mazes/winding"
    levels: tuple[int, ...] = tuple(range(1, len(_STAGES) + 1))
    loops: float = 0.0
    stages: tuple[tuple[int, int], ...] = _STAGES
    dead: float = 0.5
    margin: int = 1

    asks: ClassVar[tuple[str, ...]] = (
        "Find the way from the start to the goal.",
        "There is one way from the start to the goal that never turns back. Which is it?",
    )
    how: ClassVar[str] = " Write the moves, each up, down, left or right, in order with commas between."

    def __post_init__(self) -> None:
        super(WindingWay, self).__post_init__()
        if self.levels[-1] > len(self.stages):
            raise ConfigError(f"{self.name}.levels go up to {self.levels[-1]}, but there are {len(self.stages)} stages")
        for moves, turns in self.stages:
            if not 2 <= moves <= 40 or not 0 <= turns < moves:
                raise ConfigError(f"{self.name}.stages: {(moves, turns)} must be moves from 2 to 40 and fewer turns than moves")
        if self.loops or not 0.0 <= self.dead <= 1.0 or self.margin < 0:
            raise ConfigError(
                f"{self.name}: loops={self.loops}, dead={self.dead}, margin={self.margin}; use no loops, a share in [0, 1] and a "
                "margin from 0"
            )

    def grid(self, level: int, rng: Random) -> list[list[str]]:
        """A maze with its start, its goal and one way between."""
        way = self._walk(*self.stages[level - 1], rng)
        low = [min(cell[axis] for cell in way) - rng.randint(0, self.margin) for axis in (0, 1)]
        high = [max(cell[axis] for cell in way) + rng.randint(0, self.margin) for axis in (0, 1)]
        grid = [[WALL] * (high[1] - low[1] + 1) for _ in range(high[0] - low[0] + 1)]
        cells = [(r - low[0], c - low[1]) for r, c in way]
        for r, c in cells:
            grid[r][c] = "."
        self._open_dead_ends(grid, cells[-1], rng)
        (r, c), (a, b) = cells[0], cells[-1]
        grid[r][c], grid[a][b] = START, GOAL
        return grid

    def find_answer(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
        """The moves, and how many: going back and forth is no answer."""
        return ", ".join(way or ()), {"maze": rows, "value": len(way or ())}

    def verifier(self, form: Form) -> Verifier:
        """Walk, and count."""
        return MazePath(where=form.place)

    def _walk(self, moves: int, turns: int, rng: Random) -> list[Cell]:
        """Cells of a walk with so many moves and turns, no two of them neighbours but in order."""
        ways = list(MOVES.values())
        for _ in range(TRIES):
            at, (down, right) = set(rng.sample(range(1, moves), turns)), rng.choice(ways)
            cells: list[Cell] = [(0, 0)]
            for move in range(moves):
                if move in at:
                    side = rng.choice((1, -1))
                    down, right = side * right, side * down
                there = (cells[-1][0] + down, cells[-1][1] + right)
                if any(abs(there[0] - r) + abs(there[1] - c) <= 1 for r, c in cells[:-1]):
                    break
                cells.append(there)
            if len(cells) == moves + 1:
                return cells
        raise DataError(
            f"{self.name}: none of {TRIES} walks of {moves} moves and {turns} turns keeps clear of itself; use fewer turns"
        )

    def _open_dead_ends(self, grid: list[list[str]], goal: Cell, rng: Random) -> None:
        """Open walls beside one open cell each; none beside the goal, at which a way ends."""
        walls = [(r, c) for r, row in enumerate(grid) for c, mark in enumerate(row) if mark == WALL]
        rng.shuffle(walls)
        for r, c in walls[: round(self.dead * len(walls))]:
            beside = [
                (a, b)
                for a, b in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1))
                if 0 <= a < len(grid) and 0 <= b < len(grid[0]) and grid[a][b] != WALL
            ]
            if len(beside) == 1 and beside[0] != goal:
                grid[r][c] = "."


def count_turns(way: list[str]) -> int:
    """How often moves change direction.

    >>> count_turns(["right", "right", "down", "right"])
    2
    """
    return sum(one != other for one, other in pairwise(way))
