"""Test code taken apart: what must be run beside the program, and what can be compared without it.

An assertion such as ``assert f(2) == 4`` is split: ``f(2)`` is evaluated where the program is, and its value comes back as plain
data; the 4, and the comparison, stay in this process. So what is expected never stands where the program could find it, and no
object of the program's takes part in the comparison.
"""

from __future__ import annotations

import ast
import copy
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

__all__ = ["Object", "Raised", "SplitTests", "plain_of", "split_tests"]

_COMPARED: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("not in", lambda a, b: a not in b),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
}
_COUNTED: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: operator.mod,
    ast.Pow: lambda a, b: a**b,
}
_SIGNED: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos}
_OF_LITERALS: dict[str, Callable[..., Any]] = {
    "set": set,
    "frozenset": frozenset,
    "sorted": sorted,
    "list": list,
    "tuple": tuple,
    "float": float,
    "int": int,
    "str": str,
    "len": len,
    "sum": sum,
    "min": min,
    "max": max,
    "abs": abs,
    "round": round,
}
_OF_VALUES: dict[str, Callable[..., Any]] = {"abs": abs, "round": round, "isclose": math.isclose}
_OPEN = (ast.Compare, ast.Assert, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_MOST = 10**6
_MOST_TURNS = 200

_Check = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """A value that is no plain data: all that is known of it is whether it counts as true. It equals nothing.

    Attributes:
        truth: whether it does.
    """

    truth: bool

    def __bool__(self) -> bool:
        return self.truth


class Raised(Exception):
    """What was to be evaluated raised an error; says which."""


@dataclass(frozen=True, slots=True)
class SplitTests:
    """Test code in two parts.

    Attributes:
        steps: for the program's process, in order: ``["run", statements]``, ``["see", expression]``, or ``["pair", expression,
            expression, sign]`` for a comparison of two values of which neither is written out.
        checks: for each assertion, behind how many steps it stands, and what says whether it holds, given what the steps gave.
    """

    steps: tuple[list[str], ...]
    checks: tuple[tuple[int, _Check], ...]


class _NotLiteral(Exception):
    """A part of test code has no value of its own."""


class _Whole(Exception):
    """Test code cannot be taken apart."""


def split_tests(test: str) -> SplitTests | None:
    r"""The two parts of test code; None where it compares elsewhere than in assertions of its own body.

    A function that is called once in the body, as in ``def check(f): ...; check(g)``, counts as part of the body; so does each
    turn of a loop over values that are written out. A name that stands for such a value and is only compared counts as the value.

    >>> split_tests("x = 2\nassert f(x) == 4").steps
    (['run', 'x = 2'], ['see', 'f(x)'])
    >>> split_tests("def test():\n    assert f(2) == 4") is None
    True
    """
    taken = _Taken()
    try:
        for statement in _without_constants(_unroll_loops(_inline_helpers(ast.parse(test).body))):
            taken.add(statement)
    except (_Whole, SyntaxError, ValueError, RecursionError):
        return None
    return SplitTests(tuple(taken.steps), tuple(taken.checks)) if taken.checks else None


def plain_of(shown: Any) -> Any:
    """A value as the program's process shows it (`assay.sandbox.inside.shown`).

    >>> plain_of(["tuple", [1, ["set", ["a"]]]]), plain_of(["object", True])
    ((1, {'a'}), Object(truth=True))
    """
    if not isinstance(shown, list):
        return shown
    kind, value = cast("list[Any]", shown)
    if kind == "object":
        return Object(bool(value))
    if kind in ("bytes", "complex"):
        return bytes.fromhex(value) if kind == "bytes" else complex(*value)
    parts = [plain_of(part) for part in value]
    if kind == "dict":
        return dict(zip(parts[::2], parts[1::2], strict=True))
    return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind](parts)


def _inline_helpers(body: list[ast.stmt]) -> list[ast.stmt]:
    """A body in which a function of assertions that is called once stands where it is called."""
    functions = {
        s.name: s for s in body if isinstance(s, ast.FunctionDef) and any(isinstance(n, ast.Assert) for n in ast.walk(s))
    }
    found: list[ast.stmt] = []
    for statement in body:
        call = statement.value if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
        named = functions.get(call.func.id) if call is not None and isinstance(call.func, ast.Name) else None
        if isinstance(statement, ast.FunctionDef) and statement.name in functions:
            uses = sum(isinstance(n, ast.Name) and n.id == statement.name for s in body for n in ast.walk(s))
            if uses != 1:
                raise _Whole
        elif call is None or named is None:
            found.append(statement)
        else:
            found += _inline_call(named, call)
    return found


