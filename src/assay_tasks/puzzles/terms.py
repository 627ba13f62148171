"""Expressions over whole numbers, as a puzzle's file writes them: read safely, evaluated, made into constraints.

The language is a part of Python's: whole numbers, names, ``list[index]``, ``+ - * // %``, comparisons (also in chains), ``and``,
``or``, ``not``, and the functions in `FUNCTIONS`. Nothing is ever run: a text is parsed, and everything else is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import prod
from typing import Any, cast

from assay.core.errors import ConfigError, UnknownNameError
from assay_tasks.puzzles.constraints import AllDifferent, Constraint, Every, mask_of, relate, values_in

__all__ = ["FUNCTIONS", "Formula", "Ref", "Term", "constraint_of", "names_of", "read", "replace_names"]

FUNCTIONS = ("abs", "min", "max", "sum", "count", "different", "implies", "len")
"""``count(a, b, ...)`` is how many are true, ``different(...)`` that no two are equal, ``implies(a, b)`` is ``b or not a``."""

_ARITHMETIC: Mapping[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
_COMPARE: Mapping[type[ast.AST], str] = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_DEEP, _LONG = 40, 2000


@dataclass(frozen=True, slots=True)
class Ref:
    """A variable in an expression: its number in the model, and what is added to the model's value of it."""

    cell: int
    offset: int = 0


Term = Any
"""A whole number, a `Ref`, a list of terms, a name ``("name", text)``, or an operation ``(sign, term, ...)``."""


@lru_cache(maxsize=4096)
def read(text: str) -> Term:
    """An expression as a term, with names in it.

    Raises:
        ConfigError: it is no expression of the language; says which part.

    >>> read("2 * x + 1 <= y[0]")
    ('<=', ('+', ('*', 2, ('name', 'x')), 1), ('at', ('name', 'y'), 0))
    """
    if len(text) > _LONG:
        raise ConfigError(f"an expression of {len(text)} characters is too long; write at most {_LONG}")
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(
            f"{text!r} is no expression: {getattr(error, 'msg', error)}; write one such as '2*x + y <= 9'"
        ) from None
    return _term(parsed, text, 0)


def _term(node: ast.expr, text: str, depth: int) -> Term:
    if depth > _DEEP:
        raise ConfigError(f"{text[:80]!r} is nested more than {_DEEP} deep; split it into several constraints")

    def inner(part: ast.expr) -> Term:
        return _term(part, text, depth + 1)

    match node:
        case ast.Constant(value=bool(value)) | ast.Constant(value=int(value)):
            return int(value)
        case ast.Name(id=name):
            return ("name", name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return (_ARITHMETIC[type(op)], inner(left), inner(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ("-", 0, inner(operand))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ("not", inner(operand))
        case ast.BoolOp(op=op, values=parts):
            return ("and" if isinstance(op, ast.And) else "or", *map(inner, parts))
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARE for op in ops):
            sides = [inner(left), *map(inner, others)]
            links = [(_COMPARE[type(op)], sides[i], sides[i + 1]) for i, op in enumerate(ops)]
            return links[0] if len(links) == 1 else ("and", *links)
        case ast.Subscript(value=value, slice=index):
            return ("at", inner(value), inner(index))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]):
            if name not in FUNCTIONS:
                raise UnknownNameError(f"function in {text!r}", name, FUNCTIONS)
            return (name, *map(inner, given))
        case _:
            raise ConfigError(
                f"{ast.unparse(node)!r} in {text!r} is not allowed; use whole numbers, names, list[index], + - * // %, "
                f"comparisons, and, or, not, and {', '.join(FUNCTIONS)}"
            )


def names_of(term: Term) -> set[str]:
    """Names that occur in a term.

    >>> sorted(names_of(read("x + y[i] > 2")))
    ['i', 'x', 'y']
    """
    if isinstance(term, tuple):
        parts = cast("tuple[Any, ...]", term)
        return {parts[1]} if parts[0] == "name" else set[str]().union(*map(names_of, parts[1:]))
    return set()


