"""Equations beside values and beside each other: which member answers, and whether the others are what they are said to be."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from assay.verify.math.inequalities import names
from assay.verify.math.named import name_of, quantity
from assay.verify.math.numeric import rounds
from assay.verify.math.poly import Num, Poly, mul
from assay.verify.math.values import Formula, Many, Relation, Value

__all__ = ["chains", "member", "one_equation", "shared"]

Same = Callable[[Value, Value], "bool | None"]
"""Whether two values, the expected one and the given one, are equal."""


def member(relation: Relation, other: Value, gives: bool, same: Same) -> bool | None:
    """Whether the last member of an equation is a value, the other members only naming it or being equal to it.

    ``gives``: the equation is the answer. One that is expected says more than its right side, unless its left side is a name.
    """
    if relation.sign not in ("=", "\\approx"):
        return False
    members, last = [relation.left, *relation.middle], relation.right
    if len(members) == 1 and name_of(last) is not None and name_of(members[0]) is None:
        members, last = [last], members[0]
    sure = True
    for one in members:
        if name_of(one) is not None or (gives and quantity(one) and _is_number(last)):
            continue
        found = _holds(relation.sign, one, last, same)
        if found is None and relation.sign == "\\approx":  # by another member that is known to be near
            found = _by_another(one, members, last, same)
        if found is False and (not gives or not (_symbols(one) or _symbols(last))):
            return False
        sure = sure and found is True
    equal = same(other, last) if gives else same(last, other)
    if equal is False and relation.sign == "\\approx":
        values = [one for one in members if name_of(one) is None]
        equal = any((same(other, one) if gives else same(one, other)) is True for one in values)
    return equal if sure or equal is False else None


def _by_another(one: Value, members: list[Value], last: Value, same: Same) -> bool | None:
    near = [other for other in members if other is not one and _holds("\\approx", other, last, same) is True]
    return True if any(same(one, other) is True for other in near) else None


def chains(gold: Relation, answer: Relation, same: Same) -> bool | None:
    """Two equations of which one has several members: with the same name in front, the values must be the same."""
    first, second = name_of(gold.left), name_of(answer.left)
    if first is not None and second is not None and first != second:
        return False
    expected = member(gold, gold.right, True, same)
    return member(answer, gold.right, True, same) if expected is True else None


def _holds(sign: str, first: Value, second: Value, same: Same) -> bool | None:
    found = same(first, second)
    if found is True or sign == "=" or not (isinstance(first, Formula) and isinstance(second, Formula)):
        return found
    return rounds(first, second)


def _symbols(value: Value) -> bool:
    """Whether a value has symbols in it, or may have some."""
    if isinstance(value, Formula):
        return bool(names(value.ratio))
    return not isinstance(value, Many) or any(map(_symbols, value.items))


def _is_number(value: Value) -> bool:
    """Whether a value is free of symbols, and not 0."""
    return isinstance(value, Formula) and bool(value.ratio.top) and not names(value.ratio)


def shared(gold: Relation, answer: Relation) -> bool:
    """Whether the name on a left side occurs in the other equation's right side, as in ``y = 2x`` and ``x = y/2``."""
    return any(
        isinstance(one.left, Formula) and isinstance(other.right, Formula) and one.left.ratio.atoms() & other.right.ratio.atoms()
        for one, other in ((gold, answer), (answer, gold))
    )


def one_equation(gold: Relation, answer: Relation) -> bool | None:
    """Whether two equations are multiples of each other; their solutions are not computed."""
    sides = [gold.left, gold.right, answer.left, answer.right]
    ratios = [side.ratio for side in sides if isinstance(side, Formula) and side.unit is None]
    if len(ratios) < 4:
        return None
    first, second = _clear_powers((ratios[0] - ratios[1]).top), _clear_powers((ratios[2] - ratios[3]).top)
    if set(first) == set(second):
        factor = Fraction(next(iter(second.values()))) / first[next(iter(second))] if first else Fraction(1)
        if all(second[key] == factor * first[key] for key in first):
            return True
    known = all(power.denominator == 1 and atom[0] not in "?^%&" for mono in (*first, *second) for atom, power in mono)
    return False if known else None


def _clear_powers(top: Poly) -> Poly:
    """The polynomial without negative powers: both sides of an equation multiplied by what stands below."""
    lowest: dict[str, Num] = {}
    for mono in top:
        for atom, power in mono:
            if power < 0:
                lowest[atom] = min(power, lowest.get(atom, 0))
    factor: Poly = {tuple(sorted((atom, -power) for atom, power in lowest.items())): 1}
    return mul(top, factor)
