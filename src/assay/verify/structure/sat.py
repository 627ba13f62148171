"""Satisfying assignments of a formula in conjunctive normal form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score
from assay.verify.structure.reading import table_in

__all__ = ["NONE", "Satisfies"]

_DIMACS = re.compile(r"(?:v\s+)?[-+]?[0-9]{1,9}(?:[\s,v]+[-+]?[0-9]{1,9})*+")
_LITERAL = re.compile(r"[-+]?[0-9]+")
_TRUE, _FALSE = frozenset({"true", "t", "1", "yes"}), frozenset({"false", "f", "0", "no"})
NONE = frozenset({"unsat", "unsatisfiable", "none", "no solution"})
"""How an answer says that there is no solution."""


@dataclass(frozen=True, slots=True)
class Satisfies(AnswerVerifier):
    """``correct`` is 1 when the assignment makes every clause true; ``fraction`` is the share of clauses that it makes true.

    The gold is ``{"clauses": [[1, -2], [2, 3]]}`` (a literal is a variable's number, negative for its negation), with ``"names":
    ["x", "y", "z"]`` where variables are called other than ``x1``, ``x2``, ... Any assignment that satisfies is right; a variable
    left out makes no literal true. An answer is ``x1=True, x2=False``, a JSON object, or DIMACS literals, ``1 -2 0``.
    Where the gold says ``"satisfiable": false``, the only right answer is ``unsat``.

    Attributes:
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the gold has no clauses, or a literal that is no number or has no name.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gold = {"clauses": [[1, -2], [2, 3]]}
    >>> [Satisfies()(*task_and_rollout(gold, said)).components["fraction"] for said in ("x1=1, x2=1", "-1 -2 3 0", "x2=true",
    ...     "x9=1")]
    [1.0, 1.0, 0.5, 0.0]
    """

    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "Satisfies.where")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "fraction")

    def rule(self, gold: Any, text: str) -> Score:
        """Evaluate the clauses."""
        clauses, variables = _formula(gold)
        place = answer_in(text, self.where)
        if not place:
            return self.nothing("unparsed")
        none = place.casefold().strip(" .*_`") in NONE
        if not gold.get("satisfiable", True):
            return verdict_score("equal", dict.fromkeys(self.names, 1.0)) if none else self.nothing("different")
        if none:
            return self.nothing("different")
        true = _literals(place, variables)
        if true is None:
            return self.nothing("unparsed")
        if any(-literal in true for literal in true):
            return self.nothing("invalid", why="a variable has both values")
        held = sum(any(literal in true for literal in clause) for clause in clauses)
        right = held == len(clauses)
        return verdict_score("equal" if right else "invalid", {"correct": float(right), "fraction": held / len(clauses)})


def _formula(gold: Any) -> tuple[list[list[int]], dict[str, int]]:
    """The clauses, and the number of each variable by its folded name."""
    table = cast("dict[str, Any]", gold) if isinstance(gold, dict) else {}
    given: Any = table.get("clauses")
    if not isinstance(given, list) or not given or not all(isinstance(c, list) for c in cast("list[Any]", given)):
        raise DataError(f"the gold {gold!r} has no 'clauses': a list of lists of literals, such as [[1, -2], [3]]")
    clauses = cast("list[list[Any]]", given)
    if any(not isinstance(x, int) or isinstance(x, bool) or not x for clause in clauses for x in clause):
        raise DataError(f"the gold's clauses {clauses!r} hold what is no literal; a literal is a number other than 0")
    most = max((abs(x) for clause in clauses for x in clause), default=0)
    names: Any = table.get("names", [f"x{i}" for i in range(1, most + 1)])
    if not isinstance(names, list) or len(cast("list[Any]", names)) < most:
        raise DataError(f"the gold's 'names' are {names!r}; give one for each of the {most} variables")
    return clauses, {str(name).casefold(): i for i, name in enumerate(cast("list[Any]", names), 1)}


def _literals(place: str, variables: dict[str, int]) -> set[int] | None:
    """The literals that an answer makes true."""
    if _DIMACS.fullmatch(place.strip("[]() ")):
        found = {int(x) for x in _LITERAL.findall(place)} - {0}
        return found if found and all(abs(x) <= len(variables) for x in found) else None
    table = table_in(place)
    if table is None:
        return None
    out: set[int] = set()
    for name, value in table.items():
        number, said = variables.get(name.casefold().replace("_", "")) or variables.get(name.casefold()), value.casefold()
        if number is None or said not in _TRUE | _FALSE:
            return None
        out.add(number if said in _TRUE else -number)
    return out
