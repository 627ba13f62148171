"""Satisfiability: formulas with a planted solution, as SATURN builds them (arXiv 2505.16368), and formulas that may have none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Verifier
from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.verify.exact import ExactMatch
from assay.verify.structure.sat import Satisfies
from assay_tasks.logic.solver import Solver

__all__ = ["Planted", "Satisfiable", "Solvable", "sat"]

Stage = tuple[int, int, int]
"""Literals in a clause, variables, clauses."""


def _words(text: str) -> list[str]:
    return text.split()


_LETTERS = list("abcdghjkmnpqrsuvwxyz")
_DISHES = _words(
    "bread cheese curry dumplings fish fruit grapes honey jam lentils melon noodles nuts olives pasta pie plums rice salad soup"
)
_PLANTED: tuple[Stage, ...] = (
    (3, 5, 5),
    (3, 5, 6),
    (3, 5, 8),
    (3, 5, 10),
    (3, 5, 13),
    (3, 5, 15),
    (3, 6, 20),
    (3, 7, 25),
    (3, 8, 31),
    (3, 10, 40),
)
_EDGE: tuple[Stage, ...] = (
    (2, 3, 6),
    (2, 4, 7),
    (2, 5, 9),
    (3, 4, 18),
    (3, 5, 24),
    (3, 6, 29),
    (3, 8, 38),
    (3, 10, 47),
    (3, 12, 56),
    (3, 15, 69),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula(Problem):
    """Base of problems on a formula. The level is the number of a stage, from 1.

    Facts hold it flat: ``names`` of the variables between spaces, ``clauses`` the literals of all clauses in a row, ``width`` of
    them in each. Literals stand by variable and clauses in order, so that one formula is one question.

    Attributes:
        stages: literals in a clause, variables and clauses of each level.

    Raises:
        ConfigError: levels that are no stages, or a stage that has not so many different clauses.
    """

    domain: str = "logic"
    levels: tuple[int, ...] = tuple(range(1, 11))
    stages: tuple[Stage, ...] = ()

    asks: ClassVar[str] = ""
    """What is asked of the formula."""
    how: ClassVar[str] = ""
    """How the answer is written; ``{first}`` and ``{second}`` stand for two variables."""

    def __post_init__(self) -> None:
        super(Formula, self).__post_init__()
        if self.levels[-1] > len(self.stages):
            raise ConfigError(f"{self.name}.levels go up to {self.levels[-1]}, but there are {len(self.stages)} stages")
        for width, variables, clauses in self.stages:
            if not 1 <= width <= variables or not 2 <= variables <= len(_LETTERS) or not clauses >= 1:
                raise ConfigError(
                    f"{self.name}.stages: {(width, variables, clauses)} must be literals in a clause, variables (2 to "
                    f"{len(_LETTERS)}, at least as many) and clauses"
                )
            if clauses > comb(variables, width) * (2**width - 1):
                raise ConfigError(
                    f"{self.name}.stages: {variables} variables have not {clauses} different clauses of {width} that one "
                    "assignment satisfies"
                )

    def formula(self, stage: Stage, rng: Random) -> list[list[int]]:
        """Different clauses of the stage in order."""
        width, variables, clauses = stage
        found: set[tuple[int, ...]] = set()
        while len(found) < clauses:
            signs = rng.getrandbits(width)
            chosen = sorted(rng.sample(range(1, variables + 1), width))
            found.add(tuple([-x if signs >> i & 1 else x for i, x in enumerate(chosen)]))
        return sorted(map(list, found), key=lambda clause: [(abs(x), x) for x in clause])

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A formula, and names for its variables."""
        stage = self.stages[level - 1]
        clauses = self.formula(stage, rng)
        kind, k = rng.randrange(3), stage[1]
        if kind == 0:
            names = [f"x{i}" for i in range(1, k + 1)]
        else:
            names = sorted(rng.sample(_LETTERS if kind == 1 else _DISHES, k))
        return {"names": " ".join(names), "clauses": [x for clause in clauses for x in clause], "width": stage[0]}

    @property
    def variants(self) -> int:
        """In symbols, in words, line by line, and as a story."""
        return 4

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Two names of variables."""
        names = str(facts["names"]).split(" ")
        return {"first": names[0], "second": names[1]}

    def word(self, facts: Facts, variant: int) -> str:
        """The formula, the question and how the answer is written."""
        names = str(facts["names"]).split(" ")
        how = self.how.format_map(self.fields(facts))
        no, either = (("¬", " ∨ "), ("not ", " or "), ("not ", " or "), ("no ", " or "))[variant]
        parts = [either.join([names[x - 1] if x > 0 else no + names[-x - 1] for x in c]) for c in clauses_of(facts)]
        if variant == 3:
            wishes = ", ".join([f"({part})" for part in parts])
            values = "" if self.asks == _WHETHER else "Write true for what is served and false for what is left out. "
            return (
                f"A cook plans a dinner and can serve or leave out each of these dishes: {', '.join(names)}. Every guest has a "
                'list of wishes and is content if at least one of them comes true; "no" wishes that something is left out. The '
                f"lists of the guests: {wishes}.\n{_STORY[self.asks]}{values}{how}"
            )
        if variant == 2:
            body = "Each line is a condition that must hold:\n" + "\n".join(parts)
        elif variant == 1:
            body = "All of these conditions must hold: " + "; ".join(parts) + "."
        else:
            body = "Consider the formula " + " ∧ ".join([f"({part})" for part in parts]) + "."
        return f"The variables {', '.join(names)} are true or false. {body}\n{self.asks}{how}"

    def find_assignment(self, facts: Facts) -> tuple[list[bool] | None, int]:
        """A satisfying assignment or None, and the solver's effort."""
        solver = Solver(len(str(facts["names"]).split(" ")), clauses_of(facts))
        return solver.model(), solver.effort