def _inline_call(function: ast.FunctionDef, call: ast.Call) -> list[ast.stmt]:
    names = [argument.arg for argument in function.args.args]
    others = (
        function.args.vararg,
        function.args.kwarg,
        *function.args.posonlyargs,
        *function.args.kwonlyargs,
        *function.args.defaults,
    )
    if any(others) or call.keywords or len(names) != len(call.args) or function.decorator_list:
        raise _Whole
    if any(isinstance(n, ast.Return | ast.Global | ast.Nonlocal | ast.Starred) for n in (*ast.walk(function), *call.args)):
        raise _Whole
    given = [ast.Assign(targets=[ast.Name(n, ast.Store())], value=v, lineno=0) for n, v in zip(names, call.args, strict=True)]
    return [*given, *function.body]


def _unroll_loops(body: list[ast.stmt]) -> list[ast.stmt]:
    """A body with the turns of its loops over written values one behind the other."""
    found: list[ast.stmt] = []
    for statement in body:
        turns = _turns(statement) if isinstance(statement, ast.For) else None
        if turns is None:
            found.append(statement)
        else:
            for names in turns:
                found += [cast("ast.stmt", _Put(names).visit(copy.deepcopy(inner))) for inner in cast("ast.For", statement).body]
    return found


def _turns(loop: ast.For) -> list[dict[str, ast.expr]] | None:
    """What a loop's names stand for in each turn; None where that is not written out."""
    items = loop.iter.elts if isinstance(loop.iter, ast.List | ast.Tuple) else []
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    simple = all(isinstance(inner, ast.Assert | ast.Expr) for inner in loop.body) and not loop.orelse
    if not simple or not 0 < len(items) <= _MOST_TURNS or len(names) != len(targets) or not all(map(_is_literal, items)):
        return None
    turns: list[dict[str, ast.expr]] = []
    for item in items:
        parts = [item] if not isinstance(loop.target, ast.Tuple) else item.elts if isinstance(item, ast.List | ast.Tuple) else []
        if len(parts) != len(names):
            return None
        turns.append(dict(zip(names, parts, strict=True)))
    return turns


def _without_constants(body: list[ast.stmt]) -> list[ast.stmt]:
    """A body in which names that stand for a written value and are only compared have given way to the value."""
    nodes = [n for s in body for n in ast.walk(s)]
    compared = [id(side) for n in nodes if isinstance(n, ast.Compare) for side in (n.left, *n.comparators)]
    named = [n for n in nodes if isinstance(n, ast.Name)]
    known: dict[str, ast.expr] = {}
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(name)], value) if _is_literal(value):
                uses = [n for n in named if n.id == name and n is not statement.targets[0]]
                if uses and all(id(n) in compared for n in uses):
                    known[name] = value
            case _:
                pass
    kept = [
        s for s in body if not (isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and s.targets[0].id in known)
    ]
    return [cast("ast.stmt", _Put(known).visit(s)) for s in kept]


