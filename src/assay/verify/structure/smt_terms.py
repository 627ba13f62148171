"""Terms of SMT-LIB 2 over booleans, integers and reals: read from text, and their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import combinations, pairwise
from math import floor
from operator import add, eq, ge, gt, le, lt, mul, sub
from typing import Any, cast

from assay.core.errors import DataError

__all__ = [
    "FORMS",
    "FUNCTIONS",
    "Evaluation",
    "Macro",
    "Term",
    "Undefined",
    "Value",
    "is_number",
    "read_terms",
    "term_text",
    "value_of",
]

Value = bool | Fraction
Term = str | list[Any]
"""A symbol or number as text, or a list of terms."""

FORMS = frozenset({"let", "!", "ite", "and", "or"})
"""What is evaluated in an order of its own."""

_TOKEN = re.compile(r'\s+|;[^\n]*|(?P<token>[()]|\|[^|]*\||"(?:[^"]|"")*"|[^\s();|"]+)')
_NUMBER = re.compile(r"[0-9]{1,400}(?:\.[0-9]{1,400})?")
_DEPTH = 120
_STEPS = 1_000_000


class Undefined(Exception):
    """A term has no value under what is given: a variable without one, or a division by zero."""


@dataclass(frozen=True, slots=True)
class Macro:
    """A function that a text defines."""

    parameters: tuple[str, ...]
    body: Term


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the theories.

    Attributes:
        least, most: number of its arguments.
        kind: ``Bool`` or ``Real``: what its arguments must be; empty where both will do, all alike.
        apply: arguments to value.
    """

    least: int
    most: int
    kind: str
    apply: Callable[[Sequence[Any]], Value]


def _chain(holds: Callable[[Any, Any], bool]) -> Callable[[Sequence[Any]], Value]:
    return lambda given: all(holds(a, b) for a, b in pairwise(given))


def _fold(step: Callable[[Any, Any], Any]) -> Callable[[Sequence[Any]], Value]:
    return lambda given: reduce(step, given)


def _minus(given: Sequence[Any]) -> Value:
    return -given[0] if len(given) == 1 else reduce(sub, given)


def _divide(a: Fraction, b: Fraction) -> Fraction:
    return a / b


def _div(a: Fraction, b: Fraction) -> Fraction:
    """Euclid's: the remainder is never negative."""
    return Fraction(floor(a / b) if b > 0 else -floor(a / -b))


def _down(given: Sequence[Any]) -> Value:
    return Fraction(floor(cast(Fraction, given[0])))


def _implies(given: Sequence[Any]) -> Value:
    return given[-1] or not all(given[:-1])


_ANY = 10_000
FUNCTIONS: Mapping[str, Function] = {
    "not": Function(1, 1, "Bool", lambda given: not given[0]),
    "=>": Function(2, _ANY, "Bool", _implies),
    "xor": Function(2, _ANY, "Bool", _fold(lambda a, b: a != b)),
    "=": Function(2, _ANY, "", _chain(eq)),
    "distinct": Function(2, _ANY, "", lambda given: all(a != b for a, b in combinations(given, 2))),
    "<": Function(2, _ANY, "Real", _chain(lt)),
    "<=": Function(2, _ANY, "Real", _chain(le)),
    ">": Function(2, _ANY, "Real", _chain(gt)),
    ">=": Function(2, _ANY, "Real", _chain(ge)),
    "+": Function(1, _ANY, "Real", _fold(add)),
    "-": Function(1, _ANY, "Real", _minus),
    "*": Function(1, _ANY, "Real", _fold(mul)),
    "/": Function(2, _ANY, "Real", _fold(_divide)),
    "div": Function(2, _ANY, "Real", _fold(_div)),
    "mod": Function(2, 2, "Real", lambda given: given[0] - given[1] * _div(given[0], given[1])),
    "abs": Function(1, 1, "Real", lambda given: abs(given[0])),
    "to_real": Function(1, 1, "Real", lambda given: given[0]),
    "to_int": Function(1, 1, "Real", _down),
    "is_int": Function(1, 1, "Real", lambda given: given[0].denominator == 1),
}
"""``and``, ``or`` and ``ite`` stand in `FORMS`: they look at no more arguments than they need."""


def is_number(symbol: str) -> bool:
    """Whether a symbol is a numeral or decimal."""
    return _NUMBER.fullmatch(symbol) is not None


