"""Cells and walkers: cellular automata, Langton's ant, a robot, a ball between walls, a Turing machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.exact import ExactMatch
from assay.verify.text.items import ListMatch

__all__ = ["Ant", "Ball", "Elementary", "Life", "Robot", "Turing"]

_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
_HEADINGS = ("north", "east", "south", "west")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated(Problem):
    """Base of processes whose end is asked for."""

    domain: str = "simulation"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    def verifier(self, form: Form) -> Verifier:
        """The text, white space around it and case forgiven."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementary(Simulated):
    """A row of cells under one of Wolfram's 256 elementary rules, on a ring. The level is width and steps, 6 by 1 to 26 by 6.

    >>> Elementary().solve({"rule": 90, "row": "001000", "steps": 2}).answer
    '100010'
    """

    name: str = "simulation/elementary"

    templates: ClassVar[tuple[str, ...]] = (
        "A row of cells on a ring (the last is the left neighbour of the first) follows the elementary cellular automaton rule "
        "{rule}: "
        "{table}, where the three digits are left neighbour, cell and right neighbour, and behind the arrow is the cell's next "
        "state. "
        "All cells change at once.\nThe row is\n{row}\nWhat is it after {times}?",
        "Start from the ring of cells {row}, whose first and last cell are neighbours. In each step every cell looks at its left "
        "neighbour, itself and its right neighbour and becomes, all at once: {table} (rule {rule}). Give the row after {times}.",
        "Rule {rule} of the elementary cellular automata is {table} (left, own and right state, then the new one). Run it for "
        "{times} "
        "on this row, which is closed to a ring:\n{row}\nGive the row at the end.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A rule that keeps an empty row empty, and a row that it changes."""
        width = (6, 8, 12, 16, 20, 26)[level - 1]
        while True:
            row = "".join(rng.choice("01") for _ in range(width - 2))
            facts = {"rule": 2 * rng.randint(1, 126), "row": f"1{row}0", "steps": level}
            found = self.solve(facts).answer
            if "1" in found and found != facts["row"]:
                return facts

    def solve(self, facts: Facts) -> Solution:
        """Row by row."""
        row, rule, rows = facts["row"], facts["rule"], list[str]()
        for _ in range(facts["steps"]):
            row = "".join(str(rule >> int(row[i - 1] + row[i] + row[(i + 1) % len(row)], 2) & 1) for i in range(len(row)))
            rows.append(row)
        return Solution(answer=row, steps="\n".join(rows), effort=len(row) * len(rows))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The rule as a table."""
        table = ", ".join(f"{n:03b}→{facts['rule'] >> n & 1}" for n in range(7, -1, -1))
        return {"rule": str(facts["rule"]), "table": table, "row": facts["row"], "times": _times(facts["steps"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Life(Simulated):
    """Conway's Game of Life on a board with dead cells around it. The level is its size, 4 by 4 to 8 by 8, and 1 to 3 steps.

    >>> Life().solve({"board": ["....", ".###", "....", "...."], "steps": 1}).answer.split()
    ['..#.', '..#.', '..#.', '....']
    """

    name: str = "simulation/life"

    templates: ClassVar[tuple[str, ...]] = (
        "Conway's Game of Life: a living cell (#) with two or three living neighbours among the eight around it stays alive, a "
        "dead "
        "one (.) with exactly three comes alive, all others are dead in the next step. Everything outside the board is dead "
        "and stays "
        "so.\n{board}\nWhat does the board look like after {times}? Write it in the same way, one row to a line.",
        "Here is a board of the Game of Life, # for living and . for dead cells; outside of it nothing lives or comes "
        "alive.\n{board}\n"
        "Cells live on with two or three living neighbours (of eight) and are born with three. Draw the board after {times}, "
        "row by row.",
        "{board}\nEach # is a living cell. In a step a cell with exactly three living neighbours, of the eight around it, "
        "lives in the "
        "next step; one with two stays as it is; any other is dead. Cells outside are always dead. Give the board after "
        "{times} in the "
        "same form.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A board on which a third of the cells live, which is neither empty nor the same in the end."""
        size, steps = (4, 4, 5, 6, 7, 8)[level - 1], (1, 2, 2, 2, 3, 3)[level - 1]
        while True:
            board = ["".join("#" if rng.random() < 0.4 else "." for _ in range(size)) for _ in range(size)]
            found = self.solve({"board": board, "steps": steps}).answer
            if "#" in found and found != "\n".join(board):
                return {"board": board, "steps": steps}

    def solve(self, facts: Facts) -> Solution:
        """Board by board."""
        board, boards = list(facts["board"]), list[str]()
        for _ in range(facts["steps"]):
            board = _next_board(board)
            boards.append("\n".join(board))
        return Solution(answer=boards[-1], steps="\n\n".join(boards[:-1]), effort=len(board) ** 2 * len(boards))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The board, row by row."""
        return {"board": "\n".join(facts["board"]), "times": _times(facts["steps"])}


def _next_board(board: Sequence[str]) -> list[str]:
    """The next board."""
    alive = {(r, c) for r, row in enumerate(board) for c, cell in enumerate(row) if cell == "#"}
    near: dict[tuple[int, int], int] = {}
    for r, c in alive:
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                if dr or dc:
                    near[r + dr, c + dc] = near.get((r + dr, c + dc), 0) + 1
    lives = {place for place, n in near.items() if n == 3 or (n == 2 and place in alive)}
    return ["".join("#" if (r, c) in lives else "." for c in range(len(row))) for r, row in enumerate(board)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ant(Simulated):
    """Where Langton's ant stands after some steps. The level is their number, 3 to 40.

    The board is closed: who leaves it on one side comes back on the other.

    >>> Ant().solve({"size": 5, "row": 2, "column": 2, "heading": 0, "steps": 2, "black": []}).answer
    '3, 3'
    """

    name: str = "simulation/ant"

    templates: ClassVar[tuple[str, ...]] = (
        "Langton's ant stands on a board of {size} rows and {size} columns, at row {row}, column {column} (counted from 0, row "
        "0 is the "
        "northernmost, column 0 the westernmost), and faces {heading}. {black} In each step it turns right on a white cell and "
        "left "
        "on a black one, changes the cell's colour, and moves one cell forward; over an edge it comes back on the opposite "
        "side. At "
        "which row and column is it after {times}? Answer as: row, column.",
        "{black} An ant at row {row}, column {column} of a {size} by {size} board faces {heading}; rows are counted from 0 in "
        "the north, "
        "columns from 0 in the west. Step: on white turn 90 degrees right, on black 90 degrees left; flip the colour of the "
        "cell; go "
        "one cell forward (edges lead to the opposite side). Give row and column after {times} as two numbers with a comma "
        "between.",
        "Follow Langton's ant for {times} on a {size} by {size} board whose opposite edges are joined. It begins at row {row}, "
        "column "
        "{column}, facing {heading} (row 0 is north, column 0 is west). {black} White cells turn it right, black ones left; "
        "then the "
        "cell changes colour and the ant moves forward. Where does it end? Answer with row and column, separated by a comma.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A board with a few black cells."""
        size = 5 + level // 2
        black = sorted(rng.sample([[r, c] for r in range(size) for c in range(size)], rng.randint(0, 4)))
        return {
            "size": size,
            "row": rng.randrange(size),
            "column": rng.randrange(size),
            "heading": rng.randrange(4),
            "black": black,
            "steps": (3, 6, 10, 16, 26, 40)[level - 1] + rng.randint(0, 1),
        }

    def solve(self, facts: Facts) -> Solution:
        """Step by step."""
        black: set[tuple[int, int]] = {(r, c) for r, c in facts["black"]}
        r, c, heading, size = (int(facts[key]) for key in ("row", "column", "heading", "size"))
        steps: list[str] = []
        for _ in range(facts["steps"]):
            heading = (heading + (-1 if (r, c) in black else 1)) % 4
            black ^= {(r, c)}
            r, c = (r + _MOVES[heading][0]) % size, (c + _MOVES[heading][1]) % size
            steps.append(f"{_HEADINGS[heading]} to {r}, {c}")
        return Solution(answer=f"{r}, {c}", gold=[str(r), str(c)], steps="; ".join(steps) + ".", effort=len(steps))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Numbers as text, and which cells are black."""
        places = ", ".join(f"({r}, {c})" for r, c in facts["black"])
        black = f"The cells (row, column) {places} are black, all others white." if places else "All cells are white."
        return {
            "size": str(facts["size"]),
            "row": str(facts["row"]),
            "column": str(facts["column"]),
            "black": black,
            "heading": _HEADINGS[int(facts["heading"])],
            "times": _times(int(facts["steps"])),
        }

    def verifier(self, form: Form) -> Verifier:
        """Row and column, in this order."""
        return ListMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Robot(Simulated):
    """Where a robot ends that follows commands on a grid with obstacles. The level is the number of commands, 3 to 30.

    >>> Robot().solve({"size": 4, "walls": [[0, 2]], "commands": ["F3", "R", "F2"]}).answer
    '2, 1'
    """

    name: str = "simulation/robot"

    templates: ClassVar[tuple[str, ...]] = (
        "A robot stands at (0, 0) on a grid of {size} by {size} cells, x to the east and y to the north, both from 0 to "
        "{last}, and "
        "faces north. {walls} F and a number moves it that many cells forward, but it stops before a blocked cell and at the "
        "edge; "
        "B and a number moves it backward in the same way, without turning; L and R turn it left and right by 90 "
        "degrees.\nCommands: "
        "{commands}\nWhere is it in the end? Answer as: x, y.",
        "Commands for a robot: {commands}. F3 means three cells forward, B3 three cells backward, L and R are turns of 90 "
        "degrees to "
        "the left and right. It begins at x = 0, y = 0, looking north (north is larger y, east is larger x), on a grid from 0 to "
        "{last} in both directions. {walls} It never enters a blocked cell or leaves the grid: it stops where it is for the "
        "rest of "
        "that command. Give its final x and y with a comma between.",
        "On a {size} by {size} grid (x and y from 0 to {last}; x grows eastwards, y northwards) a robot begins at (0, 0) and "
        "looks "
        "north. {walls} It executes {commands}, where F and B with a number go forward or backward that many cells, at most up "
        "to "
        "the edge or the cell before a blocked one, and L and R turn by 90 degrees. Which cell is it in at the end? Give: x, y.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Commands and a few blocked cells."""
        size = 5 + level
        commands: list[str] = []
        while len(commands) < (3, 6, 10, 15, 22, 30)[level - 1]:
            commands.append(f"{rng.choice('FFB')}{rng.randint(1, size - 2)}" if len(commands) % 2 == 0 else rng.choice("LR"))
        cells = [[x, y] for x in range(size) for y in range(size) if x or y]
        return {"size": size, "walls": sorted(rng.sample(cells, level + 1)), "commands": commands}

    def solve(self, facts: Facts) -> Solution:
        """Cell by cell."""
        x = y = heading = effort = 0
        walls, steps = {(a, b) for a, b in facts["walls"]}, list[str]()
        for command in facts["commands"]:
            if command in "LR":
                heading = (heading + (1 if command == "R" else -1)) % 4
                effort += 1
                continue
            sign = 1 if command[0] == "F" else -1
            for _ in range(int(command[1:])):
                a, b = x + sign * _MOVES[heading][1], y - sign * _MOVES[heading][0]
                effort += 1
                if not (0 <= a < facts["size"] and 0 <= b < facts["size"]) or (a, b) in walls:
                    break
                x, y = a, b
            steps.append(f"{command} facing {_HEADINGS[heading]}: ({x}, {y})")
        return Solution(answer=f"{x}, {y}", gold=[str(x), str(y)], steps="; ".join(steps) + ".", effort=effort)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Commands in a row, and what is blocked."""
        walls = f"The cells {', '.join(f'({x}, {y})' for x, y in facts['walls'])} are blocked."
        size = facts["size"]
        return {"size": str(size), "last": str(size - 1), "walls": walls, "commands": " ".join(facts["commands"])}

    def verifier(self, form: Form) -> Verifier:
        """The two numbers, in this order."""
        return ListMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ball(Simulated):
    """Where a ball is that bounces between the walls of a box. The level is the number of steps, 5 to 400, and the box.

    >>> Ball().solve({"width": 3, "height": 4, "x": 2, "y": 1, "dx": 1, "dy": -1, "steps": 3}).answer
    '1, 2'
    """

    name: str = "simulation/ball"

    templates: ClassVar[tuple[str, ...]] = (
        "A ball moves in a box with x from 0 to {width} and y from 0 to {height}. It is at x = {x}, y = {y}; in each step x "
        "changes by "
        "{dx} and y by {dy}. When it would leave the box in one direction, the rest of the way is reflected at the wall and that "
        "change turns its sign. Where is the ball after {times}? Answer as: x, y.",
        "In a box (0 to {width} by 0 to {height}) a ball starts at ({x}, {y}) with velocity ({dx}, {dy}) per step and bounces "
        "off the "
        "walls without loss: what it would go beyond a wall, it goes back. Give its place after {times} as two numbers with a "
        "comma "
        "between, x first.",
        "Walls stand at x = 0, x = {width}, y = 0 and y = {height}. A ball at ({x}, {y}) moves by ({dx}, {dy}) each step and is "
        "reflected at walls like light. What are its coordinates after {times}? Write x, y.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A box, a place in it and a speed smaller than the box."""
        width, height = rng.randint(4, 6 + 2 * level), rng.randint(4, 6 + 2 * level)
        return {
            "width": width,
            "height": height,
            "x": rng.randint(0, width),
            "y": rng.randint(0, height),
            "dx": rng.choice((-1, 1)) * rng.randint(1, min(3, width - 1)),
            "dy": rng.choice((-1, 1)) * rng.randint(1, min(3, height - 1)),
            "steps": (5, 10, 25, 60, 150, 400)[level - 1] + rng.randint(0, 5),
        }

    def solve(self, facts: Facts) -> Solution:
        """Step by step."""
        x, y, dx, dy = facts["x"], facts["y"], facts["dx"], facts["dy"]
        bounces = 0
        for _ in range(facts["steps"]):
            (x, dx), (y, dy) = _bounce(x + dx, dx, facts["width"]), _bounce(y + dy, dy, facts["height"])
            bounces += 1
        periods = f"x repeats every {2 * facts['width']} units of way, y every {2 * facts['height']}"
        return Solution(answer=f"{x}, {y}", gold=[str(x), str(y)], steps=f"{periods}.", effort=bounces)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Numbers as text."""
        return {key: str(value) for key, value in facts.items()} | {"times": _times(facts["steps"])}

    def verifier(self, form: Form) -> Verifier:
        """The two numbers, in this order."""
        return ListMatch(where=form.place)


def _bounce(at: int, speed: int, most: int) -> tuple[int, int]:
    if at < 0:
        return -at, -speed
    return (2 * most - at, -speed) if at > most else (at, speed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turing(Simulated):
    """The tape that a Turing machine leaves. The level is its states and the most steps, 2 and 10 to 5 and 60.

    >>> table = {"A0": [1, "R", "B"], "A1": [1, "L", "H"], "B0": [1, "L", "A"], "B1": [0, "R", "A"]}
    >>> Turing().solve({"tape": "0000", "head": 1, "table": table, "steps": 9}).answer
    '0110'
    """

    name: str = "simulation/turing"

    templates: ClassVar[tuple[str, ...]] = (
        "A Turing machine has the tape {tape} and stands on cell {head} (counted from 0) in state A. The tape is closed to a "
        "ring: the "
        "cell right of the last is the first.\n{table}\nIt stops in state H, or after {steps} steps if it has not come to H. "
        "What is "
        "on the tape then?",
        "Run this machine until it is in state H, but for {steps} steps at most. It begins in state A on cell {head} of the "
        "tape {tape} "
        "(cells are counted from 0; beyond the last cell comes the first, and beyond the first the last).\n{table}\nGive the "
        "tape.",
        "Tape: {tape}\nHead: cell {head}, counting from 0\nState: A\n{table}\nThe ends of the tape are joined. The machine "
        "halts in "
        "state H, and is stopped after {steps} steps in any case. Write down the whole tape as it is then.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A random table with one way to halt, and a random tape, that runs for some steps and changes the tape."""
        states, most = "ABCDE"[: (2, 3, 3, 4, 4, 5)[level - 1]], (6, 12, 20, 30, 45, 70)[level - 1]
        while True:
            table = {f"{s}{d}": [rng.randint(0, 1), rng.choice("LR"), rng.choice(states)] for s in states for d in "01"}
            table[rng.choice(sorted(table))][2] = "H"
            tape = "".join(rng.choice("01") for _ in range(5 + 2 * level))
            facts = {"tape": tape, "head": rng.randrange(len(tape)), "table": table, "steps": most}
            found = self.solve(facts)
            if found.effort > most // 2 and found.answer != tape:
                return facts

    def solve(self, facts: Facts) -> Solution:
        """Step by step."""
        tape, head, state, count = list(facts["tape"]), facts["head"], "A", 0
        steps: list[str] = []
        while state != "H" and count < facts["steps"]:
            write, way, state = facts["table"][state + tape[head]]
            tape[head] = str(write)
            head = (head + (1 if way == "R" else -1)) % len(tape)
            count += 1
            steps.append(f"{''.join(tape)} cell {head} state {state}")
        return Solution(answer="".join(tape), steps="\n".join(steps), effort=count)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The table, one rule to a line."""
        ways = {"L": "left", "R": "right"}
        rules = [
            f"state {key[0]} reading {key[1]}: write {write}, move {ways[way]}, go to state {state}"
            for key, (write, way, state) in sorted(facts["table"].items())
        ]
        return {"tape": facts["tape"], "head": str(facts["head"]), "steps": str(facts["steps"]), "table": "\n".join(rules)}


def _times(n: int) -> str:
    return "one step" if n == 1 else f"{n} steps"
