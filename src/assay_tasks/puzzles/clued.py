"""Puzzles told by clues: a pool of true statements, of which those are given that leave one solution."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.structure.roles import Assignment
from assay.verify.text.items import ListMatch
from assay_tasks.puzzles.constraints import Constraint
from assay_tasks.puzzles.puzzle import NAMES, Puzzle, bullets
from assay_tasks.puzzles.solver import Model

__all__ = ["Clue", "Clued", "in_order", "table_of"]

Clue = Sequence[Any]
"""The kind of a statement and what it is about, as plain JSON: ``["before", 0, 2]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clued(Puzzle):
    """Base of puzzles whose facts have ``names`` and ``clues``.

    A kind says what holds without clues (`base`), what a clue demands (`demand`) and how it reads (`sentence`).
    """

    domain: str = "logic"

    alphabetic: ClassVar[bool] = False
    """Whether the question lists the names by the alphabet, and so do the facts: two orders of them would be one question."""

    @abstractmethod
    def base(self, facts: Facts) -> Model:
        """What holds whatever the clues are."""
        ...

    @abstractmethod
    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """A clue as a constraint over the variables of `base`."""
        ...

    @abstractmethod
    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """A clue as a sentence; ``turn`` chooses among several ways to say it."""
        ...

    def model(self, facts: Facts) -> Model:
        """The base and all clues."""
        model = self.base(facts)
        model.add(*(self.demand(facts, clue) for clue in facts["clues"]))
        return model

    def sift(self, facts: Facts) -> Solution:
        """The solution of a puzzle with one variable; its effort is how many candidates are left behind each clue, together."""
        (values, _), model = self.model(facts).only(), self.base(facts)
        kept, left = list(model.domains), 0
        for clue in facts["clues"]:
            self.demand(facts, clue).filter(kept, [])
            left += kept[0].bit_count()
        told = self.write_solution(facts, values)
        return Solution(answer=told.answer, gold=told.gold, steps=told.steps, effort=left)

    def with_clues(
        self, facts: dict[str, Any], truth: Sequence[int], pool: Sequence[Clue], rng: Random, *, lean: bool = True, extra: int = 0
    ) -> dict[str, Any] | None:
        """The facts with clues of a pool that leave only the truth; ``extra`` more of them make it easier."""
        pool = list({str(clue): clue for clue in pool}.values())
        chosen = self.base(facts).clues(truth, [self.demand(facts, clue) for clue in pool], rng, lean=lean)
        if chosen is None:
            return None
        more = [i for i in range(len(pool)) if i not in chosen][:extra]
        clues = [list(pool[i]) for i in (*chosen, *more)]
        rng.shuffle(clues)
        return {**facts, "clues": clues}

    def draw_names(self, n: int, rng: Random) -> list[str]:
        """So many different names."""
        names: list[str] = rng.sample(NAMES, n)
        return sorted(names) if self.alphabetic else names

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Other names, and clues in another order."""
        return {
            **facts,
            "names": self.draw_names(len(facts["names"]), rng),
            "clues": rng.sample(facts["clues"], len(facts["clues"])),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The clues, and an example of how the answer is written."""
        names = facts["names"]
        clues = [self.sentence(facts, clue, i + len(names[0])) for i, clue in enumerate(facts["clues"])]
        return {"clues": bullets(clues), "n": str(len(names)), "first": names[0], "second": names[1]}


def in_order(names: Sequence[str], places: Sequence[int]) -> Solution:
    """Names in the order of their places, as answer and gold."""
    gold = [name for _, name in sorted(zip(places, names, strict=True))]
    return Solution(answer=", ".join(gold), gold=gold)


def table_of(names: Sequence[str], values: Sequence[object]) -> Solution:
    """A value for each name, as answer and gold."""
    gold = {name: str(value) for name, value in zip(names, values, strict=True)}
    return Solution(answer=", ".join(f"{name}: {value}" for name, value in gold.items()), gold=gold)


def list_in(form: Form) -> Verifier:
    """What judges a list in order."""
    return ListMatch(where=form.place)


def table_in(form: Form) -> Verifier:
    """What judges a value for each name."""
    return Assignment(roles=(), where=form.place)
