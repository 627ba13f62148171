"""Puzzles whose answer is a plan: any sequence of legal actions that reaches the goal in so many steps is right."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from assay.core.canon import canonical
from assay.core.errors import DataError
from assay.core.protocols import Verifier
from assay.tasks.draws import checked_levels
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.structure.plan import PlanVerifier
from assay.verify.structure.planning_domains import domain_of, shortest
from assay_tasks.puzzles.puzzle import bullets, list_words

__all__ = ["Blocks", "Hanoi", "Jugs", "Lights", "Pancakes", "PlanPuzzle", "Slide", "Warehouse"]

_NAMES = "ABCDEFGHJK"

TRIES = 500
"""Draws before a level counts as impossible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPuzzle(Problem):
    """Base of planning puzzles. Facts are a gold of the verifier `assay.verify.PlanVerifier` with ``most``, the actions allowed:
    two more
    than a shortest plan has.
    """

    domain: str = "planning"
    shapes: ClassVar[tuple[Any, ...]] = ()

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        checked_levels(self.name, self.levels, 1, len(self.shapes))

    @abstractmethod
    def make(self, shape: Sequence[Any], rng: Random) -> dict[str, Any] | None:
        """A world at random; None where a try failed."""
        ...

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A world of the level whose shortest plan has as many actions as its shape says."""
        shape = self.shapes[level - 1]
        low, high = shape[-1]
        for _ in range(TRIES):
            facts = self.make(shape, rng)
            plan = _shortest_plan(canonical(facts))[0] if facts is not None else None
            if facts is not None and plan is not None and low <= len(plan) <= high:
                return {**facts, "most": len(plan) + 2}
        raise DataError(f"{self.name}: {TRIES} draws of level {level} gave no plan of {low} to {high} actions")

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """The same world with other labels, or mirrored; None where there is no such thing."""
        return None

    def redraw(self, facts: Facts, level: int, rng: Random) -> dict[str, Any]:
        """Mostly the same world varied, which is cheap."""
        other = self.vary(facts, rng) if rng.random() < 0.8 else None
        return self.draw(level, rng) if other is None else {**facts, **other}

    def solve(self, facts: Facts) -> Solution:
        """A shortest plan, by breadth-first search.

        Raises:
            DataError: there is no plan.
        """
        plan, effort = _shortest_plan(canonical({k: v for k, v in facts.items() if k not in ("problem", "most")}))
        if plan is None:
            raise DataError(f"{self.name}: these facts have no plan: {dict(facts)}")
        gold = {key: value for key, value in facts.items() if key != "problem"}
        return Solution(answer=", ".join(plan), gold=gold, effort=effort)

    def verifier(self, form: Form) -> Verifier:
        """The plan is carried out."""
        return PlanVerifier(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jugs(PlanPuzzle):
    """Measure an amount with jugs without marks. The level counts jugs and actions.

    >>> Jugs().solve({"world": "jugs", "sizes": [3, 5], "target": 2, "most": 4}).answer
    'fill B, pour B A'
    """

    name: str = "plans/jugs"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((2, 20, (2, 4)), (2, 25, (4, 6)), (2, 25, (6, 8)), (3, 20, (3, 5)), (3, 30, (6, 9)))
    templates: ClassVar[tuple[str, ...]] = (
        "There are {n} empty jugs without marks: {jugs}. Water is unlimited. The actions are 'fill A' (to the brim), 'empty "
        "A' and 'pour A B' (from A into B until A is empty or B is full), with the jugs' letters. Get exactly {target} "
        "into one of the jugs with at most {most} actions. List the actions, separated by commas.",
        "Jugs: {jugs}, all empty at first, and a tap. How can one measure exactly {target} in one jug? Allowed are "
        "fill X, empty X, and pour X Y, which pours from X to Y as much as X holds or Y takes. Use no more than {most} steps "
        "and separate them by commas, as in: fill A, pour A B",
        "You have {n} unmarked jugs ({jugs}) and as much water as you like. Find at most {most} steps after which some jug "
        "holds {target}. A step is written fill A, empty A or pour A B (the second jug receives until it is full or "
        "the first is empty). Write the steps with commas between.",
    )

    def make(self, shape: Sequence[Any], rng: Random) -> dict[str, Any] | None:
        """Sizes and an amount."""
        count, most, _ = shape
        sizes = rng.sample(range(3, most + 1), count)
        return {"world": "jugs", "sizes": sizes, "target": rng.randint(1, max(sizes))}

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Jugs in another order."""
        return {"sizes": rng.sample(facts["sizes"], len(facts["sizes"]))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The jugs."""
        jugs = list_words([f"{letter} holds {size} litres" for letter, size in zip("ABCDE", facts["sizes"], strict=False)])
        target = f"{facts['target']} litre{'s' * (facts['target'] != 1)}"
        return {"jugs": jugs, "n": str(len(facts["sizes"])), "target": target, "most": str(facts["most"])}


def _pegs(pegs: Sequence[Sequence[int]]) -> str:
    return bullets(f"peg {letter}: {', '.join(map(str, peg)) or 'empty'}" for letter, peg in zip("ABC", pegs, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hanoi(PlanPuzzle):
    """Discs are moved from one arrangement on three pegs to another. The level counts discs and moves.

    >>> Hanoi().solve({"world": "hanoi", "pegs": [[2, 1], [], []], "goal": [[], [], [2, 1]], "most": 5}).answer
    'A B, A C, B C'
    """

    name: str = "plans/hanoi"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((3, (1, 3)), (3, (4, 7)), (4, (6, 9)), (4, (10, 15)), (5, (14, 31)))
    templates: ClassVar[tuple[str, ...]] = (
        "Discs of the sizes 1 to {n} lie on three pegs, listed from bottom to top:\n{pegs}\n\nIn one move the top disc of a "
        "peg is put on another peg, but never on a smaller disc. Reach this arrangement with at most {most} moves:\n"
        "{goal}\n\nWrite a move from peg A to peg C as A C, and separate moves by commas.",
        "Tower of Hanoi with {n} discs (1 is the smallest). Start, each peg from the bottom up:\n{pegs}\n\nGoal:\n{goal}\n\n"
        "Move one top disc at a time; a disc may lie only on a larger one or on an empty peg. Give at most {most} moves, "
        "like A B, C B (from the first peg to the second).",
        "Three pegs hold {n} discs, here from the lowest to the highest:\n{pegs}\n\nRearrange them into\n{goal}\n\nby moving "
        "single discs from the top of one peg to the top of another one, never a larger one onto a smaller one, in no more "
        "than {most} moves. List the moves as pairs of pegs with commas between, for example A C, B C.",
    )

    def make(self, shape: Sequence[Any], rng: Random) -> dict[str, Any] | None:
        """Two arrangements."""
        count = shape[0]
        both: list[list[list[int]]] = []
        for _ in range(2):
            pegs: list[list[int]] = [[], [], []]
            for disc in range(count, 0, -1):
                rng.choice(pegs).append(disc)
            both.append(pegs)
        return {"world": "hanoi", "pegs": both[0], "goal": both[1]}

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Pegs in another order."""
        order = rng.sample(range(3), 3)
        return {key: [facts[key][i] for i in order] for key in ("pegs", "goal")}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Both arrangements."""
        n = sum(map(len, facts["pegs"]))
        return {"pegs": _pegs(facts["pegs"]), "goal": _pegs(facts["goal"]), "n": str(n), "most": str(facts["most"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pancakes(PlanPuzzle):
    """A stack is sorted by turning over its top. The level counts pancakes and turns.

    The lowest level has only some hundred questions.

    >>> Pancakes().solve({"world": "pancakes", "stack": [3, 1, 2], "most": 4}).answer
    '3, 2'
    """

    name: str = "plans/pancakes"
    levels: tuple[int, ...] = (1, 2, 3, 4)
    shapes: ClassVar[tuple[Any, ...]] = ((5, (1, 2)), (5, (3, 4)), (6, (4, 5)), (6, (5, 7)))
    templates: ClassVar[tuple[str, ...]] = (
        "A stack of pancakes has these sizes from top to bottom: {stack}. A turn of k puts the top k pancakes upside down, "
        "as one pile. Sort the stack so that the smallest is on top and the largest at the bottom, with at most {most} "
        "turns. Give the numbers k in order, separated by commas.",
        "Sort the list {stack} in ascending order. The only operation reverses the first k elements, for a k that you choose "
        "each time. Use no more than {most} operations and write down the numbers k, with commas between.",
        "Pancakes lie in the order {stack}, read from the top. With a spatula one can flip the upper k of them at once. Find "
        "at most {most} flips after which the sizes grow from top to bottom. Answer with the k of each flip, in order, as "
        "in: 4, 2",
    )

    def make(self, shape: Sequence[Any], rng: Random) -> dict[str, Any] | None:
        """An order."""
        first = rng.randint(1, 40)
        sizes = sorted(rng.sample(range(first, first + 3 * shape[0]), shape[0]))
        return {"world": "pancakes", "stack": rng.sample(sizes, shape[0])}

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """All sizes larger or smaller."""
        shift = rng.randint(1, 40) - min(facts["stack"])
        return {"stack": [size + shift for size in facts["stack"]]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The stack."""
        return {"stack": ", ".join(map(str, facts["stack"])), "most": str(facts["most"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lights(PlanPuzzle):
    """Lamps that switch their neighbours too are all put out. The level counts presses and lamps.

    The two lowest levels have only some dozens of questions.

    >>> Lights().solve({"world": "lights", "rows": ["010", "111", "010"], "most": 3}).answer
    'r2c2'
    """

    name: str = "plans/lights"
    levels: tuple[int, ...] = (1, 2, 3, 4)
    shapes: ClassVar[tuple[Any, ...]] = ((3, 3, (1, 2)), (3, 3, (3, 4)), (3, 3, (5, 6)), (3, 4, (3, 4)))
    templates: ClassVar[tuple[str, ...]] = (
        "Lamps in a grid are on (1) or off (0):\n\n{grid}\n\nPressing a lamp switches it and the lamps directly above, "
        "below, left and right of it. Put all lamps out with at most {most} presses. Name the lamps to press, where r2c3 is "
        "row 2, column 3, separated by commas.",
        "{grid}\n\nThe digits are lamps, 1 for lit and 0 for dark. A press on one of them toggles it together with its "
        "neighbours that share an edge. Which lamps must be pressed so that all are dark? Use no more than {most} presses; "
        "write them like r1c1, r2c3 (row, column).",
        "Lights out: all lamps of this grid shall be off (0).\n\n{grid}\n\nEach press changes a lamp and its up to four "
        "direct neighbours. Give at most {most} presses as names of cells with commas between, r1c2 for row 1 and column 2.",
    )

    def make(self, shape: Sequence[Any], rng: Random) -> dict[str, Any] | None:
        """Presses on a dark grid."""
        height, width, (low, high) = shape
        rows = ["0" * width] * height
        world = domain_of({"world": "lights", "rows": rows})
        state = world.start
        for name in rng.sample(sorted(world.moves(state)), rng.randint(low, high)):
            state = world.moves(state)[name]
        text = "".join(map(str, state))
        return {"world": "lights", "rows": [text[i : i + width] for i in range(0, len(text), width)]}

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Mirrored."""
        return {"rows": mirror_rows(facts["rows"], rng)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid."""
        return {"grid": "\n".join(" ".join(row) for row in facts["rows"]), "most": str(facts["most"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slide(PlanPuzzle):
    """Tiles in a frame with one gap are slid into order. The level counts moves and tiles.

    The lowest level has only some dozens of questions.

    >>> Slide().solve({"world": "slide", "rows": [[1, 2], [0, 3]], "most": 3}).answer
    '3'
    """

    name: str = "plans/slide"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((2, 3, (2, 7)), (3, 3, (5, 6)), (3, 3, (7, 8)), (3, 3, (9, 10)), (3, 3, (10, 12)))
    templates: ClassVar[tuple[str, ...]] = (
        "In this sliding puzzle 0 is the gap:\n\n{grid}\n\nA move slides a tile that is directly beside, above or below the "
        "gap into it. Bring the tiles in ascending order, row by row from the top left, with the gap at the bottom right, in "
        "at most {most} moves. Give the numbers of the tiles in the order in which they are moved, separated by commas.",
        "{grid}\n\nThe numbers above are tiles in a frame with one free place, 0. Tiles next to the free place (sharing an "
        "edge) may slide into it. Sort them: 1, 2, 3, ... from left to right and top to bottom, the free place last. Use no "
        "more than {most} moves; name the tile moved each time, with commas between.",
        "Solve this sliding tile puzzle (0 marks the empty square) within {most} moves.\n\n{grid}\n\nAt the end the tiles "
        "read 1, 2, 3 and so on in rows, and the empty square is in the last place. Write each move as the number of the "
        "tile that slides into the empty square, as in: 5, 2, 1",
    )

    def make(self, shape: Sequence[Any], rng: Random) -> dict[str, Any] | None:
        """A walk of the gap from the end."""
        height, width, (_, high) = shape
        tiles = [*range(1, height * width), 0]
        world = domain_of({"world": "slide", "rows": [tiles[i : i + width] for i in range(0, len(tiles), width)]})
        state, before = world.start, None
        for _ in range(high):
            choices = [other for other in world.moves(state).values() if other != before]
            before, state = state, rng.choice(choices)
        return {"world": "slide", "rows": [list(state[i : i + width]) for i in range(0, len(state), width)]}

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Rows and columns exchanged, in a square, and the tiles numbered by their new places."""
        rows: list[list[int]] = facts["rows"]
        n = len(rows)
        if n != len(rows[0]):
            return None
        number = {0: 0, **{r * n + c + 1: c * n + r + 1 for r in range(n) for c in range(n)}}
        return {"rows": [[number[rows[c][r]] for c in range(n)] for r in range(n)]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The frame."""
        return {"grid": "\n".join(" ".join(map(str, row)) for row in facts["rows"]), "most": str(facts["most"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks(PlanPuzzle):
    """Stacks of blocks are rebuilt. The level counts blocks and moves.

    >>> Blocks().solve({"world": "blocks", "stacks": [["A", "B"], ["C"]], "goal": [["A"], ["B", "C"]], "most": 4}).answer
    'B to table, C to B'
    """

    name: str = "plans/blocks"
    levels: tuple[int, ...] = (1, 2, 3, 4)
    shapes: ClassVar[tuple[Any, ...]] = ((4, (1, 2)), (4, (3, 4)), (5, (3, 5)), (5, (5, 8)))
    templates: ClassVar[tuple[str, ...]] = (
        "Blocks stand on a table in these stacks, from bottom to top:\n{stacks}\n\nBuild these stacks instead:\n{goal}\n\nA "
        "move takes a block with nothing on it and puts it onto another free block or onto the table. Use at most {most} "
        "moves, written like A to B, C to table, with commas between. The places of the stacks on the table do not matter.",
        "Start (each stack from the bottom up):\n{stacks}\n\nGoal:\n{goal}\n\nOne block at a time may be moved, only if no "
        "block lies on it, onto a block that is the top of a stack, or onto the table. Find a plan of at most {most} moves. "
        "Write each move as 'X to Y' or 'X to table', separated by commas.",
        "A robot arm lifts single blocks that are on top of a stack and sets them down on the table or on top of another "
        "stack. Lists are read from bottom to top. Now:\n{stacks}\n\nWanted, in any position on the table:\n{goal}\n\nHow is "
        "that done in no more than {most} moves? Answer in the form B to table, A to C and so on, with commas between the "
        "moves.",
    )

    def make(self, shape: Sequence[Any], rng: Random) -> dict[str, Any] | None:
        """Two ways to stack."""
        both: list[list[list[str]]] = []
        names = rng.sample(_NAMES, shape[0])
        for _ in range(2):
            stacks: list[list[str]] = []
            for name in rng.sample(names, len(names)):
                if stacks and rng.random() < 0.6:
                    rng.choice(stacks).append(name)
                else:
                    stacks.append([name])
            both.append(sorted(stacks))
        return {"world": "blocks", "stacks": both[0], "goal": both[1]}

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Blocks renamed."""
        names = sorted(name for stack in facts["stacks"] for name in stack)
        other = dict(zip(names, rng.sample(_NAMES, len(names)), strict=True))
        return {key: sorted([other[name] for name in stack] for stack in facts[key]) for key in ("stacks", "goal")}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Both ways."""
        stacks, goal = (bullets(", ".join(stack) for stack in facts[key]) for key in ("stacks", "goal"))
        return {"stacks": stacks, "goal": goal, "most": str(facts["most"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Warehouse(PlanPuzzle):
    """A man pushes a box to its place. The level counts size, boxes and steps.

    >>> Warehouse().solve({"world": "warehouse", "rows": ["@$.o"], "most": 4}).answer
    'R, R'
    """

    name: str = "plans/warehouse"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = (
        (3, 4, 1, 1, (2, 4)),
        (4, 4, 3, 1, (5, 7)),
        (5, 5, 5, 1, (8, 11)),
        (6, 6, 8, 1, (12, 18)),
        (4, 5, 3, 2, (10, 20)),
    )
    templates: ClassVar[tuple[str, ...]] = (
        "In this warehouse # is a wall, . is floor, @ is you, $ is a box and o is where a box belongs:\n\n{grid}\n\nYou step "
        "up (U), down (D), left (L) or right (R). Stepping against a box pushes it one cell further, if there is free floor "
        "behind it. Nothing leaves the grid. Bring a box onto every o with at most {most} steps, and write the steps as "
        "letters separated by commas.",
        "{grid}\n\nLegend: @ worker, $ box, o target, # wall, . free. The worker moves one cell at a time: U, D, L or R. He "
        "may push one box ahead of him into a free cell but never pull, nor push two boxes. Find a sequence of at most "
        "{most} moves after which every target holds a box. Separate the moves by commas.",
        "Solve this small sokoban (walls #, player @, boxes $, goals o, floor .), with no step outside of the grid:\n\n"
        "{grid}\n\nGive at most {most} moves out of U (up), D (down), L (left) and R (right), with commas between; pushing a "
        "box is moving against it.",
    )

    def make(self, shape: Sequence[Any], rng: Random) -> dict[str, Any] | None:
        """Walls, man, boxes and goals at random."""
        height, width, walls, boxes, _ = shape
        spots = rng.sample(range(height * width), walls + 2 * boxes + 1)
        signs = "#" * walls + "$" * boxes + "o" * boxes + "@"
        cells = dict(zip(spots, signs, strict=True))
        rows = ["".join(cells.get(r * width + c, ".") for c in range(width)) for r in range(height)]
        return {"world": "warehouse", "rows": rows}

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Mirrored."""
        return {"rows": mirror_rows(facts["rows"], rng)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The plan of the warehouse."""
        return {"grid": "\n".join(facts["rows"]), "most": str(facts["most"])}


@lru_cache(maxsize=64)
def _shortest_plan(facts: bytes) -> tuple[list[str] | None, int]:
    """A shortest plan; kept for a moment, since a task that was just drawn is solved next."""
    return shortest(domain_of(json.loads(facts)))


def mirror_rows(rows: Sequence[str], rng: Random) -> list[str]:
    """Rows of text, upside down or back to front."""
    rows = rows[::-1] if rng.random() < 0.5 else rows
    return [row[::-1] for row in rows] if rng.random() < 0.5 else list(rows)