def replace_names(term: Term, known: Mapping[str, Any]) -> Term:
    """A term with names replaced by what they stand for, and what can be calculated calculated.

    Raises:
        ConfigError: a name that is not known, an index that is none, a division by 0 or by what is not known.

    >>> replace_names(read("2 * x + a[1] > 9"), {"x": 3, "a": [1, Ref(0)]})
    ('>', ('+', 6, Ref(cell=0, offset=0)), 9)
    """
    if not isinstance(term, tuple):
        return term
    sign, *parts = cast("tuple[Any, ...]", term)
    if sign == "name":
        if parts[0] not in known:
            raise UnknownNameError("name in an expression", parts[0], known)
        return known[parts[0]]
    done = [replace_names(part, known) for part in parts]
    if sign == "at":
        return _element(done[0], done[1])
    if sign in ("sum", "min", "max", "different", "count", "len"):
        done = _flat(done)
    if sign != "len" and any(isinstance(part, list | str) for part in done):
        raise ConfigError(f"{sign} is given a list or a word; give it numbers, and take an element of a list as in names[0]")
    if sign in ("//", "%") and (not isinstance(done[1], int) or done[1] <= 0):
        raise ConfigError(f"{sign} divides by {_term_text(done[1])}; divide by a number or parameter that is 1 or more")
    if all(isinstance(part, int) for part in done) or sign == "len":
        return _OPERATIONS[sign](done)
    return (sign, *done)


def _element(items: Any, index: Any) -> Term:
    listed: list[Any] = list(cast("Sequence[Any]", items)) if isinstance(items, list | tuple) else []
    if not isinstance(index, int) or not 0 <= index < len(listed):
        raise ConfigError(
            f"index {_term_text(index)} is none of a list of {len(listed)}; indices are numbers from 0, and no variables"
        )
    return listed[index]


def _flat(parts: Sequence[Any]) -> list[Any]:
    return [item for part in parts for item in (cast("list[Any]", part) if isinstance(part, list) else [part])]


def _term_text(term: Term) -> str:
    return str(term) if isinstance(term, int) else "a variable"


def _fold_operator(apply: Callable[[int, int], int]) -> Callable[[Sequence[int]], int]:
    return lambda given: reduce(apply, given)


