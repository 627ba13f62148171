"""Random programs of the small language, which end and which every language agrees on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from assay.core.errors import DataError
from assay_tasks.code.program import Run, Unclear, run

__all__ = ["drawn_program", "lively"]

_NAMES = ("a", "b", "c", "d", "n", "p", "q", "s", "t", "x", "y", "z")
_TRIES = 200
_STEPS = (40, 40, 70, 110, 300, 400, 800, 1500)
"""Most steps of a program, by level."""


def drawn_program(level: int, rng: Random, mark: str = "", most: int = 0) -> dict[str, Any]:
    """A program of a level from 1 to 8, which runs and prints something that its statements matter for.

    1 straight lines, 2 a branch, 3 a loop, 4 a branch in a loop, 5 an array, 6 a function, 7 nested loops, 8 recursion and an
    array.

    Args:
        level: from 1 to 8.
        rng: draws it.
        mark: mark an assignment: ``line`` in a straight line or a loop, ``branch`` in a branch.
        most: steps that it may take; 0 for what suits the level.

    Raises:
        DataError: none was found.
    """
    for _ in range(_TRIES):
        program = _Maker(level, rng, mark).program()
        try:
            done = run(program, most or _STEPS[level - 1])
        except Unclear:
            continue
        if lively(done) and (not mark or done.marks):
            return program
    raise DataError(f"{_TRIES} programs of level {level} did not run as programs of all languages do")


def lively(done: Run) -> bool:
    """Whether a run prints something other than small constants."""
    return bool(done.output) and any(len(word.strip("-")) > 1 for word in " ".join(done.output).split())


@dataclass(slots=True)
class _Maker:
    level: int
    rng: Random
    mark: str
    names: list[str] = field(init=False)
    scalars: list[str] = field(default_factory=list[str])
    array: str = ""
    size: int = 0

    def __post_init__(self) -> None:
        self.names = self.rng.sample(_NAMES, len(_NAMES))

    def program(self) -> dict[str, Any]:
        rng, level = self.rng, self.level
        functions: list[Any] = []
        main: list[Any] = []
        for _ in range(2 if level < 5 else 3):
            main.append(self._let(rng.randint(1, 20)))
        if level in (5, 8):
            self.array, self.size = rng.choice(("xs", "nums", "data")), rng.randint(4, 6) + level // 4 - 1
            main.append(["array", self.array, [rng.randint(0, 19) for _ in range(self.size)]])
        if level in (6, 8):
            functions.append(self._function())
        main += self._middle(functions)
        main.append(["print", list(self.scalars)])
        if self.array:
            i = self._fresh()
            main.append(["for", i, 0, self.size, [["print", [["at", self.array, i]]]]])
        return {"functions": functions, "main": main}

    def _middle(self, functions: Sequence[Any]) -> list[Any]:
        match self.level:
            case 1:
                return [self._mark_line(self.scalars), *(self._update(self.scalars) for _ in range(self.rng.randint(1, 3)))]
            case 2:
                return [self._update(self.scalars), self._branch(self.scalars), self._mark_line(self.scalars)]
            case 3:
                return [self._loop([self._mark_line, self._update])]
            case 4:
                return [self._loop([self._branch, self._mark_line])]
            case 7:
                return [self._nest()]
            case 5:
                return [self._loop([self._put, self._mark_line, self._branch], over=self.size)]
            case 6:
                return [self._loop([partial(self._call_function, functions[0]), self._mark_line, self._branch])]
            case _:
                parts: list[Any] = [partial(self._call_function, functions[0]), self._put, self._mark_line, self._branch]
                return [self._loop(parts, over=self.size)]

    def _fresh(self) -> str:
        return self.names.pop()

    def _let(self, value: Any) -> list[Any]:
        name = self._fresh()
        self.scalars.append(name)
        return ["let", name, value]

    def _mark_line(self, near: Sequence[str]) -> list[Any]:
        statement = self._update(near)
        if self.mark == "line":
            self.mark = ""
            return ["mark", statement]
        return statement

    def _loop(self, parts: Sequence[Any], over: int = 0) -> list[Any]:
        """A for loop, or where nothing hangs on the index a while loop that counts down."""
        rng = self.rng
        if not over and rng.random() < 0.3:
            name, step = rng.choice(self.scalars), rng.randint(1, 4)
            near = [s for s in self.scalars if s != name]
            body = [part(near) for part in parts] if near else []
            return ["while", [">", name, rng.randint(0, 3)], [*body, ["set", name, ["-", name, step]]]]
        index = self._fresh()
        start = 0 if over else rng.randint(0, 3)
        near = [*self.scalars, index]
        return ["for", index, start, over or start + rng.randint(3, 6), [part(near) for part in parts]]

    def _nest(self) -> list[Any]:
        outer, inner = self._fresh(), self._fresh()
        near = [*self.scalars, outer, inner]
        start = self.rng.choice((0, outer))
        body = [self._mark_line(near), self._branch(near)]
        below = ["+", outer, self.rng.randint(3, 4)] if start else self.rng.randint(3, 5)
        first, second = self._update([*self.scalars, outer]), ["for", inner, start, below, body]
        return ["for", outer, 0, self.rng.randint(4, 5), [first, second] if self.rng.random() < 0.5 else [second, first]]

    def _update(self, near: Sequence[str]) -> list[Any]:
        rng = self.rng
        name = rng.choice(self.scalars)
        others = [n for n in near if n != name] or [rng.randint(2, 9)]
        other = rng.choice(others)
        small = rng.randint(2, 9)
        form = rng.randrange(8 if self.level > 1 else 5)
        expression: Any = [
            ["+", name, other],
            ["-", ["*", name, 2], other],
            ["+", ["*", other, small], name],
            ["+", name, ["*", other, small]],
            ["-", name, small],
            ["%", ["+", ["*", name, small], other], rng.randint(11, 97)],
            ["^", name, other],
            ["+", ["//", name, 2], other],
        ][form]
        return ["set", name, expression]

    def _branch(self, near: Sequence[str]) -> list[Any]:
        rng = self.rng
        name = rng.choice(list(near))
        divisor = rng.randint(2, 4)
        condition: list[Any] = rng.choice(
            (
                [rng.choice((">", "<", ">=", "<=")), name, rng.choice([n for n in near if n != name] or [rng.randint(2, 30)])],
                ["==", ["%", name, divisor], rng.randrange(divisor)],
                [rng.choice((">", "<")), name, rng.randint(3, 30)],
            )
        )
        if self.level >= 4 and rng.random() < 0.3:
            other = ["<", rng.choice(self.scalars), rng.randint(10, 60)]
            condition = [rng.choice(("and", "or")), condition, other]
        first = self._update(near)
        if self.mark == "branch":
            self.mark, first = "", ["mark", first]
        return ["if", condition, [first], [self._update(near)] if rng.random() < 0.6 else []]

    def _put(self, near: Sequence[str]) -> list[Any]:
        rng, index = self.rng, near[-1]
        before: Any = ["%", ["+", index, rng.randint(1, self.size - 1)], self.size]
        value = rng.choice(
            (
                ["+", ["at", self.array, index], ["at", self.array, before]],
                ["-", ["at", self.array, before], rng.choice(self.scalars)],
                ["*", ["at", self.array, index], rng.randint(2, 3)],
                ["+", ["at", self.array, before], index],
            )
        )
        return ["put", self.array, index, value]

    def _call_function(self, function: Any, near: Sequence[str]) -> list[Any]:
        rng, (name, params, _) = self.rng, function
        target = rng.choice(self.scalars)
        small: list[Any] = [["%", rng.choice(list(near)), rng.randint(5, 9) + 2 * (self.level // 8)] for _ in params]
        return ["set", target, ["+", ["call", name, small], rng.choice((target, rng.randint(1, 9)))]]

    def _function(self) -> list[Any]:
        """A function of one or two numbers; from level 8 on one that calls itself with a smaller number."""
        rng, name = self.rng, self.rng.choice(("f", "g", "h"))
        u, v = "u", "v"
        if self.level >= 8:
            step = rng.randint(1, 2)
            again = ["call", name, [["-", u, step], ["+", v, rng.randint(1, 3)]]]
            grown = rng.choice((["+", again, u], ["-", again, v], ["+", again, ["*", u, v]]))
            return [name, [u, v], [["if", ["<=", u, rng.randint(0, 2)], [["return", v]], []], ["return", grown]]]
        body: list[Any] = [
            ["let", "w", ["+", ["*", u, rng.randint(2, 5)], v]],
            [
                "if",
                rng.choice(([">", u, v], ["==", ["%", u, 2], 0], ["<", v, rng.randint(2, 6)])),
                [["set", "w", ["-", "w", u]]],
                [],
            ],
            ["return", "w"],
        ]
        return [name, [u, v], body]
