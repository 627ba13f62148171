"""Mazes of cells: drawn as a tree of rooms with some loops, and measured breadth first."""

from __future__ import annotations

from random import Random

__all__ = ["GOAL", "MOVES", "START", "WALL", "Cell", "carve", "distances", "find", "place_ends"]

Cell = tuple[int, int]
"""Row and column, from 0."""

START, GOAL, WALL = "S", "G", "#"
MOVES: dict[str, Cell] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def carve(rows: int, cols: int, loops: float, rng: Random) -> list[list[str]]:
    """A maze of so many rooms, which stand at even rows and columns with walls or passages between.

    Passages join all rooms in a random tree, walked depth first; of the walls between rooms that are left, a share ``loops`` is
    opened.
    """
    high, wide = 2 * rows - 1, 2 * cols - 1
    grid = [[WALL] * wide for _ in range(high)]
    start = (2 * rng.randrange(rows), 2 * rng.randrange(cols))
    grid[start[0]][start[1]] = "."
    stack = [start]
    while stack:
        r, c = stack[-1]
        ways = [
            (a, b)
            for a, b in ((r - 2, c), (r + 2, c), (r, c - 2), (r, c + 2))
            if 0 <= a < high and 0 <= b < wide and grid[a][b] == WALL
        ]
        if not ways:
            stack.pop()
            continue
        a, b = ways[int(rng.random() * len(ways))]
        grid[a][b] = grid[(a + r) // 2][(b + c) // 2] = "."
        stack.append((a, b))
    walls = [(r, c) for r in range(high) for c in range(wide) if (r + c) % 2 and grid[r][c] == WALL]
    for r, c in rng.sample(walls, round(loops * len(walls))):
        grid[r][c] = "."
    return grid


def distances(grid: list[list[str]], source: Cell) -> dict[Cell, int]:
    """The fewest moves from a cell to each that can be reached."""
    high, wide = len(grid), len(grid[0])
    out = {source: 0}
    queue = [source]
    for here in queue:
        r, c = here
        far = out[here] + 1
        for a, b in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
            if 0 <= a < high and 0 <= b < wide and grid[a][b] != WALL and (a, b) not in out:
                out[a, b] = far
                queue.append((a, b))
    return out


def place_ends(grid: list[list[str]], rng: Random) -> tuple[Cell, Cell]:
    """A start in any room, and a goal in a room at least half as far from it as the farthest; both are marked."""
    rooms = [(r, c) for r in range(0, len(grid), 2) for c in range(0, len(grid[0]), 2)]
    start = rng.choice(rooms)
    far = distances(grid, start)
    most = max(far.values())
    goal = rng.choice([room for room in rooms if 2 * far[room] >= most and room != start])
    grid[start[0]][start[1]], grid[goal[0]][goal[1]] = START, GOAL
    return start, goal


def find(grid: list[str], mark: str) -> Cell:
    """Where a mark stands.

    >>> find(["..", ".G"], "G")
    (1, 1)
    """
    return next((r, row.index(mark)) for r, row in enumerate(grid) if mark in row)