_OPERATIONS: Mapping[str, Callable[[Sequence[int]], int]] = {
    "+": _fold_operator(lambda a, b: a + b),
    "-": _fold_operator(lambda a, b: a - b),
    "*": _fold_operator(lambda a, b: a * b),
    "//": _fold_operator(lambda a, b: a // b),
    "%": _fold_operator(lambda a, b: a % b),
    "==": lambda given: int(given[0] == given[1]),
    "!=": lambda given: int(given[0] != given[1]),
    "<": lambda given: int(given[0] < given[1]),
    "<=": lambda given: int(given[0] <= given[1]),
    ">": lambda given: int(given[0] > given[1]),
    ">=": lambda given: int(given[0] >= given[1]),
    "and": lambda given: int(all(given)),
    "or": lambda given: int(any(given)),
    "not": lambda given: int(not given[0]),
    "implies": lambda given: int(bool(given[1]) or not given[0]),
    "abs": lambda given: abs(given[0]),
    "min": min,
    "max": max,
    "sum": sum,
    "count": lambda given: sum(map(bool, given)),
    "different": lambda given: int(len(set(given)) == len(given)),
    "len": len,
}


def value_of(term: Term, values: Sequence[int]) -> int:
    """What a term without names is, under values of the model's variables."""
    if isinstance(term, int):
        return term
    if isinstance(term, Ref):
        return values[term.cell] + term.offset
    return _OPERATIONS[term[0]]([value_of(part, values) for part in term[1:]])


def cells_of(term: Term) -> list[int]:
    """Variables in a term, in order."""
    if isinstance(term, Ref):
        return [term.cell]
    parts = cast("tuple[Any, ...]", term)[1:] if isinstance(term, tuple) else ()
    return list(dict.fromkeys(cell for part in parts for cell in cells_of(part)))


class Formula(Constraint):
    """A term that must be true. It narrows domains where one variable is left, or few combinations are."""

    __slots__ = ("term",)

    def __init__(self, term: Term) -> None:
        self.term, self.cells = term, cells_of(term)

    def filter(self, dom: list[int], changed: list[int]) -> bool:
        """Values that no combination of the others makes true go; too many combinations are left alone."""
        choices = [values_in(dom[c]) for c in self.cells]
        size = prod(map(len, choices))
        if size > 64 and sum(len(values) > 1 for values in choices) > 1:
            return True
        values = [0] * len(dom)
        kept = [0] * len(self.cells)
        self._search(0, choices, values, kept)
        for c, mask in zip(self.cells, kept, strict=True):
            if mask != dom[c]:
                if not mask:
                    return False
                dom[c] = mask
                changed.append(c)
        return bool(self.cells) or bool(value_of(self.term, values))

    def _search(self, depth: int, choices: Sequence[Sequence[int]], values: list[int], kept: list[int]) -> None:
        if depth == len(self.cells):
            if value_of(self.term, values):
                for i, c in enumerate(self.cells):
                    kept[i] |= 1 << values[c]
            return
        for value in choices[depth]:
            values[self.cells[depth]] = value
            self._search(depth + 1, choices, values, kept)

    def holds(self, values: Sequence[int]) -> bool:
        """Whether it is true."""
        return bool(value_of(self.term, values))

    def smt(self, names: Sequence[str]) -> str:
        """The same term."""
        return _true(self.term, names)


_TRUTHS = frozenset({"==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "implies", "different"})


def _true(term: Term, names: Sequence[str]) -> str:
    """A term of SMT-LIB that is a truth value."""
    if isinstance(term, int | Ref):
        return f"(distinct {_numeric(term, names)} 0)"
    sign, *parts = term
    match sign:
        case "and" | "or" | "not" | "implies":
            return f"({'=>' if sign == 'implies' else sign} {' '.join(_true(part, names) for part in parts)})"
        case "different":
            return f"(distinct {' '.join(_numeric(part, names) for part in parts)})" if len(parts) > 1 else "true"
        case "==" | "!=":
            return f"({'=' if sign == '==' else 'distinct'} {' '.join(_numeric(part, names) for part in parts)})"
        case "<" | "<=" | ">" | ">=":
            return f"({sign} {' '.join(_numeric(part, names) for part in parts)})"
        case _:
            return f"(distinct {_numeric(term, names)} 0)"


def _numeric(term: Term, names: Sequence[str]) -> str:
    """A term of SMT-LIB that is a number; a truth value counts as 1 or 0."""
    if isinstance(term, int):
        return str(term) if term >= 0 else f"(- {-term})"
    if isinstance(term, Ref):
        return f"(+ {names[term.cell]} {_numeric(term.offset, names)})" if term.offset else names[term.cell]
    sign, *parts = term
    if sign in _TRUTHS:
        return f"(ite {_true(term, names)} 1 0)"
    inner = [_numeric(part, names) for part in parts]
    match sign:
        case "//" | "%":
            return f"({'div' if sign == '//' else 'mod'} {inner[0]} {inner[1]})"
        case "min" | "max":
            relation = "<=" if sign == "min" else ">="
            return reduce(lambda a, b: f"(ite ({relation} {a} {b}) {a} {b})", inner)
        case "count":
            return f"(+ {' '.join(f'(ite {_true(part, names)} 1 0)' for part in parts)} 0)"
        case "sum":
            return f"(+ {' '.join(inner)} 0)"
        case _:
            return f"({sign} {' '.join(inner)})"


def linear_in(term: Term) -> tuple[dict[int, int], int] | None:
    """A term as factors of variables and a constant; None where it is not linear."""
    if isinstance(term, int):
        return {}, term
    if isinstance(term, Ref):
        return {term.cell: 1}, term.offset
    sign, *parts = term
    if sign not in ("+", "-", "*", "sum"):
        return None
    sides = [linear_in(part) for part in parts]
    if any(side is None for side in sides):
        return None
    total, constant = dict[int, int](), 0
    if sign == "*":
        (one, first), (other, second) = cast("Any", sides)
        if one and other:
            return None
        factor, scaled, base = (first, other, second) if not one else (second, one, first)
        return {cell: factor * f for cell, f in scaled.items()}, factor * base
    for i, (factors, base) in enumerate(cast("list[tuple[dict[int, int], int]]", sides)):
        weight = -1 if sign == "-" and i else 1
        constant += weight * base
        for cell, f in factors.items():
            total[cell] = total.get(cell, 0) + weight * f
    return total, constant


def constraint_of(term: Term) -> Constraint:
    """A term as a constraint: linear where it is, all different where it says so, else a `Formula`."""
    if isinstance(term, tuple):
        sign, *parts = cast("tuple[Any, ...]", term)
        if sign == "and":
            return Every(*map(constraint_of, parts))
        if sign == "different" and all(isinstance(part, Ref) and not part.offset for part in parts):
            return AllDifferent([part.cell for part in parts])
        if sign in _COMPARE.values():
            left = linear_in(("-", *parts))
            if left is not None and any(left[0].values()):
                cells = [cell for cell, f in left[0].items() if f]
                return relate(cells, [left[0][cell] for cell in cells], sign, -left[1])
    return Formula(term)


def domain_of(low: int, high: int) -> int:
    """The domain of a variable from 0 that stands for one from ``low`` to ``high``."""
    return mask_of(range(high - low + 1)) if low < 0 else mask_of(range(low, high + 1))
