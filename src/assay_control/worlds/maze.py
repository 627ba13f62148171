"""A point that walks through a maze, and way points along the shortest path."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from assay.core import ConfigError, uniforms
from assay_control.records import Array, Box
from assay_control.worlds.base import Copies, Move, RunningWorld, Seeds
from assay_control.worlds.pictures import way

__all__ = ["PointMaze"]

MAZES = {
    "open": ("#########", "#.......#", "#.......#", "#.......#", "#.......#", "#.......#", "#.......#", "#.......#", "#########"),
    "stitch": (
        "#########",
        "#...#...#",
        "#.#.#.#.#",
        "#.#...#.#",
        "#.#####.#",
        "#.#...#.#",
        "#.#.#.#.#",
        "#...#...#",
        "#########",
    ),
    "rooms": (
        "#########",
        "#...#...#",
        "#.......#",
        "#...#...#",
        "##.###.##",
        "#...#...#",
        "#.......#",
        "#...#...#",
        "#########",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PointMaze:
    """Walk to a goal cell among walls, which hold a point where it stands.

    A state is a place in cells. Observation: the place, scaled to [-1, 1]. Action: a step of at most ``speed`` cells along each
    axis. Reward 1 on reaching within ``reach`` of the goal, which terminates; 0 otherwise, so a return is the success.

    Attributes:
        maze: ``open``, ``stitch`` or ``rooms``; or rows of ``#`` and ``.`` joined by ``/``.
        begin: row and column of the cell in which test episodes begin; any free cell where None.
        goal: row and column of the goal.
        speed: cells per step along an axis.
        reach: cells from the goal's middle that count as there.
        horizon: steps of an episode.

    Raises:
        ConfigError: no such maze, or a begin or goal that is a wall.

    >>> place = PointMaze()
    >>> place.distance((1, 1))
    16
    """

    maze: str = "stitch"
    begin: tuple[int, int] | None = (1, 1)
    goal: tuple[int, int] = (7, 7)
    speed: float = 1.0
    reach: float = 0.5
    horizon: int = 100

    def __post_init__(self) -> None:
        if self.maze not in MAZES and "/" not in self.maze:
            raise ConfigError(f"PointMaze.maze={self.maze!r}; use one of {sorted(MAZES)}, or rows of '#' and '.' joined by '/'")
        for name in ("begin", "goal"):
            cell = getattr(self, name)
            if cell is not None and not free_cells(self.maze)[cell]:
                raise ConfigError(f"PointMaze.{name}={cell} is a wall of maze {self.maze!r}; choose a free cell")

    @property
    def observation_size(self) -> int:
        """2."""
        return 2

    @property
    def actions(self) -> Box:
        """A step along rows and columns."""
        return Box(2)

    def open(self, count: int, seeds: Seeds) -> RunningWorld:
        """As `World.open`."""
        return Copies(self, count, seeds)

    def start(self, seeds: Array) -> Array:
        """Somewhere in the cell where episodes begin, or in any free cell but the goal's."""
        u = uniforms(np.asarray(seeds, np.uint64), 0, 3)
        if self.begin is not None:
            cells = np.broadcast_to(np.array(self.begin), (len(u), 2))
        else:
            free = np.argwhere(free_cells(self.maze))
            free = free[(free != np.array(self.goal)).any(1)]
            cells = free[(u[:, 2] * len(free)).astype(np.int64)]
        return cells + 0.4 * (u[:, :2] - 0.5)

    def observe(self, state: Array) -> Array:
        """The place between -1 and 1."""
        return state / (np.array(free_cells(self.maze).shape) - 1) * 2.0 - 1.0

    def place(self, observation: Array) -> Array:
        """The inverse of `observe`."""
        return (observation + 1.0) / 2.0 * (np.array(free_cells(self.maze).shape) - 1)

    def move(self, state: Array, action: Array) -> Move:
        """First along rows, then along columns; into a wall nobody moves."""
        free = free_cells(self.maze)
        step = np.clip(action, -1.0, 1.0) * self.speed
        after = state.copy()
        for axis in (0, 1):
            tried = after.copy()
            tried[:, axis] += step[:, axis]
            cell = np.rint(tried).astype(np.int64)
            after = np.where(free[cell[:, 0], cell[:, 1]][:, None], tried, after)
        there = np.linalg.norm(after - np.array(self.goal), axis=1) <= self.reach
        return Move(state=after, reward=there.astype(np.float64), terminated=there)

    def distance(self, cell: tuple[int, int]) -> int:
        """Cells on the shortest way from a cell to the goal."""
        return int(distances(self.maze, self.goal)[cell])

    def toward(self, observation: Array, goals: Array) -> Array:
        """``[n, 2]`` the scripted walker: to the middle of the next cell on the shortest way to each of ``[n, 2]`` goal cells."""
        place = self.place(observation)
        cell = np.rint(place).astype(np.int64)
        aim = next_cells(self.maze)[_number(self.maze, cell), _number(self.maze, goals)]
        width = free_cells(self.maze).shape[1]
        middle = np.stack([aim // width, aim % width], axis=1)
        return np.clip((middle - place) / self.speed, -1.0, 1.0)

    def picture(self, observations: Array) -> str:
        """An SVG of an episode ``[T + 1, O]``: the way through the maze, a circle at the goal."""
        return way(free_cells(self.maze), self.place(observations), self.goal)

    def control(self, observation: Array) -> Array:
        """``[n, 2]`` the scripted expert: the shortest way to the goal."""
        return self.toward(observation, np.broadcast_to(np.array(self.goal), observation.shape))


def _number(maze: str, cells: Array) -> Any:
    return cells[:, 0] * free_cells(maze).shape[1] + cells[:, 1]


@cache
def free_cells(maze: str) -> Array:
    """``[rows, columns]`` bool: where there is no wall."""
    rows = MAZES.get(maze) or tuple(maze.split("/"))
    if len({len(row) for row in rows}) != 1:
        raise ConfigError(f"PointMaze.maze={maze!r}: its rows differ in length")
    free = np.array([[c == "." for c in row] for row in rows])
    if free[0].any() or free[-1].any() or free[:, 0].any() or free[:, -1].any():
        raise ConfigError(f"PointMaze.maze={maze!r}: close its border with walls, '#'")
    return free


@cache
def distances(maze: str, goal: tuple[int, int]) -> Array:
    """``[rows, columns]`` cells on the shortest way to ``goal``; a large number for walls and what cannot be reached."""
    free = free_cells(maze)
    out = np.full(free.shape, 10**6)
    out[goal] = 0
    queue = deque([goal])
    while queue:
        r, c = queue.popleft()
        for cell in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
            if free[cell] and out[cell] > out[r, c] + 1:
                out[cell] = out[r, c] + 1
                queue.append(cell)
    return out


@cache
def next_cells(maze: str) -> Array:
    """``[cells, goals]`` number of the next cell on the shortest way; the cell itself at the goal."""
    free = free_cells(maze)
    rows, width = free.shape
    cells = int(rows) * int(width)
    out: Array = np.arange(cells).repeat(cells).reshape(cells, cells)
    for goal in map(tuple, np.argwhere(free)):
        far = distances(maze, (int(goal[0]), int(goal[1])))
        for r, c in np.argwhere(free):
            around = [(int(r) + 1, int(c)), (int(r) - 1, int(c)), (int(r), int(c) + 1), (int(r), int(c) - 1)]
            best = min(around, key=lambda cell: int(far[cell]))
            if far[best] < far[r, c]:
                out[r * width + c, goal[0] * width + goal[1]] = best[0] * width + best[1]
    return out
