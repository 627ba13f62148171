"""Small worlds in which a plan is carried out: jugs, towers, pancakes, lamps, sliding tiles, blocks, a warehouse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, cast

from assay.core.errors import DataError, UnknownNameError

__all__ = ["WORLDS", "PlanningDomain", "domain_of", "shortest"]

State = tuple[Any, ...]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class PlanningDomain(ABC):
    """What can be done, by the words for it, and when the goal is reached. States are never changed."""

    __slots__ = ()

    @property
    @abstractmethod
    def start(self) -> State:
        """Where a plan begins."""
        ...

    @abstractmethod
    def moves(self, state: State) -> dict[str, State]:
        """Each legal action and where it leads."""
        ...

    @abstractmethod
    def done(self, state: State) -> bool:
        """Whether this is a goal."""
        ...


def shortest(world: PlanningDomain, most: int = 100_000) -> tuple[list[str] | None, int]:
    """A shortest plan, and how many states were looked at; None where there is no plan among the first ``most`` states.

    >>> shortest(domain_of({"world": "hanoi", "pegs": [[2, 1], [], []], "goal": [[], [], [2, 1]]}))[0]
    ['A B', 'A C', 'B C']
    """
    before: dict[State, tuple[State, str] | None] = {world.start: None}
    queue = deque([world.start])
    while queue and len(before) <= most:
        state = queue.popleft()
        if world.done(state):
            plan: list[str] = []
            step = before[state]
            while step is not None:
                plan.append(step[1])
                step = before[step[0]]
            return plan[::-1], len(before)
        for action, other in world.moves(state).items():
            if other not in before:
                before[other] = (state, action)
                queue.append(other)
    return None, len(before)


class Jugs(PlanningDomain):
    """Jugs without marks. Actions are ``fill A``, ``empty A``, ``pour A B``."""

    __slots__ = ("sizes", "target")

    def __init__(self, gold: Mapping[str, Any]) -> None:
        self.sizes: tuple[int, ...] = tuple(gold["sizes"])
        self.target: int = gold["target"]

    @property
    def start(self) -> State:
        """All empty."""
        return (0,) * len(self.sizes)

    def moves(self, state: State) -> dict[str, State]:
        """What changes the contents."""
        out: dict[str, State] = {}
        for i, held in enumerate(state):
            if held < self.sizes[i]:
                out[f"fill {_LETTERS[i]}"] = (*state[:i], self.sizes[i], *state[i + 1 :])
            if held:
                out[f"empty {_LETTERS[i]}"] = (*state[:i], 0, *state[i + 1 :])
                for j, other in enumerate(state):
                    poured = min(held, self.sizes[j] - other)
                    if i != j and poured:
                        after = list(state)
                        after[i], after[j] = held - poured, other + poured
                        out[f"pour {_LETTERS[i]} {_LETTERS[j]}"] = tuple(after)
        return out

    def done(self, state: State) -> bool:
        """A jug holds the target."""
        return self.target in state


class Hanoi(PlanningDomain):
    """Discs on pegs, a larger one never on a smaller. ``A C`` moves the top disc of A to C."""

    __slots__ = ("goal", "pegs")

    def __init__(self, gold: Mapping[str, Any]) -> None:
        self.pegs, self.goal = _stacks(gold["pegs"]), _stacks(gold["goal"])

    @property
    def start(self) -> State:
        """The pegs, each from the bottom."""
        return self.pegs

    def moves(self, state: State) -> dict[str, State]:
        """Top discs to pegs where they may lie."""
        out: dict[str, State] = {}
        for i, source in enumerate(state):
            for j, target in enumerate(state):
                if i != j and source and (not target or target[-1] > source[-1]):
                    after = list(state)
                    after[i], after[j] = source[:-1], (*target, source[-1])
                    out[f"{_LETTERS[i]} {_LETTERS[j]}"] = tuple(after)
        return out

    def done(self, state: State) -> bool:
        """As the goal shows."""
        return state == self.goal


class Pancakes(PlanningDomain):
    """A stack that is sorted by turning over its top. The action ``3`` turns over the upper three."""

    __slots__ = ("stack",)

    def __init__(self, gold: Mapping[str, Any]) -> None:
        self.stack: State = tuple(gold["stack"])

    @property
    def start(self) -> State:
        """From the top."""
        return self.stack

    def moves(self, state: State) -> dict[str, State]:
        """Two or more are turned."""
        return {str(k): (*state[k - 1 :: -1], *state[k:]) for k in range(2, len(state) + 1)}

    def done(self, state: State) -> bool:
        """The smallest on top."""
        return all(a <= b for a, b in pairwise(state))


class Lights(PlanningDomain):
    """Lamps in a grid. The action ``r1c2`` switches a lamp and those beside it; all shall be off."""

    __slots__ = ("near", "rows", "width")

    def __init__(self, gold: Mapping[str, Any]) -> None:
        rows: list[str] = list(gold["rows"])
        self.width = len(rows[0])
        self.rows: State = tuple(int(c == "1") for row in rows for c in row)
        size, width = len(self.rows), self.width
        self.near = {
            f"r{c // width + 1}c{c % width + 1}": frozenset(
                k
                for k in (c, c - width, c + width, c - 1 if c % width else -1, c + 1 if c % width < width - 1 else -1)
                if 0 <= k < size
            )
            for c in range(size)
        }

    @property
    def start(self) -> State:
        """1 where a lamp is on."""
        return self.rows

    def moves(self, state: State) -> dict[str, State]:
        """Any lamp may be pressed."""
        return {name: tuple(v ^ (i in near) for i, v in enumerate(state)) for name, near in self.near.items()}

    def done(self, state: State) -> bool:
        """All off."""
        return not any(state)


class Slide(PlanningDomain):
    """Tiles in a frame with one gap. The action ``5`` moves tile 5 into the gap; in the end they stand in order, the gap last."""

    __slots__ = ("tiles", "width")

    def __init__(self, gold: Mapping[str, Any]) -> None:
        rows: list[list[int]] = list(gold["rows"])
        self.width = len(rows[0])
        self.tiles: State = tuple(tile for row in rows for tile in row)

    @property
    def start(self) -> State:
        """Row by row, 0 for the gap."""
        return self.tiles

    def moves(self, state: State) -> dict[str, State]:
        """Tiles beside the gap."""
        gap, width, out = state.index(0), self.width, dict[str, State]()
        for other in (gap - width, gap + width, gap - 1 if gap % width else -1, gap + 1 if gap % width < width - 1 else -1):
            if 0 <= other < len(state):
                after = list(state)
                after[gap], after[other] = after[other], 0
                out[str(state[other])] = tuple(after)
        return out

    def done(self, state: State) -> bool:
        """In order."""
        return state == (*range(1, len(state)), 0)


class Blocks(PlanningDomain):
    """Blocks in stacks on a table. ``A to B`` puts A, which must be free, on the free block B; ``A to table`` on the table."""

    __slots__ = ("goal", "stacks")

    def __init__(self, gold: Mapping[str, Any]) -> None:
        self.stacks, self.goal = _sort_stacks(_stacks(gold["stacks"])), _sort_stacks(_stacks(gold["goal"]))

    @property
    def start(self) -> State:
        """The stacks, each from the bottom."""
        return self.stacks

    def moves(self, state: State) -> dict[str, State]:
        """Free blocks onto others or the table."""
        out: dict[str, State] = {}
        for i, source in enumerate(state):
            rest = [stack for k, stack in enumerate(state) if k != i]
            left = [source[:-1]] if len(source) > 1 else []
            for j, target in enumerate(rest):
                after = [*rest[:j], (*target, source[-1]), *rest[j + 1 :], *left]
                out[f"{source[-1]} to {target[-1]}"] = _sort_stacks(tuple(after))
            if left:
                out[f"{source[-1]} to table"] = _sort_stacks((*rest, *left, (source[-1],)))
        return out

    def done(self, state: State) -> bool:
        """The stacks of the goal."""
        return state == self.goal


class Warehouse(PlanningDomain):
    """A man pushes boxes: ``U``, ``D``, ``L``, ``R``. ``#`` wall, ``@`` man, ``$`` box, ``o`` goal, ``.`` floor."""

    __slots__ = ("boxes", "floor", "goals", "man")

    _STEPS: ClassVar[dict[str, tuple[int, int]]] = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}

    def __init__(self, gold: Mapping[str, Any]) -> None:
        cells = {(r, c): sign for r, row in enumerate(gold["rows"]) for c, sign in enumerate(row)}
        self.floor = frozenset(cell for cell, sign in cells.items() if sign != "#")
        self.boxes = tuple(sorted(cell for cell, sign in cells.items() if sign == "$"))
        self.goals = tuple(sorted(cell for cell, sign in cells.items() if sign == "o"))
        men = [cell for cell, sign in cells.items() if sign == "@"]
        if len(men) != 1 or len(self.boxes) != len(self.goals) or not self.boxes:
            raise DataError(f"a warehouse needs one man @ and as many boxes $ as goals o, got {gold['rows']}")
        self.man = men[0]

    @property
    def start(self) -> State:
        """The man and the boxes."""
        return (self.man, *self.boxes)

    def moves(self, state: State) -> dict[str, State]:
        """Steps onto floor, and pushes of one box onto floor."""
        (row, column), boxes = state[0], state[1:]
        out: dict[str, State] = {}
        for word, (down, right) in self._STEPS.items():
            here, beyond = (row + down, column + right), (row + 2 * down, column + 2 * right)
            if here not in self.floor:
                continue
            if here not in boxes:
                out[word] = (here, *boxes)
            elif beyond in self.floor and beyond not in boxes:
                out[word] = (here, *sorted(beyond if box == here else box for box in boxes))
        return out

    def done(self, state: State) -> bool:
        """A box on every goal."""
        return state[1:] == self.goals


WORLDS: dict[str, type[Any]] = {
    "jugs": Jugs,
    "hanoi": Hanoi,
    "pancakes": Pancakes,
    "lights": Lights,
    "slide": Slide,
    "blocks": Blocks,
    "warehouse": Warehouse,
}
"""Name to world, each made from its gold."""


def domain_of(gold: Any) -> PlanningDomain:
    """The world that a gold describes.

    Raises:
        DataError: it describes none; says what is missing.
    """
    table = cast("dict[str, Any]", gold) if isinstance(gold, dict) else {}
    if table.get("world") not in WORLDS:
        raise DataError(f"the gold {gold!r} has no world: {UnknownNameError('world', table.get('world'), WORLDS)}")
    try:
        return WORLDS[table["world"]](table)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise DataError(f"the gold {gold!r} does not describe the world {table['world']!r}: {why}") from None


def _stacks(stacks: Any) -> State:
    return tuple(tuple(stack) for stack in stacks)


def _sort_stacks(stacks: State) -> State:
    return tuple(sorted(stack for stack in stacks if stack))
