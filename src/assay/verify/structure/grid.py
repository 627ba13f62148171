"""Filled grids, as puzzles of numbers and letters ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score
from assay.verify.text.jsonvalue import NoJson, read_json

__all__ = ["GridMatch"]

_BETWEEN = re.compile(r"[\s,;|]")
_AROUND = " \t\r()[]{}|,;"
_DRAWN = frozenset("-+=| \t\r")


@dataclass(frozen=True, slots=True)
class GridMatch(AnswerVerifier):
    r"""``correct`` is 1 when every cell is the gold's; ``cells`` is the share of cells that are.

    The gold is a list of rows, each a list of cells. An answer is a JSON list of lists, or one row to a line with spaces,
    commas or bars between cells, brackets around rows or not; cells of one character may stand without anything between. Lines
    drawn between rows, as ``---+---``, are left out unless a cell of the gold is a dash. Case does not matter. A grid of
    another size is ``different``, and none of its cells counts.

    Attributes:
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the gold is no grid.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> answers = ("1 2\n2 1", "[[1, 2], [2, 2]]", "12")
    >>> [dict(GridMatch()(*task_and_rollout([["1", "2"], ["2", "1"]], answer)).components) for answer in answers]
    [{'correct': 1.0, 'cells': 1.0}, {'correct': 0.0, 'cells': 0.75}, {'correct': 0.0, 'cells': 0.0}]
    """

    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "GridMatch.where")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "cells")

    def rule(self, gold: Any, text: str) -> Score:
        """Compare cell by cell."""
        wanted = _grid(gold)
        place = answer_in(text, self.where)
        said = _rows_of(place, wanted) if place else None
        if not said:
            return self.nothing("unparsed")
        if [len(row) for row in said] != [len(row) for row in wanted]:
            return self.nothing("different", why="it has another size")
        hits = [a == b for one, other in zip(said, wanted, strict=True) for a, b in zip(one, other, strict=True)]
        right = all(hits)
        return verdict_score("equal" if right else "different", {"correct": float(right), "cells": sum(hits) / len(hits)})


def _grid(gold: Any) -> list[list[str]]:
    rows: list[Any] = cast("list[Any]", gold) if isinstance(gold, list) else []
    if not rows or not all(isinstance(row, list) and len(cast("list[Any]", row)) for row in rows):
        raise DataError(f"the gold {gold!r} is no grid: a list of rows, each a list of cells, such as [[1, 2], [2, 1]]")
    return [[str(cell).casefold() for cell in row] for row in rows]


def _rows_of(place: str, wanted: list[list[str]]) -> list[list[str]] | None:
    try:
        read = read_json(place)
    except NoJson:
        read = None
    if isinstance(read, list) and read and all(isinstance(row, list) for row in cast("list[Any]", read)):
        return [[str(cell).casefold() for cell in row] for row in cast("list[list[Any]]", read)]
    dashes = any("-" in cell for row in wanted for cell in row)
    lines = [line.strip(_AROUND) for line in place.casefold().splitlines() if dashes or "-" not in line or set(line) - _DRAWN]
    return [_cells(line, wanted) for line in lines if line]


def _cells(line: str, wanted: list[list[str]]) -> list[str]:
    parts = [part.strip("\"'`") for part in _BETWEEN.split(line) if part]
    close = len(parts) == 1 and len(wanted[0]) > 1 and all(len(cell) == 1 for row in wanted for cell in row)
    return list(parts[0]) if close else parts
