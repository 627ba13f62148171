"""Whether two answers are equal: exactly, or with the help of an oracle for formulas."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from assay.verify.math.equations import chains, member, one_equation, shared
from assay.verify.math.intervals import as_intervals, merge_pieces
from assay.verify.math.named import name_of
from assay.verify.math.poly import Undecidable
from assay.verify.math.ratio import Ratio, number, symbol
from assay.verify.math.read import read
from assay.verify.math.units import Unit
from assay.verify.math.values import (
    DENIED,
    Based,
    Bound,
    Choice,
    Clock,
    Formula,
    Intervals,
    Many,
    Matrix,
    Opaque,
    Piece,
    Relation,
    Residue,
    Text,
    Value,
)

__all__ = ["Oracle", "Rules", "exact"]

Oracle = Callable[[str, str], "bool | None"]
"""Whether two formulas, as they are written, are equal; None where it cannot tell."""

_INTEGER = re.compile(r"-?[1-9]\d{0,17}|0")
_MOST = 64


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as equal.

    Attributes:
        units: ``optional``: a unit that only one of the two has is passed over. ``required``: both have one, or neither.
        percent: ``value``: ``50%`` is one half, nothing else. ``optional``: it is also 50.
        tolerance: two rationals are equal when they differ by at most this share of the first; 0 for exactly.
    """

    units: str = "optional"
    percent: str = "value"
    tolerance: Fraction = Fraction(0)


def exact(gold: str, answer: str, rules: Rules | None = None, oracle: Oracle | None = None) -> bool | None:
    r"""Whether ``answer`` is ``gold``; None where that cannot be told (without an oracle: by exact arithmetic).

    Total: any two texts give one of the three, in time linear in their lengths (longer ones than a few thousand characters
    are compared as texts alone).

    >>> exact(r"\frac{1}{2}", "0.5"), exact("(1,2)", r"\{1,2\}"), exact(r"\sin(2x)", r"2\sin x\cos x")
    (True, False, None)
    """
    if gold == answer:
        return True
    if _INTEGER.fullmatch(answer) and _INTEGER.fullmatch(gold) and (rules is None or not rules.tolerance):
        return False  # two different ways to write an integer without signs, zeros or separators
    judge = _Judge(rules or _PLAIN, oracle)
    try:
        return judge.same(read(gold), read(answer))
    except (Undecidable, RecursionError):
        return None


_PLAIN = Rules()
_ORDERS = frozenset(["<", ">", "\\le", "\\ge"])


