"""What all puzzles share: the statement is a model of constraints, and that its solution is the only one is proved twice."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.errors import DataError
from assay.core.protocols import Verifier
from assay.tasks.draws import checked_levels
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.structure.grid import GridMatch
from assay_tasks.puzzles.constraints import Count
from assay_tasks.puzzles.solver import Model

__all__ = ["NAMES", "GridPuzzle", "Puzzle", "board", "bullets", "given_constraint", "list_words", "renumber"]

TRIES = 400
"""Draws of a puzzle before a level counts as impossible; the kinds need one to twenty on average."""

NAMES = (
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gina",
    "Hugo",
    "Iris",
    "Jack",
    "Kira",
    "Leo",
    "Mona",
    "Nick",
    "Olga",
    "Paul",
    "Rosa",
    "Sam",
    "Tina",
    "Vera",
)
"""First names, one word each, no two alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Puzzle(Problem):
    """Base of puzzles with exactly one solution.

    A kind says how facts are made (`make`), what they demand (`model`), and how values of the model's variables become an answer
    (`write_solution`). `draw` gives only facts with one solution, and `solve` finds it from the facts alone and proves again that
    there is no other. ``model(facts).smt()`` states the same in SMT-LIB 2 for any other solver.
    """

    domain: str = "logic"
    shapes: ClassVar[tuple[Any, ...]] = ()
    """What level 1, 2, ... of the kind mean."""

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        checked_levels(self.name, self.levels, 1, len(self.shapes))

    @abstractmethod
    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Facts with exactly one solution; None where a try failed."""
        ...

    @abstractmethod
    def model(self, facts: Facts) -> Model:
        """What the facts demand."""
        ...

    @abstractmethod
    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """A solution of the model as answer and gold."""
        ...

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """The same puzzle with other labels, turned or in another order; None where there is no such thing."""
        return None

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Tries until one has exactly one solution."""
        for _ in range(TRIES):
            facts = self.make(level, rng)
            if facts is not None:
                return facts
        raise DataError(f"{self.name}: {TRIES} draws of level {level} gave no puzzle with exactly one solution")

    def redraw(self, facts: Facts, level: int, rng: Random) -> dict[str, Any]:
        """Mostly the same puzzle varied, which is cheap."""
        other = self.vary(facts, rng) if rng.random() < 0.8 else None
        return self.draw(level, rng) if other is None else other

    def solve(self, facts: Facts) -> Solution:
        """The only solution.

        Raises:
            DataError: there is none, or more than one.
        """
        values, effort = self.model(facts).only()
        told = self.write_solution(facts, values)
        return Solution(answer=told.answer, gold=told.gold, steps=told.steps, effort=effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridPuzzle(Puzzle):
    """Base of puzzles whose answer is a filled grid: rows of cells with white space between."""

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The rows, as wide as the facts' ``size`` says; variable ``i`` is a cell, row by row."""
        n: int = facts["size"]
        rows = [[str(v) for v in values[i * n : i * n + n]] for i in range(n)]
        return Solution(answer=board(rows), gold=rows)

    def verifier(self, form: Form) -> Verifier:
        """Cell by cell."""
        return GridMatch(where=form.place)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Nothing; kinds whose grids may be turned say how."""
        return None


def board(rows: Iterable[Iterable[object]], between: str = " ") -> str:
    r"""A grid as text.

    >>> board(["ab", "cd"])
    'a b\nc d'
    """
    return "\n".join(between.join(str(cell) for cell in row) for row in rows)


def given_constraint(cell: int, value: int) -> Count:
    """The constraint that a variable has a value."""
    return Count((cell,), (1 << value,), 1, 1)


def list_words(words: Sequence[str], last: str = "and") -> str:
    """Words in a row of speech.

    >>> list_words(["a"]), list_words(["a", "b"]), list_words(["a", "b", "c"], "or")
    ('a', 'a and b', 'a, b or c')
    """
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


def renumber(numbers: Iterable[int], order: Sequence[int]) -> list[int]:
    """What stands in ``order`` at each of some numbers, ascending.

    >>> renumber([0, 2], [5, 4, 3])
    [3, 5]
    """
    return sorted(order[number] for number in numbers)


def bullets(lines: Iterable[str]) -> str:
    """Lines, each behind a dash."""
    return "\n".join(f"- {line}" for line in lines)
