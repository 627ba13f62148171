"""Bugs of named sorts, put into sources: one small change each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from assay_tasks.swe.kind import Kind

__all__ = ["SORTS", "Bug", "bugs_of", "function_of"]

SORTS = (
    "boundary",
    "off by one",
    "wrong operator",
    "wrong condition",
    "wrong connective",
    "wrong default",
    "wrong flag",
    "swapped arguments",
    "lost return",
    "missing case",
    "missing step",
    "wrong name",
    "wrong function",
    "wrong order",
    "shared state",
    "stale state",
)
"""Sorts of bugs: the first thirteen come from changes of the syntax tree, all but some of them also by hand."""

_BOUNDS: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_CONDITIONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "%",
    ast.Mod: "//",
    ast.Div: "//",
}
_ASSIGNED: dict[type[ast.operator], str] = {ast.Add: "-=", ast.Sub: "+="}
_FUNCTIONS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sorted": "list",
    "startswith": "endswith",
    "endswith": "startswith",
    "upper": "lower",
    "sum": "max",
}
_STEPS = ("strip", "lower")


@dataclass(frozen=True, slots=True)
class Bug:
    """A change of a source.

    Attributes:
        sort: one of `SORTS`.
        module: of the kind.
        start, end: the characters that go.
        new: what comes in their place.
    """

    sort: str
    module: str
    start: int
    end: int
    new: str

    def put_into(self, source: str) -> str:
        """The source with the bug."""
        return source[: self.start] + self.new + source[self.end :]


@lru_cache(maxsize=64)
def bugs_of(kind: Kind) -> tuple[Bug, ...]:
    """Every bug that a kind's modules may have: those found by the syntax tree, and those by hand; all of them are Python."""
    found: list[Bug] = []
    for module, source in kind.modules.items():
        found += _Places(module, source).bugs()
    for plant in kind.plants:
        source = kind.modules[plant.module]
        start = source.index(plant.old)
        found.append(Bug(plant.sort, plant.module, start, start + len(plant.old), plant.new))
    return tuple(bug for bug in dict.fromkeys(found) if _is_python(bug.put_into(kind.modules[bug.module])))


def function_of(kind: Kind, bug: Bug) -> str:
    """The outermost function whose body holds a bug, as ``path:line``; empty for one that stands outside of all bodies.

    What never calls that function does the same with the bug as without it.
    """
    for line, start, end in _bodies(kind.modules[bug.module]):
        if start <= bug.start and bug.end <= end:
            return f"{kind.path(bug.module)}:{line}"
    return ""


@lru_cache(maxsize=64)
def _bodies(source: str) -> tuple[tuple[int, int, int], ...]:
    """For each function, outer ones first: its line, and the first and last characters of the lines of its body."""
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return tuple((f.lineno, starts[f.body[0].lineno - 1], starts[f.end_lineno or f.lineno]) for f in functions)


def _is_python(source: str) -> bool:
    try:
        compile(source, "bug", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


class _Places:
    """Where a source can go wrong."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source, self.tree = module, source, ast.parse(source)
        functions = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]
        self.defaults = {id(default) for function in functions for default in function.args.defaults}
        self.starts = [0]
        for line in source.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def bugs(self) -> list[Bug]:
        """All of them, from the first node to the last."""
        return [
            Bug(sort, self.module, start, end, new)
            for node in ast.walk(self.tree)
            for find in (self._compare, self._calculate, self._constant, self._flow, self._call, self._name)
            for sort, start, end, new in find(node)
        ]

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._at(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._at(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return self.source[self._start(node) : self._end(node)]

    def _operator_between(self, left: ast.expr, right: ast.expr, sort: str, new: str) -> tuple[str, int, int, str]:
        """The operator between two operands, with no bracket of theirs."""
        start, end = self._end(left), self._start(right)
        gap = self.source[start:end]
        core = gap.strip(" ()\n")
        at = start + gap.index(core)
        return sort, at, at + len(core), new

    def _compare(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(node, ast.Compare):
            for left, right, sign in zip([node.left, *node.comparators], node.comparators, node.ops, strict=False):
                if type(sign) in _BOUNDS:
                    yield self._operator_between(left, right, "boundary", _BOUNDS[type(sign)])
                elif type(sign) in _CONDITIONS:
                    yield self._operator_between(left, right, "wrong condition", _CONDITIONS[type(sign)])
        if isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield self._operator_between(left, right, "wrong connective", "or" if isinstance(node.op, ast.And) else "and")

    def _calculate(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            yield self._operator_between(node.left, node.right, "wrong operator", _OPERATORS[type(node.op)])
        if isinstance(node, ast.AugAssign) and type(node.op) in _ASSIGNED:
            yield self._operator_between(node.target, node.value, "wrong operator", _ASSIGNED[type(node.op)])
            yield self._operator_between(node.target, node.value, "stale state", "=")

    def _constant(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(node, ast.FunctionDef):
            for default in node.args.defaults:
                if isinstance(default, ast.Constant) and isinstance(default.value, bool | int):
                    new = str(not default.value) if isinstance(default.value, bool) else str(default.value + 1)
                    yield "wrong default", self._start(default), self._end(default), new
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield "wrong flag", self._start(node), self._end(node), str(not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int) and id(node) not in self.defaults:
            for new in (node.value + 1, node.value - 1):
                if new >= 0:
                    yield "off by one", self._start(node), self._end(node), str(new)

    def _flow(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
            if isinstance(node.body[0], ast.Return | ast.Raise | ast.Continue):
                yield "missing case", *self._lines(node), ""
        elif isinstance(node, ast.FunctionDef) and len(node.body) > 2 and isinstance(node.body[-1], ast.Return):
            last = node.body[-1]
            if isinstance(last.value, ast.Name | ast.Constant | ast.Attribute):
                yield "lost return", *self._lines(last), ""
            elif isinstance(last.value, ast.Call):
                yield "lost return", self._start(last), self._start(last.value), ""

    def _lines(self, node: ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        return self.starts[node.lineno - 1], self.starts[node.end_lineno]

    def _call(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        if not isinstance(node, ast.Call):
            return
        if len(node.args) >= 2 and not any(isinstance(a, ast.Starred | ast.GeneratorExp) for a in node.args):
            one, two = node.args[:2]
            between = self.source[self._end(one) : self._start(two)]
            yield "swapped arguments", self._start(one), self._end(two), f"{self._text(two)}{between}{self._text(one)}"
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _FUNCTIONS and not (name == "sorted" and node.keywords):
            end = self._end(node.func)
            yield "wrong function", end - len(name), end, _FUNCTIONS[name]
        if name in _STEPS and isinstance(node.func, ast.Attribute):
            yield "missing step", self._end(node.func.value), self._end(node), ""

    def _name(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(node, ast.ClassDef):
            selves = [
                n
                for n in ast.walk(node)
                if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"
            ]
            kept = sorted({n.attr for n in selves if isinstance(n.ctx, ast.Store)})
            for place in selves:
                if isinstance(place.ctx, ast.Load) and place.attr in kept and len(kept) > 1:
                    other = kept[(kept.index(place.attr) + 1) % len(kept)]
                    yield "wrong name", self._end(place) - len(place.attr), self._end(place), other
        if isinstance(node, ast.FunctionDef):
            known = [argument.arg for argument in node.args.args if argument.arg != "self"]
            for place in ast.walk(node):
                if isinstance(place, ast.Name) and isinstance(place.ctx, ast.Load) and place.id in known and len(known) > 1:
                    other = known[(known.index(place.id) + 1) % len(known)]
                    yield "wrong name", self._start(place), self._end(place), other