def clauses_of(facts: Facts) -> list[list[int]]:
    """The clauses of a formula's facts."""
    flat: list[int] = facts["clauses"]
    width: int = facts["width"]
    return [flat[i : i + width] for i in range(0, len(flat), width)]


_FIND = "Find values of the variables that satisfy all of this. "
_IF_ANY = "Find values of the variables that satisfy all of this, or say that there are none. "
_WHETHER = "Are there values of the variables that satisfy all of this? "
_STORY = {
    _FIND: "Find a dinner that makes every guest content. ",
    _IF_ANY: "Find a dinner that makes every guest content, or say that there is none. ",
    _WHETHER: "Is there a dinner that makes every guest content? ",
}
_VALUES = "Write the value of each, as in {first}=true, {second}=false, with commas between."


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted(Formula):
    """Values that satisfy a formula which has some. The level is the stage of a curriculum, by default ten from (3, 5, 5) on.

    A hidden assignment is drawn, then different clauses that it satisfies: any signs but those that make all literals false.
    Any satisfying assignment is right. The default stages ascend in SATURN's difficulty, and stages 1, 2, 5 and 6 are its own.

    Source: SATURN (arXiv 2505.16368); its difficulty is `assay_tasks.logic.solver.difficulty`.

    >>> Planted().solve({"names": "p q", "clauses": [1, 2, -1, 2], "width": 2}).answer
    'p=true, q=true'
    """

    name: str = "sat/assignment"
    stages: tuple[Stage, ...] = _PLANTED
    asks: ClassVar[str] = _FIND
    how: ClassVar[str] = _VALUES

    def formula(self, stage: Stage, rng: Random) -> list[list[int]]:
        """Clauses that a hidden assignment satisfies."""
        width, variables, clauses = stage
        plant = rng.getrandbits(variables)
        found: set[tuple[int, ...]] = set()
        while len(found) < clauses:
            chosen = sorted(rng.sample(range(1, variables + 1), width))
            wrong = rng.randrange(2**width - 1)  # which literals the plant makes false: never all of them
            found.add(tuple([x if (plant >> x - 1 & 1) != (wrong >> i & 1) else -x for i, x in enumerate(chosen)]))
        return sorted(map(list, found), key=lambda clause: [(abs(x), x) for x in clause])

    def solve(self, facts: Facts) -> Solution:
        """Search with unit propagation."""
        return _answer_formula(facts, *self.find_assignment(facts))

    def verifier(self, form: Form) -> Verifier:
        """Evaluate the clauses."""
        return Satisfies(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge(Formula):
    """Base of problems whose formulas have a solution in half of the questions, with as many clauses in both halves."""

    stages: tuple[Stage, ...] = _EDGE

    def formula(self, stage: Stage, rng: Random) -> list[list[int]]:
        """Any clauses, until a coin's wish is met."""
        wanted = bool(rng.getrandbits(1))
        for _ in range(TRIES):
            found = super(Edge, self).formula(stage, rng)
            if (Solver(stage[1], found).model() is not None) == wanted:
                return found
        raise DataError(
            f"{self.name}: none of {TRIES} random formulas of stage {stage} {'has' if wanted else 'is without'} a solution; use "
            "a stage with fewer or more clauses"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Solvable(Edge):
    """Values that satisfy a formula, or that there are none: each in half of the questions. The level is the stage, of ten at
    the edge of what can be satisfied.

    >>> Solvable().solve({"names": "p q", "clauses": [1, 2, -1, 2, 1, -2, -1, -2], "width": 2}).answer
    'unsat'
    """

    name: str = "sat/solve"
    asks: ClassVar[str] = _IF_ANY
    how: ClassVar[str] = _VALUES + " If there is no solution, write unsat."

    def solve(self, facts: Facts) -> Solution:
        """Search with unit propagation."""
        return _answer_formula(facts, *self.find_assignment(facts))

    def verifier(self, form: Form) -> Verifier:
        """Evaluate the clauses."""
        return Satisfies(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Satisfiable(Edge):
    """Whether a formula can be satisfied: it can in half of the questions. The level is the stage, of ten at the edge of what
    can be satisfied.

    >>> Satisfiable().solve({"names": "p q", "clauses": [1, 2, -1, 2], "width": 2}).answer
    'yes'
    """

    name: str = "sat/decide"
    asks: ClassVar[str] = _WHETHER
    how: ClassVar[str] = "Answer yes or no."

    def solve(self, facts: Facts) -> Solution:
        """Search with unit propagation."""
        model, effort = self.find_assignment(facts)
        return Solution(answer="no" if model is None else "yes", effort=effort)

    def verifier(self, form: Form) -> Verifier:
        """The same word."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


def sat() -> Problems:
    """Formulas to satisfy."""
    return Problems(
        name="sat",
        summary="Formulas to satisfy, planted or at the edge of what can be satisfied.",
        problems=(Planted(), Solvable(), Satisfiable()),
    )


def _answer_formula(facts: Facts, model: list[bool] | None, effort: int) -> Solution:
    names = str(facts["names"]).split(" ")
    gold: dict[str, Any] = {"clauses": clauses_of(facts), "names": names}
    if model is None:
        return Solution(answer="unsat", gold={**gold, "satisfiable": False}, effort=effort)
    said = ", ".join([f"{name}={'true' if value else 'false'}" for name, value in zip(names, model, strict=True)])
    return Solution(answer=said, gold=gold, effort=effort)