class _Put(ast.NodeTransformer):
    """Puts values in the place of names."""

    def __init__(self, known: dict[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The value, or the name itself."""
        return copy.deepcopy(self.known[node.id]) if node.id in self.known and isinstance(node.ctx, ast.Load) else node


@dataclass(slots=True)
class _Taken:
    """Steps and checks while a body is taken apart."""

    steps: list[list[str]] = field(default_factory=list[list[str]])
    checks: list[tuple[int, _Check]] = field(default_factory=list[tuple[int, _Check]])

    def add(self, statement: ast.stmt) -> None:
        """One statement more."""
        if isinstance(statement, ast.Assert):
            check = self._value(statement.test)
            self.checks.append((len(self.steps), check))
            return
        _refuse_threads(statement)
        text = ast.unparse(ast.fix_missing_locations(statement))
        if self.steps and self.steps[-1][0] == "run" and not (self.checks and self.checks[-1][0] == len(self.steps)):
            self.steps[-1][1] += f"\n{text}"
        else:
            self.steps.append(["run", text])

    def _value(self, node: ast.expr) -> _Check:
        """What gives the value of a part of an assertion."""
        try:
            value = _literal(node)
        except _NotLiteral:
            return self._of_parts(node)
        return lambda _: value

    def _of_parts(self, node: ast.expr) -> _Check:
        match node:
            case ast.BoolOp(op, values):
                parts = [self._value(value) for value in values]
                return (
                    (lambda seen: all(p(seen) for p in parts))
                    if isinstance(op, ast.And)
                    else (lambda seen: any(p(seen) for p in parts))
                )
            case ast.UnaryOp(op, operand) if type(op) in _SIGNED:
                inner, sign = self._value(operand), _SIGNED[type(op)]
                return lambda seen: sign(inner(seen))
            case ast.Compare():
                return self._check_comparison(node)
            case ast.BinOp(left, op, right) if (
                type(op) in _COUNTED and not isinstance(op, ast.Pow) and (_is_literal(left) or _is_literal(right))
            ):
                one, other, count = self._value(left), self._value(right), _COUNTED[type(op)]
                return lambda seen: _count_small(count, one(seen), other(seen))
            case ast.List(elts) | ast.Tuple(elts) | ast.Set(elts) if not any(isinstance(e, ast.Starred) for e in elts):
                items, kind = [self._value(e) for e in elts], {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
                return lambda seen: kind(item(seen) for item in items)
            case ast.Call(func, args, keywords) if (
                _name(func) in _OF_VALUES and args and not any(isinstance(a, ast.Starred) for a in args)
            ):
                return self._call(_OF_VALUES[_name(func)], args, keywords, node)
            case _:
                return self._check_call(node)

    def _call(self, function: Callable[..., Any], args: list[ast.expr], keywords: list[ast.keyword], node: ast.expr) -> _Check:
        """A function of numbers on values of which one is written out, or is worked out of one that is."""
        inner = [n for a in args for n in ast.walk(a)]
        if not any(isinstance(n, ast.Constant) for n in inner) or any(k.arg is None for k in keywords):
            return self._check_call(node)
        given = [self._value(a) for a in args]
        named = {str(k.arg): self._value(k.value) for k in keywords}
        return lambda seen: function(*(g(seen) for g in given), **{name: value(seen) for name, value in named.items()})

    def _check_comparison(self, node: ast.Compare) -> _Check:
        sides, signs = [node.left, *node.comparators], [_COMPARED[type(op)] for op in node.ops]
        made = any(
            isinstance(side, ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare) and not _is_literal(side) for side in sides
        )
        asked = signs[0][0] in ("in", "not in") or not _is_literal(sides[0])
        if len(signs) == 1 and not made and asked and not _is_literal(sides[1]):
            return self._pair(sides, *signs[0])
        values = [self._value(side) for side in sides]

        def holds(seen: Sequence[Any]) -> bool:
            given = [value(seen) for value in values]
            return all(compare(a, b) for (_, compare), a, b in zip(signs, given, given[1:], strict=False))

        return holds

    def _pair(self, sides: list[ast.expr], sign: str, compare: Callable[[Any, Any], Any]) -> _Check:
        for side in sides:
            _refuse_threads(side)
        at = len(self.steps)
        self.steps.append(["pair", *(ast.unparse(side) for side in sides), sign])

        def holds(seen: Sequence[Any]) -> Any:
            one, other, theirs = _value_at(seen, at)
            return theirs if sign in ("is", "is not") or _has_object(one) or _has_object(other) else compare(one, other)

        return holds

    def _check_call(self, node: ast.expr) -> _Check:
        _refuse_threads(node)
        at = len(self.steps)
        self.steps.append(["see", ast.unparse(node)])
        return lambda seen: _value_at(seen, at)


def _refuse_threads(node: ast.AST) -> None:
    """Refuses a part that runs beside the program and compares there."""
    if any(isinstance(inner, _OPEN) for inner in ast.walk(node)):
        raise _Whole


def _value_at(seen: Sequence[Any], at: int) -> Any:
    if isinstance(seen[at], Raised):
        raise seen[at]
    return seen[at]


def _has_object(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_object(part) for pair in cast("dict[Any, Any]", value).items() for part in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(_has_object, cast("list[Any]", value)))
    return isinstance(value, Object)


def _count_small(count: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """Arithmetic that stays small."""
    for text, times in ((one, other), (other, one)):
        if isinstance(text, str | bytes | list | tuple) and isinstance(times, int) and len(cast("str", text)) * times > _MOST:
            raise OverflowError("the text would be too long")
    if count is operator.mod and isinstance(one, str | bytes):
        raise TypeError("no formats")
    return count(one, other)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_literal(node: ast.expr) -> bool:
    try:
        _literal(node)
    except _NotLiteral:
        return False
    return True


def _literal(node: ast.expr) -> Any:
    """The value of a part that is written out."""
    try:
        match node:
            case ast.Constant(value):
                return value
            case ast.UnaryOp(op, operand) if type(op) in _SIGNED:
                return _SIGNED[type(op)](_literal(operand))
            case ast.BinOp(left, op, right) if type(op) in _COUNTED:
                one, other = _literal(left), _literal(right)
                if isinstance(op, ast.Pow) and not (isinstance(other, int) and -64 <= other <= 64):
                    raise _NotLiteral
                return _count_small(_COUNTED[type(op)], one, other)
            case ast.List(elts) | ast.Tuple(elts) | ast.Set(elts):
                return {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)](map(_literal, elts))
            case ast.Dict(keys, values) if None not in keys:
                return {_literal(cast("ast.expr", k)): _literal(v) for k, v in zip(keys, values, strict=True)}
            case ast.Call(ast.Name(name), args, keywords) if name in _OF_LITERALS and not keywords:
                return _OF_LITERALS[name](*map(_literal, args))
            case _:
                raise _NotLiteral
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        raise _NotLiteral from None
