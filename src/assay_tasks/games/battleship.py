"""Battleship for one player: find all ships with a bound on shots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts
from assay.tasks.turns import list_names
from assay_tasks.games.play import Game, Match

__all__ = ["Battleship"]

_SHOT = re.compile("([a-z])([1-9])")
_FLEETS = ((4, (3, 2)), (5, (3, 2)), (5, (3, 2, 2)), (6, (4, 3, 2)), (6, (3, 2, 2)), (7, (4, 3, 2, 2)))
"""Side of the board and lengths of the ships of each level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Battleship(Game):
    """Sink all ships on a small board. Levels go from two ships on 4 x 4 cells to four on 7 x 7.

    Ships are straight and do not overlap; they may touch. A shot is answered with a miss, a hit, or a ship sunk. Shots at two
    thirds of the cells are allowed (rounded up), with which a player who shoots at random loses mostly. The lowest level has
    only 264 boards.

    >>> facts = {"side": 3, "ships": [[[0, 0], [1, 0]]], "turns": 6}
    >>> Battleship().solve(facts).answer.split()
    ['b2', 'a1', 'b1']
    """

    name: str = "games/battleship"
    levels: tuple[int, ...] = tuple(range(1, 7))
    move: ClassVar[str] = "shot"

    templates: ClassVar[tuple[str, ...]] = (
        "On a board of {side} by {side} cells, with columns {columns} and rows 1 to {side}, {fleet} hidden. Each ship lies in a "
        "straight line, across or down, and no two overlap. Shoot at a cell by its name, such as b3; I answer whether it is a "
        "miss, a hit, or sinks a ship. Sink everything with at most {turns} shots.",
        "Battleship for one. The sea has columns {columns} and rows 1 to {side}. Somewhere {fleet} placed, across or down, "
        "without overlapping (they may touch). Name one cell per turn, like b3, and hear 'miss', 'hit' or what you have sunk. "
        "You have {turns} shots to sink the whole fleet.",
        "Find and sink the enemy: {fleet} hidden in a grid with columns {columns} and rows 1 to {side}. Ships are straight lines "
        "of cells, horizontal or vertical, that do not overlap. A shot is a column and a row, for instance b3. You may fire "
        "{turns} times in all.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Ships put down one after another wherever there is room."""
        side, lengths = _FLEETS[level - 1]
        taken, ships = set[tuple[int, int]](), list[list[list[int]]]()
        while len(ships) < len(lengths):
            length, down = lengths[len(ships)], rng.randrange(2)
            along, across = rng.randrange(side - length + 1), rng.randrange(side)
            cells = [(across, along + i) if down else (along + i, across) for i in range(length)]
            if taken.isdisjoint(cells):
                taken.update(cells)
                ships.append([list(cell) for cell in cells])
        return {"side": side, "ships": ships, "turns": -(-2 * side * side // 3)}

    def fair(self, facts: Facts) -> bool:
        """Whether the oracle sinks all in time."""
        return self.play_oracle(facts)[0].won

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Board and fleet in words."""
        side, lengths = facts["side"], [len(ship) for ship in facts["ships"]]
        fleet = list_names([f"a ship of {n} cells" for n in lengths])
        return {
            "side": str(side),
            "columns": f"a to {chr(96 + side)}",
            "fleet": f"{fleet} {'is' if len(lengths) == 1 else 'are'}",
            "turns": str(facts["turns"]),
        }

    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        return _Sea(facts)


class _Sea(Match):
    def __init__(self, facts: Facts) -> None:
        super().__init__(facts["turns"])
        self._side: int = facts["side"]
        self._ships = [{(x, y) for x, y in ship} for ship in facts["ships"]]
        self._afloat = [len(ship) for ship in self._ships]
        self._left = [set(ship) for ship in self._ships]
        self._shot = set[tuple[int, int]]()
        self._open = set[tuple[int, int]]()  # hits on ships that are not sunk
        self._cells = sum(self._afloat)

    def answer(self, action: str) -> str:
        found = _SHOT.fullmatch(action)
        cell = (ord(found[1]) - 97, int(found[2]) - 1) if found else (-1, -1)
        if not (0 <= cell[0] < self._side and 0 <= cell[1] < self._side):
            return f"Name a cell from a1 to {chr(96 + self._side)}{self._side}."
        if cell in self._shot:
            return f"You have shot at {action} before."
        self._shot.add(cell)
        for ship, left in zip(self._ships, self._left, strict=True):
            if cell in left:
                left.remove(cell)
                self._open.add(cell)
                return self._hit(action, ship, left)
        return f"{action}: miss"

    def advise(self) -> str:
        """The cell that most placements of the ships afloat cover; those through open hits count a hundredfold for each."""
        weight: dict[tuple[int, int], int] = {}
        blocked = self._shot - self._open
        for length in self._afloat:
            for cells in _placements(self._side, length):
                self.effort += 1
                if blocked.isdisjoint(cells):
                    worth = 100 ** len(self._open.intersection(cells))
                    for cell in cells:
                        weight[cell] = weight.get(cell, 0) + worth
        x, y = max((cell for cell in weight if cell not in self._shot), key=lambda c: (weight[c], -c[1], -c[0]))
        return f"{chr(97 + x)}{y + 1}"

    def _hit(self, action: str, ship: set[tuple[int, int]], left: set[tuple[int, int]]) -> str:
        self.progress = 1 - sum(map(len, self._left)) / self._cells
        if left:
            return f"{action}: hit"
        self._open -= ship
        self._afloat.remove(len(ship))
        if not self._afloat:
            self.win()
        return f"{action}: hit, and the ship of {len(ship)} cells is sunk"


_PLACES: dict[tuple[int, int], list[frozenset[tuple[int, int]]]] = {}


def _placements(side: int, length: int) -> list[frozenset[tuple[int, int]]]:
    """All places of a ship on an empty board."""
    if (side, length) not in _PLACES:
        lines = [(along, across) for along in range(side - length + 1) for across in range(side)]
        _PLACES[side, length] = [
            frozenset((across, along + i) if down else (along + i, across) for i in range(length))
            for along, across in lines
            for down in (True, False)
        ]
    return _PLACES[side, length]
