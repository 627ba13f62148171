"""Values that solve a problem in SMT-LIB 2."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score
from assay.verify.structure.reading import table_in
from assay.verify.structure.sat import NONE
from assay.verify.structure.smt_terms import Term, Undefined, Value, read_terms, value_of
from assay.verify.structure.smtlib import Problem, problem_of

__all__ = ["SmtModel"]


@dataclass(frozen=True, slots=True)
class SmtModel(AnswerVerifier):
    """``correct`` is 1 when the values keep every constraint; ``fraction`` is the share of constraints that they keep.

    The gold is ``{"smt": text}`` in SMT-LIB 2: ``declare-const``, ``define-fun`` and ``assert`` over ``Bool``, ``Int`` and
    ``Real``, linear or not, without quantifiers, bit vectors or arrays. Constraints are evaluated in exact arithmetic and no
    solver is asked, so any values that keep them are right. An answer is ``x = 3, y = 1/2, p = true``, a JSON object, or a model
    as solvers print it, ``(define-fun x () Int 3)`` or ``((x 3) (y (/ 1 2)))``. A variable left out keeps no constraint that
    needs it, and so does a division by zero. Where the gold says ``"satisfiable": false``, the only right answer is ``unsat``.

    Attributes:
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the gold's text is no SMT-LIB 2, or beyond what is covered.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gold = {"smt": "(declare-const x Int) (declare-const y Real) (assert (> x 2)) (assert (= (* x y) 1.5))"}
    >>> [SmtModel()(*task_and_rollout(gold, said)).components["fraction"] for said in ("x = 3, y = 1/2", "x=3, y=1", "x=1",
    ...     "z=1")]
    [1.0, 0.5, 0.0, 0.0]
    """

    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "SmtModel.where")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "fraction")

    def rule(self, gold: Any, text: str) -> Score:
        """Evaluate the constraints."""
        table = cast("dict[str, Any]", gold) if isinstance(gold, dict) else {}
        if not isinstance(table.get("smt"), str):
            raise DataError(
                f"the gold {gold!r} has no 'smt': a text in SMT-LIB 2, such as (declare-const x Int) (assert (> x 1))"
            )
        problem = problem_of(table["smt"])
        place = answer_in(text, self.where)
        if not place:
            return self.nothing("unparsed")
        none = place.casefold().strip(" .*_`") in NONE
        if none or not table.get("satisfiable", True):
            right = none and not table.get("satisfiable", True)
            return verdict_score("equal", dict.fromkeys(self.names, 1.0)) if right else self.nothing("different")
        values = _values(place, problem)
        if values is None:
            return self.nothing("unparsed")
        kept = problem.kept_assertions(values)
        right = all(kept)
        return verdict_score("equal" if right else "invalid", {"correct": float(right), "fraction": sum(kept) / len(kept)})


def _values(place: str, problem: Problem) -> dict[str, Value] | None:
    """The values that an answer gives to variables; None where it gives none, or what is no value of the variable's sort."""
    folded = {name.casefold(): name for name in problem.sorts}
    out: dict[str, Value] = {}
    for said_name, term in _model_terms(place, problem):
        name = said_name if said_name in problem.sorts else folded.get(said_name.casefold())
        value = _value(term)
        if name is None or value is None or not _fits(value, problem.sorts[name]) or out.setdefault(name, value) != value:
            return None
    return out or None


def _model_terms(place: str, problem: Problem) -> Iterable[tuple[str, Term]]:
    """Names and terms of an answer."""
    solved = _parse_printed(place.strip().removeprefix("sat").strip())
    if solved is not None:
        return solved
    table = table_in(place, problem.sorts) or {}
    return [(name, value.lstrip("= ")) for name, value in table.items()]


def _parse_printed(text: str) -> list[tuple[str, Term]] | None:
    """What a solver prints: ``(define-fun x () Int 3)`` or ``(x 3)``, one or several, in brackets or not; else None."""
    try:
        read = read_terms(text) if text.startswith("(") else []
    except DataError:
        return None
    if len(read) == 1 and isinstance(read[0], list) and any(isinstance(part, list) for part in read[0][:2]):
        read = cast("list[Term]", read[0])
    out: list[tuple[str, Term]] = []
    for part in read:
        match part:
            case ["define-fun", str(name), [], _, term] | [str(name), term]:
                out.append((name, cast(Term, term)))
            case "model":
                pass
            case _:
                return None
    return out or None


def _value(term: Term) -> Value | None:
    """A truth value, a number, or a quotient of two; None for anything else."""
    try:
        if not isinstance(term, str):
            return value_of(term)
        if term.casefold() in ("true", "false"):
            return term.casefold() == "true"
        over, slash, under = term.removeprefix("-").partition("/")
        value = value_of(["/", over.strip(), under.strip()] if slash else over.strip())
        if isinstance(value, bool):
            return None
        return -value if term.startswith("-") else value
    except (DataError, Undefined):
        return None


def _fits(value: Value, sort: str) -> bool:
    if isinstance(value, bool) or sort == "Bool":
        return isinstance(value, bool) and sort == "Bool"
    return sort == "Real" or value.denominator == 1
