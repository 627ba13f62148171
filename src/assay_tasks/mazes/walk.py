"""A maze seen from inside: one move a turn, and nothing is known but the rooms that one has been in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError
from assay.tasks.problem import Facts
from assay_tasks.games.play import MOST_TURNS, Game, Match
from assay_tasks.mazes.grid import GOAL, MOVES, START, WALL, Cell, carve, find, place_ends

__all__ = ["MazeWalk"]

_SIZES = ((3, 3), (3, 4), (4, 4), (5, 5), (5, 6))
_WORDS = {"u": "up", "d": "down", "l": "left", "r": "right", "north": "up", "south": "down", "west": "left", "east": "right"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MazeWalk(Game):
    """Walk through a maze room by room, hearing after each move which ways are open. The level is the number of a size, from
    3 by 3 to 5 by 6 rooms.

    Where one stands and where the exit is are known, the maze is not. There are twice as many turns as rooms but the first:
    enough for a search depth first that never tries a wall, whatever the maze is like.

    Attributes:
        sizes: rows and columns of rooms of each level, at most 31 rooms.
        loops: share of the walls between rooms that are opened beyond those that join all rooms.

    Raises:
        ConfigError: levels that are no sizes, a size out of range, or a share outside [0, 1].

    >>> MazeWalk().solve({"maze": "S.." + chr(10) + ".##" + chr(10) + "..G"}).answer.split()
    ['down', 'right']
    """

    name: str = "mazes/walk"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    sizes: tuple[tuple[int, int], ...] = _SIZES
    loops: float = 0.15
    move: ClassVar[str] = "direction"

    templates: ClassVar[tuple[str, ...]] = (
        "You stand in a maze of {rows} rows and {cols} columns of rooms. Row 1 is at the top, column 1 at the left. Between "
        "two neighbouring rooms is a passage or a wall. You start in row {row}, column {col}; the exit is in row {exit_row}, "
        "column {exit_col}. In each turn say up, down, left or right to walk to the next room. You are told which ways are "
        "open from where you are. Reach the exit in at most {turns} turns.",
        "Find the way out of a maze that you see only from inside. It has {rows} rows (1 is the upmost) and {cols} columns "
        "(1 is the leftmost) of rooms. You are in row {row}, column {col} and must get to row {exit_row}, column {exit_col} "
        "within {turns} turns. Each turn is one step: up, down, left or right; after it you hear which ways are open. A step "
        "against a wall leaves you where you are and costs a turn.",
        "A robot must be led through {rows} by {cols} rooms, counted in rows from the top and in columns from the left, both "
        "from 1. It is at ({row}, {col}), and its goal is ({exit_row}, {exit_col}), row first. You may give {turns} orders, "
        "each one of up, down, left and right, and after each the robot reports which ways it can go on.",
    )

    def __post_init__(self) -> None:
        super(MazeWalk, self).__post_init__()
        if self.levels[-1] > len(self.sizes):
            raise ConfigError(f"{self.name}.levels go up to {self.levels[-1]}, but there are {len(self.sizes)} sizes")
        for rows, cols in self.sizes:
            if min(rows, cols) < 1 or not 2 <= rows * cols <= MOST_TURNS // 2 + 1:
                raise ConfigError(
                    f"{self.name}.sizes: {(rows, cols)} must be 2 to {MOST_TURNS // 2 + 1} rooms in rows and columns"
                )
        if not 0.0 <= self.loops <= 1.0:
            raise ConfigError(f"{self.name}.loops is a share in [0, 1], got {self.loops}")

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A maze of the size, lying or standing."""
        rows, cols = self.sizes[level - 1]
        if rng.getrandbits(1):
            rows, cols = cols, rows
        grid = carve(rows, cols, self.loops, rng)
        place_ends(grid, rng)
        return {"maze": "\n".join(["".join(row) for row in grid])}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Sizes, places and turns."""
        walk = _Walk(facts)
        (row, col), (exit_row, exit_col) = walk.here, walk.goal
        numbers = {
            "rows": walk.rows,
            "cols": walk.cols,
            "turns": walk.turns,
            "row": row + 1,
            "col": col + 1,
            "exit_row": exit_row + 1,
            "exit_col": exit_col + 1,
        }
        return {key: str(number) for key, number in numbers.items()}

    def match(self, facts: Facts) -> Match:
        """A fresh walk."""
        return _Walk(facts)


class _Walk(Match):
    """One walk. Rooms count from 0. The oracle goes depth first, to the room nearest the exit, and back where all are known."""

    def __init__(self, facts: Facts) -> None:
        grid = str(facts["maze"]).split("\n")
        self.rows, self.cols = (len(grid) + 1) // 2, (len(grid[0]) + 1) // 2
        super().__init__(2 * (self.rows * self.cols - 1))
        self._grid = grid
        (r, c), (a, b) = find(grid, START), find(grid, GOAL)
        self.here, self.goal = (r // 2, c // 2), (a // 2, b // 2)
        self._seen, self._trail = {self.here}, [self.here]

    def opening(self) -> str:
        """Where the walk begins."""
        return self._place()

    def answer(self, action: str) -> str:
        """One step, or why there is none."""
        name = _WORDS.get(action, action)
        if name not in MOVES:
            return f"Please say up, down, left or right. {self._place()}"
        there = self._ways().get(name)
        if there is None:
            return f"There is a wall. {self._place()}"
        self.here = there
        self._seen.add(there)
        if self._trail[-2:-1] == [there]:
            self._trail.pop()
        else:
            self._trail.append(there)
        if there == self.goal:
            self.win()
            return "You have reached the exit."
        return self._place()

    def advise(self) -> str:
        """To a room that was not seen yet, or back."""
        ways = self._ways()
        self.effort += 1 + len(ways)
        fresh = [(self._far(there), name) for name, there in ways.items() if there not in self._seen]
        return min(fresh)[1] if fresh else next(name for name, there in ways.items() if there == self._trail[-2])

    def _far(self, room: Cell) -> int:
        return abs(room[0] - self.goal[0]) + abs(room[1] - self.goal[1])

    def _ways(self) -> dict[str, Cell]:
        """The rooms that passages lead to."""
        row, col = self.here
        out: dict[str, Cell] = {}
        for name, (down, right) in MOVES.items():
            r, c = row + down, col + right
            if 0 <= r < self.rows and 0 <= c < self.cols and self._grid[2 * row + down][2 * col + right] != WALL:
                out[name] = (r, c)
        return out

    def _place(self) -> str:
        row, col = self.here
        return f"You are in row {row + 1}, column {col + 1}. Open ways: {', '.join(self._ways())}."