class _Judge:
    def __init__(self, rules: Rules, oracle: Oracle | None) -> None:
        self._rules = rules
        self._oracle = oracle

    def same(self, gold: Value, answer: Value) -> bool | None:
        """Whether two values are equal."""
        if isinstance(gold, Opaque) or isinstance(answer, Opaque):
            return self._unread(gold, answer)
        if isinstance(gold, Text) or isinstance(answer, Text):
            return _words(gold) == _words(answer)
        if isinstance(gold, Choice) or isinstance(answer, Choice):
            return self._choice(gold, answer)
        if isinstance(gold, Based | Clock) or isinstance(answer, Based | Clock):
            return self._literal(gold, answer)
        if isinstance(gold, Residue) or isinstance(answer, Residue):
            return isinstance(gold, Residue) and isinstance(answer, Residue) and self._residue(gold, answer)
        if isinstance(gold, Relation) or isinstance(answer, Relation):
            return self._relation(gold, answer)
        if isinstance(gold, Formula) and isinstance(answer, Formula):
            return self._formula(gold, answer)
        if isinstance(gold, Matrix) or isinstance(answer, Matrix):
            return self._matrix(gold, answer)
        if isinstance(gold, Intervals) or isinstance(answer, Intervals):
            return self._intervals(gold, answer)
        return self._many(gold, answer)

    # ---- formulas

    def _unread(self, gold: Value, answer: Value) -> bool | None:
        if isinstance(gold, Opaque) and isinstance(answer, Opaque) and gold.source.split() == answer.source.split():
            return True
        if isinstance(answer, Opaque) and answer.why == DENIED:
            return False
        return False if isinstance(gold, Text | Choice) or isinstance(answer, Text | Choice) else self._ask(gold, answer)

    def _ask(self, gold: Value, answer: Value) -> bool | None:
        written = _source(gold), _source(answer)
        if self._oracle is None or written[0] is None or written[1] is None:
            return None
        return self._oracle(written[0], written[1])

    def _formula(self, gold: Formula, answer: Formula) -> bool | None:
        if gold.unit is not None and answer.unit is not None:
            if gold.unit[1] != answer.unit[1]:
                return self._temperature(gold, answer)
            if gold.unit[0] != answer.unit[0]:
                return self._ratio(gold.ratio * number(gold.unit[0]), answer.ratio * number(answer.unit[0]))
        elif gold.unit is not None or answer.unit is not None:
            beside = _with_symbol(gold, answer) if gold.unit is not None else _with_symbol(answer, gold)
            if beside is True:
                return True
            if self._rules.units == "required":
                return False
        found = self._ratio(gold.ratio, answer.ratio)
        if found is False and self._rules.percent == "optional" and ("%" in gold.source) != ("%" in answer.source):
            hundred = number(100)
            found = self._ratio(
                *((gold.ratio * hundred, answer.ratio) if "%" in gold.source else (gold.ratio, answer.ratio * hundred))
            )
        return self._ask(gold, answer) if found is None else found

    def _temperature(self, gold: Formula, answer: Formula) -> bool | None:
        """Different dimensions, of which degrees may be those of one scale."""
        dimensions = {unit[1][0][0] for unit in (gold.unit, answer.unit) if unit is not None and len(unit[1]) == 1}
        degrees = "degree" in dimensions and len(dimensions) == 2 and dimensions & {"celsius", "fahrenheit"}
        return self._ratio(gold.ratio, answer.ratio) if degrees and self._rules.units == "optional" else False

    def _ratio(self, gold: Ratio, answer: Ratio) -> bool | None:
        found = gold.same(answer)
        if found is False and self._rules.tolerance:
            first, second = gold.value, answer.value
            if first is not None and second is not None:
                return abs(first - second) <= self._rules.tolerance * abs(first)
        return found

    # ---- collections

    def _all(self, pairs: Sequence[tuple[Value, Value]]) -> bool | None:
        found: bool | None = True
        for gold, answer in pairs:
            one = self.same(gold, answer)
            if one is False:
                return False
            found = None if one is None else found
        return found

    def _many(self, gold: Value, answer: Value) -> bool | None:
        if not (isinstance(gold, Many) and isinstance(answer, Many)):
            return False
        kinds = {gold.kind, answer.kind}
        if "set" in kinds and not kinds <= {"set", "list"}:
            return False
        if "ratio" in kinds:
            return self._proportional(gold, answer) if kinds == {"ratio"} else False
        if kinds <= {"set", "list"}:
            return self._compare_unordered(gold, answer)
        if len(gold.items) != len(answer.items) or (kinds == {"row", "tuple"} and len(gold.items) == 2):
            return False  # two in square brackets look like an interval, never like a point
        return self._all(list(zip(gold.items, answer.items, strict=True)))

    def _compare_unordered(self, gold: Many, answer: Many) -> bool | None:
        if len(gold.items) > _MOST or len(answer.items) > _MOST:
            return None
        once = "set" in (gold.kind, answer.kind)
        if not once and len(gold.items) != len(answer.items):
            return False
        left, right = list(gold.items), list(answer.items)
        for item in gold.items:
            twin = next((other for other in right if self.same(item, other) is True), None)
            if twin is not None:
                left.remove(item)
                right.remove(twin)
        if once:  # what is written twice is there once
            left = [item for item in left if not any(self.same(item, other) is True for other in answer.items)]
            right = [other for other in right if not any(self.same(item, other) is True for item in gold.items)]
        if not left and not right:
            return True
        hopeless = [item for item in left if all(self.same(item, other) is False for other in right)]
        hopeless += [other for other in right if all(self.same(item, other) is False for item in left)]
        return False if hopeless else None

    def _proportional(self, gold: Many, answer: Many) -> bool | None:
        if len(gold.items) != len(answer.items):
            return False
        first = [item.ratio for item in gold.items if isinstance(item, Formula)]
        second = [item.ratio for item in answer.items if isinstance(item, Formula)]
        found: bool | None = True
        for n in range(1, len(first)):
            one = (first[0] * second[n]).same(first[n] * second[0])
            found = False if one is False or found is False else None if one is None else found
        return found

    def _matrix(self, gold: Value, answer: Value) -> bool | None:
        if isinstance(gold, Matrix) and isinstance(answer, Matrix):
            if [len(row) for row in gold.rows] != [len(row) for row in answer.rows]:
                return False
            return self._all([pair for rows in zip(gold.rows, answer.rows, strict=True) for pair in zip(*rows, strict=True)])
        if isinstance(gold, Matrix):
            return self._vector(gold, answer)
        return self._vector(answer, gold) if isinstance(answer, Matrix) else False

    def _vector(self, matrix: Matrix, other: Value) -> bool | None:
        """A single row or column is a tuple of its entries; a single entry is that entry."""
        flat = tuple(cell for row in matrix.rows for cell in row)
        if len(flat) == 1:
            return self.same(flat[0], other)
        if 1 in (len(matrix.rows), len(matrix.rows[0])) and isinstance(other, Many) and other.kind == "tuple":
            return self._many(Many("tuple", flat), other)
        return False

    # ---- intervals

    def _intervals(self, gold: Value, answer: Value) -> bool | None:
        first, second = as_intervals(gold), as_intervals(answer)
        if first is None or second is None:
            return False
        if None not in (first.variable, second.variable) and first.variable != second.variable:
            return False
        left, right = merge_pieces(first.pieces), merge_pieces(second.pieces)
        if left is None or right is None:  # ends that cannot be ordered exactly
            left, right = list(first.pieces), list(second.pieces)
            found = self._pieces(left, right) if len(left) == len(right) else None
            return found if len(left) == 1 or found is True else None
        return self._pieces(left, right) if len(left) == len(right) else False

    def _pieces(self, gold: Sequence[Piece], answer: Sequence[Piece]) -> bool | None:
        found: bool | None = True
        for first, second in zip(gold, answer, strict=True):
            for one, other in ((first.low, second.low), (first.high, second.high)):
                same = self._bound(one, other)
                if same is False:
                    return False
                found = None if same is None else found
        return found

    def _bound(self, gold: Bound, answer: Bound) -> bool | None:
        if gold.closed != answer.closed or (gold.at is None) != (answer.at is None):
            return False
        return True if gold.at is None or answer.at is None else self._ratio(gold.at, answer.at)

    # ---- relations and literals

    def _relation(self, gold: Value, answer: Value) -> bool | None:
        if not (isinstance(gold, Relation) and isinstance(answer, Relation)):
            return self._side(gold, answer)
        if (gold.middle or answer.middle) and {gold.sign, answer.sign} <= {"=", "\\approx"}:
            return chains(gold, answer, self.same)
        if gold.sign != answer.sign:
            return False
        if self._all([(gold.left, answer.left), (gold.right, answer.right)]) is True:
            return True
        if gold.sign == "=":
            if name_of(gold.left) is not None and name_of(answer.left) is not None and not shared(gold, answer):
                return False if name_of(gold.left) != name_of(answer.left) else self.same(gold.right, answer.right)
            return one_equation(gold, answer)
        return None

    def _side(self, gold: Value, answer: Value) -> bool | None:
        gives = isinstance(answer, Relation)
        relation, other = (answer, gold) if gives else (gold, answer)
        if isinstance(other, Intervals) and isinstance(relation, Relation) and relation.sign in _ORDERS:
            return None  # an inequality that is not solved here may have these solutions
        return member(relation, other, gives, self.same) if isinstance(relation, Relation) else False

    def _residue(self, gold: Residue, answer: Residue) -> bool | None:
        return self._all([(gold.modulus, answer.modulus), (gold.value, answer.value)])

    def _choice(self, gold: Value, answer: Value) -> bool | None:
        """By the letters; what stands behind both must not differ, and behind one it may be what the other is."""
        first, second = _letter(gold), _letter(answer)
        if isinstance(gold, Choice) and isinstance(answer, Choice):
            if first != second or gold.value is None or answer.value is None:
                return first == second
            return self.same(read(gold.value), read(answer.value)) is not False
        if first is not None and first == second:
            return True
        beside = next(value.value for value in (gold, answer) if isinstance(value, Choice))
        if beside is None:
            return False
        return self.same(*(read(beside) if isinstance(value, Choice) else value for value in (gold, answer)))

    def _literal(self, gold: Value, answer: Value) -> bool | None:
        if isinstance(gold, Clock) and isinstance(answer, Clock):
            return _same_time(gold, answer)
        if type(gold) is type(answer):
            return gold == answer
        if isinstance(gold, Clock) or isinstance(answer, Clock):
            clock, other = (gold, answer) if isinstance(gold, Clock) else (answer, gold)
            assert isinstance(clock, Clock)
            if clock.minutes >= 10 and clock.half is None and isinstance(other, Formula):  # it may be a ratio too
                reduced = gcd(clock.hours, clock.minutes) == 1 or clock is answer
                found = self._ratio(number(Fraction(clock.hours, clock.minutes)), other.ratio)
                return found if reduced or not found else None
        return False


