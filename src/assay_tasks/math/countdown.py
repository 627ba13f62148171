"""Make a number out of numbers: countdown, 24, and as near as one can get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from assay.core.errors import DataError
from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.verify.structure.countdown import Countdown

__all__ = ["Closest", "MakeAll", "MakeTarget", "TwentyFour", "countdown"]

Number = int | Fraction
Way = tuple[str, int, Number, int, Number]
"""How a value is made: sign, left mask, left value, right mask, right value."""

_TRIES = 500
_RULES = {
    False: "+, -, *, / and brackets",
    True: "+, -, *, / and brackets; every intermediate result must be a whole number",
}


@dataclass(slots=True)
class _Search:
    """What can be made of some of the numbers, each used once; a mask says which.

    Values are positive: where a difference is negative, the other one does as well. Values of up to three numbers are
    listed, larger ones in whole numbers are searched from the target backwards.
    """

    numbers: list[int]
    whole: bool = True
    effort: int = 0
    _known: dict[int, dict[Number, Way | None]] = field(default_factory=dict[int, dict[Number, "Way | None"]])

    def values(self, mask: int) -> dict[Number, Way | None]:
        """Every value of all the numbers in the mask, with one way to make it."""
        known = self._known.get(mask)
        if known is not None:
            return known
        out: dict[Number, Way | None] = {}
        if mask & (mask - 1) == 0:
            out[self.numbers[mask.bit_length() - 1]] = None
        for a, b in _splits(mask):
            left, right = self.values(a), self.values(b)
            self.effort += len(left) * len(right)
            for x in left:
                for y in right:
                    for sign, u, v, found in self._make_numbers(x, y):
                        if found not in out:
                            out[found] = (sign, a, u, b, v) if u is x else (sign, b, u, a, v)
        self._known[mask] = out
        return out

    def _make_numbers(self, x: Number, y: Number) -> Iterator[tuple[str, Number, Number, Number]]:
        yield "+", x, y, x + y
        yield "*", x, y, x * y
        if x < y:
            x, y = y, x
        if x > y:
            yield "-", x, y, x - y
        if self.whole:
            if not x % y:
                yield "/", x, y, x // y
        else:
            yield "/", x, y, _ratio(x, y)
            yield "/", y, x, _ratio(y, x)

    def way(self, mask: int, target: Number) -> Way | None:
        """How all the numbers in a mask of several make the target; None where they do not."""
        if self._listed(mask):
            return self.values(mask).get(target)
        for a, b in _splits(mask):
            for x in self.values(a):
                for sign, swapped, y in _needed_parts(x, target):
                    self.effort += 1
                    if self._has(b, y):
                        return (sign, b, y, a, x) if swapped else (sign, a, x, b, y)
        return None

    def _has(self, mask: int, value: Number) -> bool:
        return value in self.values(mask) if self._listed(mask) else self.way(mask, value) is not None

    def _listed(self, mask: int) -> bool:
        return not self.whole or mask.bit_count() <= 3

    def write(self, mask: int, value: Number, steps: list[str]) -> tuple[str, int]:
        """The value as an expression, and how tightly it holds together: 1 for sums, 2 for products, 3 for a number."""
        if mask & (mask - 1) == 0:
            return str(value), 3
        way = self.way(mask, value)
        assert way is not None  # only masks that have the value are written
        sign, a, x, b, y = way
        (left, tight), (right, firm) = self.write(a, x, steps), self.write(b, y, steps)
        rank = 1 if sign in "+-" else 2
        left = left if tight >= rank else f"({left})"
        right = right if firm > rank or (firm == rank and sign in "+*") else f"({right})"
        steps.append(f"{_text_of(x)} {sign} {_text_of(y)} = {value}")
        return f"{left} {sign} {right}", rank


def _splits(mask: int) -> list[tuple[int, int]]:
    """Both halves of every division of a mask, even ones first; the first half is no larger."""
    parts: list[tuple[int, int]] = []
    part = (mask - 1) & mask
    while part:
        other = mask ^ part
        if (part.bit_count(), part) < (other.bit_count(), other):
            parts.append((part, other))
        part = (part - 1) & mask
    return sorted(parts, key=lambda p: -p[0].bit_count())


def _needed_parts(x: Number, target: Number) -> Iterator[tuple[str, bool, Number]]:
    """What makes the target together with ``x``: sign, whether it stands on the left, and value, in whole numbers."""
    if target > x:
        yield "+", False, target - x
    yield "-", True, target + x
    if x > target:
        yield "-", False, x - target
    if not target % x:
        yield "*", False, target // x
    yield "/", True, target * x
    if not x % target:
        yield "/", False, x // target


def _ratio(x: Number, y: Number) -> Number:
    found = Fraction(x) / y
    return found.numerator if found.denominator == 1 else found


def _text_of(value: Number) -> str:
    return str(value) if value.denominator == 1 else f"({value})"


def _combine_numbers(numbers: list[int], rng: Random) -> int:
    """A value of all the numbers: two at random are joined by an operation at random, until one is left."""
    values = list(numbers)
    while len(values) > 1:
        a, b = (values.pop(rng.randrange(len(values))) for _ in range(2))
        a, b = max(a, b), min(a, b)
        signs = ["+", "+", "*", "*"] + ["-"] * 2 * (a > b) + ["/"] * 3 * (b > 1 and a % b == 0)
        values.append({"+": a + b, "-": a - b, "*": a * b, "/": a // b}[rng.choice(signs)])
    return values[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Countdown(Problem):
    """What the kinds have in common: ``sizes`` has for each level how many numbers, the largest, and the largest target."""

    domain: str = "math"

    sizes: ClassVar[tuple[tuple[int, int, int], ...]] = ()
    every: ClassVar[bool] = False
    whole: ClassVar[bool] = False

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The numbers, the target, and what may be used."""
        return {"numbers": ", ".join(map(str, facts["numbers"])), "target": str(facts["target"]), "signs": _RULES[self.whole]}

    def verifier(self, form: Form) -> Verifier:
        """Any expression that keeps the rules is right."""
        return Countdown(every=self.every, whole=self.whole, where=form.place)

    def _size(self, level: int) -> tuple[int, int, int]:
        return self.sizes[level - 1]

    def _plant_target(self, level: int, rng: Random, spare: int) -> dict[str, Any]:
        """Numbers and a target that all of them but ``spare`` make."""
        count, most, goal = self._size(level)
        for _ in range(_TRIES):
            numbers = [rng.randint(1, most) for _ in range(count)]
            target = _combine_numbers(numbers[spare:], rng)
            if 10 <= target <= goal and target not in numbers:
                return {"numbers": sorted(numbers), "target": target}
        raise DataError(f"{self.name}: {_TRIES} draws gave no target from 10 to {goal} of {count} numbers up to {most}")

    def _solve_facts(self, facts: Facts, search: _Search, mask: int, value: Number, **gold: int) -> Solution:
        steps: list[str] = []
        text, _ = search.write(mask, value, steps)
        told = {"numbers": list(facts["numbers"]), "target": facts["target"], **gold}
        return Solution(answer=text, gold=told, steps="\n".join(steps), effort=search.effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeTarget(_Countdown):
    """Make a target out of some of the numbers, each used at most once. The level sets their count, 3 to 7, and their size.

    Every question is solvable; the solver looks at few numbers first.

    >>> MakeTarget().solve({"numbers": [2, 3, 50], "target": 47}).answer
    '50 - 3'
    """

    name: str = "countdown/target"

    sizes: ClassVar[tuple[tuple[int, int, int], ...]] = (
        (3, 30, 100),
        (4, 30, 200),
        (5, 50, 500),
        (6, 100, 999),
        (7, 100, 9999),
    )
    templates: ClassVar[tuple[str, ...]] = (
        "Make {target} out of the numbers {numbers}. Each number may be used at most once, and you may leave some out. "
        "Allowed are {signs}. Answer with one expression, such as (1 + 2) * 3.",
        "Countdown: the numbers are {numbers} and the target is {target}. Find one arithmetic expression that equals the target. "
        "It uses {signs}, and no number more often than it is given; not all have to be used.",
        "Using {signs}, combine some or all of {numbers} into an expression whose value is exactly {target}. "
        "No number may appear more often than in the list. Write the expression only, without '= {target}'.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Random numbers, and a value of all or all but one of them."""
        return self._plant_target(level, rng, rng.randrange(2))

    def solve(self, facts: Facts) -> Solution:
        """Two of the numbers, then three, until some make it."""
        search = _Search(list(facts["numbers"]))
        masks = sorted(range(1, 1 << len(search.numbers)), key=int.bit_count)
        for mask in masks:
            if search.way(mask, facts["target"]) is not None:
                return self._solve_facts(facts, search, mask, facts["target"])
        raise DataError(f"{self.name}: no expression over {facts['numbers']} is {facts['target']}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeAll(_Countdown):
    """Make a target out of all the numbers, each used exactly once. The level sets their count, 3 to 7, and their size.

    Every question is solvable in whole numbers.

    >>> MakeAll().solve({"numbers": [2, 3, 50], "target": 44}).answer
    '50 - 2 * 3'
    """

    name: str = "countdown/all"

    every: ClassVar[bool] = True
    sizes: ClassVar[tuple[tuple[int, int, int], ...]] = (
        (3, 30, 100),
        (4, 30, 200),
        (5, 50, 500),
        (6, 100, 999),
        (7, 100, 9999),
    )
    templates: ClassVar[tuple[str, ...]] = (
        "Make {target} out of the numbers {numbers}. Every number must be used exactly once. Allowed are {signs}. "
        "Answer with one expression, such as (1 + 2) * 3.",
        "Write an expression that equals {target} and uses each of {numbers} exactly as often as it is listed, with {signs}.",
        "The numbers {numbers} are all to be used, each once, to reach {target}. You have {signs}. Which expression does it?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Random numbers, and a value of all of them."""
        return self._plant_target(level, rng, 0)

    def solve(self, facts: Facts) -> Solution:
        """From even divisions of the numbers to uneven ones."""
        search = _Search(list(facts["numbers"]))
        mask = (1 << len(search.numbers)) - 1
        if search.way(mask, facts["target"]) is None:
            raise DataError(f"{self.name}: no expression over all of {facts['numbers']} is {facts['target']}")
        return self._solve_facts(facts, search, mask, facts["target"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TwentyFour(_Countdown):
    """Make 24 out of all the numbers. The level sets how many there are, 3 to 6, and the largest; some need fractions.

    The lowest level has only 472 questions, the second 1,362.

    >>> TwentyFour().solve({"numbers": [3, 3, 8, 8], "target": 24}).answer
    '8 / (3 - 8 / 3)'
    """

    name: str = "countdown/24"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    every: ClassVar[bool] = True
    sizes: ClassVar[tuple[tuple[int, int, int], ...]] = ((3, 24, 24), (4, 13, 24), (5, 50, 24), (6, 100, 24))
    templates: ClassVar[tuple[str, ...]] = (
        "Make {target} out of {numbers}, using every number exactly once and {signs}. Intermediate results may be fractions.",
        "Play the game of {target}: the cards are {numbers}. Write an expression with {signs} that uses each card once and "
        "equals {target}. Fractions on the way are allowed.",
        "Combine all of the numbers {numbers}, each exactly once, with {signs} so that the result is {target}. "
        "Division need not come out whole on the way.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Random numbers, drawn anew where they do not make 24."""
        count, most, target = self._size(level)
        for _ in range(_TRIES):
            numbers = sorted(rng.randint(1, most) for _ in range(count))
            if _search_24(numbers, target) is not None:
                return {"numbers": numbers, "target": target}
        raise DataError(f"{self.name}: {_TRIES} draws of {count} numbers up to {most} did not make {target}")

    def solve(self, facts: Facts) -> Solution:
        """In whole numbers, and where that fails with fractions."""
        search = _search_24(list(facts["numbers"]), facts["target"])
        if search is None:
            raise DataError(f"{self.name}: no expression over all of {facts['numbers']} is {facts['target']}")
        return self._solve_facts(facts, search, (1 << len(search.numbers)) - 1, facts["target"])


def _search_24(numbers: list[int], target: int) -> _Search | None:
    """A search that found the target; more than four numbers are searched in whole numbers only."""
    search = _Search(numbers)
    mask = (1 << len(numbers)) - 1
    if search.way(mask, target) is not None:
        return search
    if len(numbers) > 4:
        return None
    exact = _Search(numbers, whole=False, effort=search.effort)
    return exact if target in exact.values(mask) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closest(_Countdown):
    """Come as near to a target as the numbers allow. The level sets their count, 2 to 4, and their size.

    Steps stay in whole numbers, as in the game on television. Any expression that comes as near as possible is right.

    >>> found = Closest().solve({"numbers": [7, 8], "target": 60})
    >>> found.answer, found.gold["distance"]
    ('7 * 8', 4)
    """

    name: str = "countdown/closest"
    levels: tuple[int, ...] = (1, 2, 3)

    whole: ClassVar[bool] = True
    sizes: ClassVar[tuple[tuple[int, int, int], ...]] = ((2, 50, 500), (3, 50, 999), (4, 100, 9999))
    templates: ClassVar[tuple[str, ...]] = (
        "Come as close as possible to {target} with the numbers {numbers}, each used at most once. Allowed are {signs}. "
        "Answer with one expression, such as (1 + 2) * 3.",
        "Which expression over some or all of {numbers} has a value nearest to {target}? No number may be used more often than "
        "it is given. Allowed are {signs}.",
        "The target is {target}, the numbers are {numbers}. It may be out of reach: write the expression that gets nearest to "
        "it. Use no number more often than it is listed, and only {signs}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Random numbers and a random target."""
        count, most, goal = self._size(level)
        return {"numbers": sorted(rng.randint(2, most) for _ in range(count)), "target": rng.randint(10, goal)}

    def solve(self, facts: Facts) -> Solution:
        """Every value that the numbers have."""
        search, target = _Search(list(facts["numbers"])), facts["target"]
        masks = range(1, 1 << len(search.numbers))
        best, _, mask, value = min((abs(v - target), m.bit_count(), m, v) for m in masks for v in search.values(m))
        return self._solve_facts(facts, search, mask, value, distance=int(best))


def countdown() -> Problems:
    """Numbers to make out of numbers: countdown, 24, and as near as one can get."""
    return Problems(
        name="countdown",
        summary="Numbers to make out of numbers: countdown, 24, and as near as one can get.",
        problems=(MakeTarget(), MakeAll(), TwentyFour(), Closest()),
    )
