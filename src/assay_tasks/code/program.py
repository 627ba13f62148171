"""A small language of whole numbers, arrays and functions, as plain JSON, and its interpreter.

Expressions are a number, a name, ``[op, a, b]`` with ``+ - * // % & | ^ << >>``, ``["at", array, index]`` or ``["call", function,
[arguments]]``; conditions ``[op, a, b]`` with ``< <= > >= == !=``, ``["and" | "or", a, b]`` or ``["not", a]``. Statements are

- ``["let", name, expression]``, ``["set", name, expression]``, ``["array", name, [numbers]]``,
- ``["put", array, index, expression]``,
- ``["if", condition, then, else]``, ``["for", name, from, below, body]``, ``["while", condition, body]``, ``["break"]``,
- ``["print", [expressions]]``, ``["return", expression]``, and ``["mark", statement]``, a statement with a comment.

What a program does is the same in every language it is written in: nothing overflows 32 bits, nothing negative is divided or has
its bits taken, no index is outside its array. A program that would do such a thing has no run (`Unclear`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Machine", "Run", "Unclear", "run"]

_MOST = 10**9
_DEEP = 60


class Unclear(Exception):
    """A program that languages would not agree on, or that takes too long."""


@dataclass(slots=True)
class Run:
    """What a program did.

    Attributes:
        output: the lines that it printed.
        steps: statements executed and operations done.
        marks: for each time the marked statement was done, all numbers by name right after it.
        values: numbers and arrays at the end.
    """

    output: list[str] = field(default_factory=list[str])
    steps: int = 0
    marks: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    values: dict[str, Any] = field(default_factory=dict[str, Any])


class _Break(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: int) -> None:
        self.value = value


def run(program: Mapping[str, Any], most: int = 5000) -> Run:
    """Run a program: ``functions``, a list of ``[name, [parameters], body]``, and ``main``, a list of statements.

    Args:
        program: as plain JSON.
        most: steps after which it is given up.

    Raises:
        Unclear: see above.

    >>> run({"functions": [], "main": [["let", "a", 2], ["print", [["*", "a", 21]]]]}).output
    ['42']
    """
    machine = Machine({name: (params, body) for name, params, body in program["functions"]}, most)
    machine.block(program["main"], machine.run.values)
    return machine.run


@dataclass(slots=True)
class Machine:
    """An interpreter in the middle of a run.

    Attributes:
        functions: parameters and body by name.
        most: steps allowed.
        run: what has happened so far.
        depth: calls within calls.
    """

    functions: Mapping[str, tuple[Sequence[str], Sequence[Any]]]
    most: int
    run: Run = field(default_factory=Run)
    depth: int = 0

    def block(self, body: Sequence[Any], env: dict[str, Any]) -> None:
        """Statements in turn."""
        for statement in body:
            self.statement(statement, env)

    def statement(self, statement: Sequence[Any], env: dict[str, Any]) -> None:
        """One statement."""
        self._step()
        match statement[0]:
            case "let" | "set":
                env[statement[1]] = self.value(statement[2], env)
            case "put":
                at = self.value(statement[2], env)
                self._inside(env[statement[1]], at)
                env[statement[1]][at] = self.value(statement[3], env)
            case "array":
                env[statement[1]] = list(statement[2])
            case "if":
                self.block(statement[2] if self.truth(statement[1], env) else statement[3], env)
            case "for":
                self._for(statement, env)
            case "while":
                try:
                    while self.truth(statement[1], env):
                        self.block(statement[2], env)
                except _Break:
                    pass
            case "break":
                raise _Break
            case "print":
                self.run.output.append(" ".join(str(self.value(e, env)) for e in statement[1]))
            case "return":
                raise _Return(self.value(statement[1], env))
            case _:
                self.statement(statement[1], env)
                self.run.marks.append({k: v for k, v in env.items() if isinstance(v, int)})

    def _for(self, statement: Sequence[Any], env: dict[str, Any]) -> None:
        _, name, start, below, body = statement
        try:
            for i in range(self.value(start, env), self.value(below, env)):
                env[name] = i
                self.block(body, env)
        except _Break:
            pass
        env.pop(name, None)  # in most languages it is gone behind the loop

    def value(self, expression: Any, env: dict[str, Any]) -> int:
        """The value of an expression."""
        if isinstance(expression, int):
            return expression
        if isinstance(expression, str):
            return env[expression]
        op = expression[0]
        if op == "at":
            at = self.value(expression[2], env)
            self._inside(env[expression[1]], at)
            return env[expression[1]][at]
        if op == "call":
            return self._call(expression[1], [self.value(e, env) for e in expression[2]])
        self._step()
        found = _apply_operator(op, self.value(expression[1], env), self.value(expression[2], env))
        if not -_MOST < found < _MOST:
            raise Unclear("too large")
        return found

    def truth(self, condition: Sequence[Any], env: dict[str, Any]) -> bool:
        """Whether a condition holds."""
        self._step()
        op = condition[0]
        if op == "not":
            return not self.truth(condition[1], env)
        if op == "and":
            return self.truth(condition[1], env) and self.truth(condition[2], env)
        if op == "or":
            return self.truth(condition[1], env) or self.truth(condition[2], env)
        a, b = self.value(condition[1], env), self.value(condition[2], env)
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op]

    def _call(self, name: str, values: list[int]) -> int:
        params, body = self.functions[name]
        if self.depth >= _DEEP:
            raise Unclear("too deep")
        self.depth += 1
        try:
            self.block(body, dict(zip(params, values, strict=True)))
        except _Return as done:
            return done.value
        finally:
            self.depth -= 1
        raise Unclear(f"{name} returns nothing")

    def _inside(self, array: Sequence[int], at: int) -> None:
        if not 0 <= at < len(array):
            raise Unclear("index")

    def _step(self) -> None:
        self.run.steps += 1
        if self.run.steps > self.most:
            raise Unclear("too long")


def _apply_operator(op: str, a: int, b: int) -> int:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            if not a * b and min(a, b) < 0:
                raise Unclear("-0 in JavaScript")
            return a * b
        case _:
            pass
    if a < 0 or b < 0 or (b == 0 and op in ("//", "%")) or (b > 16 and op in ("<<", ">>")):
        raise Unclear(f"{a} {op} {b}")
    match op:
        case "//":
            return a // b
        case "%":
            return a % b
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "<<":
            return a << b
        case _:
            return a >> b