# ---- views of values


def _source(value: Value) -> str | None:
    return value.source if isinstance(value, Formula | Opaque) else None


def _words(value: Value) -> str | None:
    if isinstance(value, Text):
        return value.words
    if isinstance(value, Choice):
        return value.letter.lower()
    return value.source.replace(" ", "").replace("*", "").lower() if isinstance(value, Formula) else None


def _letter(value: Value) -> str | None:
    if isinstance(value, Choice):
        return value.letter
    if not isinstance(value, Formula) or len(value.source) != 1:
        return None
    return value.source if value.source in "ei" else value.source.upper()  # the constants are no letters of a choice


def _same_time(gold: Clock, answer: Clock) -> bool:
    """By the clock with 12 hours or with 24; AM or PM may be left out."""
    if gold.minutes != answer.minutes:
        return False
    if gold.hours == answer.hours:
        return None in (gold.half, answer.half) or gold.half == answer.half
    halved, other = (gold, answer) if gold.half else (answer, gold)
    return halved.half is not None and other.half is None and halved.hours % 12 + 12 * (halved.half == "p") == other.hours


def _with_symbol(united: Formula, bare: Formula) -> bool | None:
    """``5 m`` beside ``5m``: the letter of the unit may have been read as a factor."""
    for letter in ("m", "s", "g", "h", "L", "l", "N", "J", "W", "V"):
        if letter in bare.ratio.atoms() and _UNIT_LETTERS.get(letter) == united.unit:
            return (united.ratio * symbol(letter)).same(bare.ratio)
    return None


def _unit_letters() -> dict[str, Unit | None]:
    from assay.verify.math.units import unit_of

    return {letter: unit_of(letter) for letter in "msghLlNJWV"}


_UNIT_LETTERS = _unit_letters()