def read_terms(text: str) -> list[Term]:
    """The terms of a text.

    Raises:
        DataError: brackets that do not match, more than 120 within one another, or what is no token.

    >>> read_terms("(> x 1) ; more than one")
    [['>', 'x', '1']]
    """
    stack: list[list[Any]] = [[]]
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise DataError(f"SMT-LIB text has {text[at : at + 20]!r} at {at}, which is no token; a quote may be open")
        at, token = found.end(), found["token"]
        if token == "(":
            if len(stack) > _DEPTH:
                raise DataError(
                    f"SMT-LIB text has more than {_DEPTH} brackets within one another; name inner parts with define-fun"
                )
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                raise DataError(f"SMT-LIB text closes a bracket at {at - 1} that it never opened")
            inner = stack.pop()
            stack[-1].append(inner)
        elif token:
            stack[-1].append(token[1:-1] if token.startswith("|") else token)
    if len(stack) > 1:
        raise DataError(f"SMT-LIB text leaves {len(stack) - 1} brackets open")
    return cast("list[Term]", stack[0])


def term_text(term: Any, most: int = 80) -> str:
    """A term as text, cut where it is long."""
    text = term if isinstance(term, str) else "(" + " ".join(term_text(t, most) for t in term[:most]) + ")"
    return text if len(text) <= most else text[: most - 3] + "..."


def value_of(term: Term) -> Value:
    """The value of a constant term, such as ``(- (/ 1 3))``.

    Raises:
        Undefined: it has none.
        DataError: it is no constant term.

    >>> value_of(["-", ["/", "1", "3"]])
    Fraction(-1, 3)
    """
    return Evaluation({}, {}, frozenset()).of(term)


@dataclass(slots=True)
class Evaluation:
    """The values of terms.

    Attributes:
        values: of variables.
        macros: functions that the text defines.
        known: variables that there are, with values or without.
        steps: taken so far.
    """

    values: Mapping[str, Value]
    macros: Mapping[str, Macro]
    known: frozenset[str]
    steps: int = field(default=0)

    def of(self, term: Term, local: Mapping[str, Value] | None = None) -> Value:
        """The value of a term under the variables' values and ``local`` ones.

        Raises:
            Undefined: it has none.
            DataError: it is no term over these sorts, or takes more than a million steps.
        """
        self.steps += 1
        if self.steps > _STEPS:
            raise DataError(f"an SMT-LIB constraint takes more than {_STEPS} steps to evaluate")
        local = local or {}
        if isinstance(term, str):
            return self._symbol(term, local)
        match term:
            case ["let", [*pairs], body]:
                return self.of(body, {**local, **{name: self.of(value, local) for name, value in pairs}})
            case ["!", inner, *_]:
                return self.of(inner, local)
            case ["ite", test, yes, no]:
                return self.of(yes if self._truth(test, local) else no, local)
            case ["and", *parts]:
                return all(self._truth(part, local) for part in parts)
            case ["or", *parts]:
                return any(self._truth(part, local) for part in parts)
            case [str(name), *parts] if name in self.macros or name in FUNCTIONS:
                return self._call(name, [self.of(cast(Term, part), local) for part in parts], term)
            case _:
                raise DataError(f"SMT-LIB term {term_text(term)} is not covered")

    def _symbol(self, name: str, local: Mapping[str, Value]) -> Value:
        for known in (local, self.values):
            if name in known:
                return known[name]
        if name in ("true", "false"):
            return name == "true"
        if is_number(name):
            return Fraction(name)
        if name in self.macros:
            return self._call(name, [], name)
        if name in self.known:
            raise Undefined(f"{name} has no value")
        raise DataError(f"SMT-LIB symbol {name!r} is declared nowhere")

    def _truth(self, term: Any, local: Mapping[str, Value]) -> bool:
        value = self.of(term, local)
        if not isinstance(value, bool):
            raise DataError(f"SMT-LIB term {term_text(term)} is a number where a formula must stand")
        return value

    def _call(self, name: str, given: Sequence[Value], term: Term) -> Value:
        macro = self.macros.get(name)
        if macro is not None:
            if len(given) != len(macro.parameters):
                raise DataError(
                    f"SMT-LIB term {term_text(term)} has {len(given)} arguments, the function {len(macro.parameters)}"
                )
            # a body sees its own parameters and the text's variables, not what surrounds the call
            return self.of(macro.body, dict(zip(macro.parameters, given, strict=True)))
        function = FUNCTIONS[name]
        kinds = {"Bool" if isinstance(value, bool) else "Real" for value in given}
        if not function.least <= len(given) <= function.most or len(kinds) > 1 or (function.kind and kinds != {function.kind}):
            raise DataError(f"SMT-LIB term {term_text(term)} has arguments of the wrong number or sort")
        try:
            return function.apply(given)
        except ZeroDivisionError:
            raise Undefined(f"{term_text(term)} divides by zero") from None
