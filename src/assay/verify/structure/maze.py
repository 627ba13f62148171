"""Ways through a maze, walked step by step."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score

__all__ = ["MazePath"]

_Cell = tuple[int, int]
_MOVES: dict[str, _Cell] = {
    "u": (-1, 0),
    "up": (-1, 0),
    "n": (-1, 0),
    "north": (-1, 0),
    "↑": (-1, 0),
    "d": (1, 0),
    "down": (1, 0),
    "s": (1, 0),
    "south": (1, 0),
    "↓": (1, 0),
    "l": (0, -1),
    "left": (0, -1),
    "w": (0, -1),
    "west": (0, -1),
    "←": (0, -1),
    "r": (0, 1),
    "right": (0, 1),
    "e": (0, 1),
    "east": (0, 1),
    "→": (0, 1),
}
_STEP = re.compile(r"[a-z]+|[↑↓←→]")
_ELSE = re.compile(r"[^\s,;.\[\]()\"'`>-]")
_NUMBER = re.compile(r"^[ \t]*(?:[0-9]{1,6}[.)]|[*•-])[ \t]", re.MULTILINE)
_CELL = re.compile(r"[(\[]\s{0,9}([0-9]{1,6})\s{0,9},\s{0,9}([0-9]{1,6})\s{0,9}[)\]]")


@dataclass(frozen=True, slots=True)
class MazePath(AnswerVerifier):
    """``valid`` is 1 when the moves lead from start to goal without a wall; ``correct``, when they are also as few as the
    gold's ``value``.

    The gold is ``{"maze": ["S.#", "..G"]}``: rows of one length, as a list or as text with line ends, where ``S`` is the
    start, ``G`` the goal and ``#`` a wall; ``"start"``, ``"goal"`` and ``"wall"`` name other characters. Without ``value``
    every way is right. An answer is moves, ``RRD``, ``right, right, down``, ``→→↓``, ``E E S``, one to a numbered line, or the
    cells on the way with the start, ``(0, 0), (0, 1), ...``, row first, from 0. Moves behind the goal are walked too: the last
    cell counts.

    Attributes:
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the gold is no maze with one start and one goal.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gold = {"maze": ["S.#", "#.G"], "value": 3}
    >>> [MazePath()(*task_and_rollout(gold, said)).info["verdict"] for said in ("RDR", "right, left, right, down, right",
    ...     "DRR", "over it")]
    ['equal', 'suboptimal', 'invalid', 'unparsed']
    """

    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "MazePath.where")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "valid")

    def rule(self, gold: Any, text: str) -> Score:
        """Walk."""
        rows, wall, start, goal = _maze(gold)
        value: Any = gold.get("value")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise DataError(f"the gold's 'value' is {value!r}; give the number of moves, or leave it out")
        place = answer_in(text, self.where)
        way = None if not place else _way(place, start)
        if way is None:
            return self.nothing("unparsed")
        here, steps = start, 0
        for cell in way:
            near = abs(cell[0] - here[0]) + abs(cell[1] - here[1]) == 1
            inside = 0 <= cell[0] < len(rows) and 0 <= cell[1] < len(rows[0])
            if not near or not inside or rows[cell[0]][cell[1]] == wall:
                return self.nothing("invalid", why=f"move {steps + 1} leads to {cell}")
            here, steps = cell, steps + 1
        if here != goal:
            return self.nothing("invalid", why=f"it ends at {here}")
        right = value is None or steps <= value
        return verdict_score("equal" if right else "suboptimal", {"correct": float(right), "valid": 1.0}, steps=steps)


def _maze(gold: Any) -> tuple[list[str], str, _Cell, _Cell]:
    table = cast("dict[str, Any]", gold) if isinstance(gold, dict) else {}
    given: Any = table.get("maze")
    rows: list[Any] = given.split("\n") if isinstance(given, str) else cast("list[Any]", given) if isinstance(given, list) else []
    if not rows or not all(isinstance(row, str) and len(row) == len(rows[0]) for row in rows):
        raise DataError(f"the gold {gold!r} has no 'maze': rows of text, all of one length")
    places: list[_Cell] = []
    for name, usual in (("start", "S"), ("goal", "G")):
        mark = table.get(name, usual)
        found = [(r, c) for r, row in enumerate(rows) for c, here in enumerate(row) if here == mark]
        if len(found) != 1:
            raise DataError(f"the gold's maze has {len(found)} cells {mark!r}, its {name}; exactly one is needed")
        places += found
    return rows, str(table.get("wall", "#")), places[0], places[1]


def _way(place: str, start: _Cell) -> Iterable[_Cell] | None:
    """The cells that an answer visits behind the start; None where it is neither moves nor cells."""
    cells = [(int(r), int(c)) for r, c in _CELL.findall(place)]
    if cells:
        outside = _ELSE.search(_CELL.sub("", place))
        return None if outside or cells[0] != start else cells[1:]
    low = _NUMBER.sub("", place.casefold())
    words = _STEP.findall(low)
    if not words or _ELSE.search(_STEP.sub("", low)):
        return None
    moves: list[_Cell] = []
    for word in words:
        if word in _MOVES:
            moves.append(_MOVES[word])
        elif set(word) <= set("udlr") or set(word) <= set("nesw"):
            moves += (_MOVES[letter] for letter in word)
        else:
            return None
    out: list[_Cell] = []
    here = start
    for move in moves:
        here = (here[0] + move[0], here[1] + move[1])
        out.append(here)
    return out
