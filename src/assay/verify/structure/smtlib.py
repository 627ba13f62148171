"""Problems in SMT-LIB 2 over booleans, integers and reals, and whether given values solve them: exact, without a solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

from assay.core.errors import DataError
from assay.verify.structure.smt_terms import (
    FORMS,
    FUNCTIONS,
    Evaluation,
    Macro,
    Term,
    Undefined,
    Value,
    is_number,
    read_terms,
    term_text,
)

__all__ = ["Problem", "problem_of"]

SORTS = ("Bool", "Int", "Real")
_SAYS_NOTHING = frozenset(
    {
        "set-logic",
        "set-option",
        "set-info",
        "check-sat",
        "get-model",
        "get-value",
        "get-info",
        "exit",
        "echo",
    }
)


@dataclass(frozen=True, slots=True)
class Problem:
    """What a text asks for.

    Attributes:
        sorts: ``Bool``, ``Int`` or ``Real`` of each variable.
        assertions: terms that must all be true; a conjunction at the top counts as its parts.
        macros: functions that the text defines.
    """

    sorts: Mapping[str, str]
    assertions: tuple[Term, ...]
    macros: Mapping[str, Macro]

    def kept_assertions(self, values: Mapping[str, Value]) -> list[bool]:
        """Whether each assertion is true; one that has no value (a variable is missing, a division by zero) is not.

        Raises:
            DataError: an assertion is no formula, or takes more than a million steps.
        """
        return [self._true(term, values) for term in self.assertions]

    def _true(self, term: Term, values: Mapping[str, Value]) -> bool:
        try:
            found = Evaluation(values, self.macros, frozenset(self.sorts)).of(term)
        except Undefined:
            return False
        if not isinstance(found, bool):
            raise DataError(f"the constraint {term_text(term)} is a number, not a formula")
        return found


@lru_cache(maxsize=256)
def problem_of(text: str) -> Problem:
    """What a text asks for.

    Raises:
        DataError: the text is no SMT-LIB 2, asserts nothing, or uses what is not covered here: quantifiers, other sorts,
            functions without a definition, scopes.

    >>> problem_of("(declare-const x Int) (assert (and (> x 1) (< x 3)))").kept_assertions({"x": Fraction(2)})
    [True, True]
    """
    sorts: dict[str, str] = {}
    macros: dict[str, Macro] = {}
    asserted: list[Term] = []
    for command in read_terms(text):
        match command:
            case ["declare-const", str(name), sort] | ["declare-fun", str(name), [], sort]:
                _check_new(name, (sorts, macros))
                sorts[name] = _sort(sort, command)
            case ["define-fun", str(name), [*parameters], sort, body]:
                _check_new(name, (sorts, macros))
                _sort(sort, command)
                mine = tuple(_parameter(p, command) for p in parameters)
                _check_term(cast(Term, body), (sorts, macros), frozenset(mine))
                macros[name] = Macro(mine, cast(Term, body))
            case ["define-const", str(name), sort, body]:
                _check_new(name, (sorts, macros))
                _sort(sort, command)
                _check_term(cast(Term, body), (sorts, macros), frozenset())
                macros[name] = Macro((), cast(Term, body))
            case ["assert", term]:
                _check_term(cast(Term, term), (sorts, macros), frozenset())
                asserted += _conjuncts(cast(Term, term))
            case [str(name), *_] if name in _SAYS_NOTHING:
                pass
            case _:
                raise DataError(
                    f"SMT-LIB command {term_text(command)} is not covered; there are declare-const, declare-fun without "
                    "arguments, define-fun, define-const and assert, over Bool, Int and Real"
                )
    if not asserted:
        raise DataError("SMT-LIB text asserts nothing; give (assert ...)")
    problem = Problem(sorts, tuple(asserted), macros)
    problem.kept_assertions(
        {name: False if sort == "Bool" else Fraction(0) for name, sort in sorts.items()}
    )  # finds undeclared names
    return problem


Names = tuple[Mapping[str, str], Mapping[str, Macro]]


def _check_new(name: str, names: Names) -> None:
    if name in names[0] or name in names[1] or name in FUNCTIONS or name in FORMS or name in ("true", "false") or is_number(name):
        raise DataError(f"SMT-LIB text declares {name!r} twice, or as something that there is already")


def _sort(sort: Any, command: Term) -> str:
    if sort not in SORTS:
        raise DataError(f"SMT-LIB command {term_text(command)} names the sort {term_text(sort)}; there are {', '.join(SORTS)}")
    return cast(str, sort)


def _parameter(given: Any, command: Term) -> str:
    match given:
        case [str(name), sort]:
            _sort(sort, command)
            return name
        case _:
            raise DataError(f"SMT-LIB command {term_text(command)} has the parameter {term_text(given)}; write (name sort)")


def _conjuncts(term: Term) -> list[Term]:
    """The parts of a conjunction at the top, and of those in it."""
    match term:
        case ["!", inner, *_]:
            return _conjuncts(cast(Term, inner))
        case ["and", *parts]:
            return [found for part in parts for found in _conjuncts(cast(Term, part))]
        case _:
            return [term]


def _check_term(term: Term, names: Names, bound: frozenset[str]) -> None:
    """Refuses symbols that mean nothing, before any answer is judged: a wrong gold must not look like wrong answers."""
    sorts, macros = names
    if isinstance(term, str):
        if not (term in bound or term in sorts or term in macros or term in ("true", "false") or is_number(term)):
            raise DataError(f"SMT-LIB symbol {term!r} is declared nowhere, or is not covered")
        return
    match term:
        case ["let", [*pairs], body]:
            names_here: list[str] = []
            for pair in pairs:
                match pair:
                    case [str(name), value]:
                        names_here.append(name)
                        _check_term(cast(Term, value), names, bound)
                    case _:
                        raise DataError(f"SMT-LIB let binds {term_text(pair)}; write (name term)")
            _check_term(cast(Term, body), names, bound | frozenset(names_here))
        case ["!", inner, *_]:
            _check_term(cast(Term, inner), names, bound)
        case ["and" | "or", _, *_] | ["ite", _, _, _]:
            for part in term[1:]:
                _check_term(part, names, bound)
        case [str(name), *parts] if parts and (name in FUNCTIONS or name in macros):
            for part in parts:
                _check_term(cast(Term, part), names, bound)
        case _:
            raise DataError(
                f"SMT-LIB term {term_text(term)} is not covered: it is none over Bool, Int and Real without quantifiers"
            )
