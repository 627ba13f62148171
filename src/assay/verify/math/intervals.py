"""Values as unions of intervals: joined where they touch, and what several have in common."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from assay.verify.math.poly import Undecidable
from assay.verify.math.values import Bound, Formula, Intervals, Many, Piece, Value

__all__ = ["Edge", "as_intervals", "intersect", "edge", "end_of", "merge_pieces", "rising", "unite"]

Edge = tuple[float | Fraction, int]
"""Where an end is, and -1, 0, 1 for just before, at, just after."""


def intersect(items: Sequence[Intervals]) -> Intervals:
    """What all have in common.

    Raises:
        Undecidable: ends that are no rationals, or inequalities of several variables.
    """
    if len({item.variable for item in items}) > 1 or len(items) > 4:
        raise Undecidable("inequalities of several variables")
    pieces = list(items[0].pieces)
    for item in items[1:]:
        pieces = [common for one, other in product(pieces, item.pieces) if (common := _common(one, other)) is not None]
    return Intervals(tuple(pieces), items[0].variable)


def _common(one: Piece, other: Piece) -> Piece | None:
    lows, highs = [_known_edge(p.low, 1) for p in (one, other)], [_known_edge(p.high, -1) for p in (one, other)]
    low, high = max(lows), min(highs)
    if low > high:
        return None
    return Piece((one, other)[lows.index(low)].low, (one, other)[highs.index(high)].high)


def _known_edge(bound: Bound, side: int) -> Edge:
    found = edge(bound, side)
    if found is None:
        raise Undecidable("ends whose order is not known")
    return found


def merge_pieces(pieces: Sequence[Piece]) -> list[Piece] | None:
    """Disjoint pieces in ascending order, joined where they touch; None where ends are no rationals."""
    ends: list[tuple[Edge, Edge, Piece]] = []
    for piece in pieces:
        low, high = edge(piece.low, 1), edge(piece.high, -1)
        if low is None or high is None:
            return list(pieces) if len(pieces) == 1 else None
        if low <= high:
            ends.append((low, high, piece))
    ends.sort(key=lambda t: (t[0], t[1]))
    out: list[tuple[Edge, Piece]] = []
    for low, high, piece in ends:
        if out and (low <= out[-1][0] or (low[0] == out[-1][0][0] and low[1] - out[-1][0][1] <= 1)):
            if high > out[-1][0]:
                out[-1] = (high, Piece(out[-1][1].low, piece.high))
        else:
            out.append((high, piece))
    return [piece for _, piece in out]


def edge(bound: Bound, side: int) -> Edge | None:
    """The end of an interval as a sort key; None where it is no rational. ``side``: 1 for a lower end, -1 for an upper one."""
    if bound.at is None:
        return (float("-inf") if side > 0 else float("inf"), 0)
    value = bound.at.value
    return None if value is None else (Fraction(value), 0 if bound.closed else side)


def unite(items: Sequence[Value]) -> Value:
    """The union of intervals and finite sets.

    Raises:
        Undecidable: something else.
    """
    pieces: list[Piece] = []
    variables: set[str | None] = set()
    for item in items:
        found = as_intervals(item)
        if found is None:
            raise Undecidable("a union of other things than intervals")
        pieces.extend(found.pieces)
        variables.add(found.variable)
    return Intervals(tuple(pieces), variables.pop() if len(variables) == 1 else None)


def as_intervals(value: Value) -> Intervals | None:
    """A value as a union of intervals: a pair in round brackets is an open one, a finite set is points."""
    if isinstance(value, Intervals):
        return value
    if isinstance(value, Many) and value.kind == "tuple" and len(value.items) == 2:
        low, high = (end_of(item, closed=False, low=n == 0) for n, item in enumerate(value.items))
        return Intervals((Piece(low, high),)) if low is not None and high is not None and rising(low, high) else None
    if isinstance(value, Many) and value.kind == "set" and all(isinstance(i, Formula) and i.unit is None for i in value.items):
        points = [Bound(item.ratio, True) for item in value.items if isinstance(item, Formula)]
        return Intervals(tuple(Piece(point, point) for point in points))
    return None


def end_of(value: Value, closed: bool, low: bool) -> Bound | None:
    """A value as the end of an interval; None where it is no formula, or infinity where that cannot be."""
    if not isinstance(value, Formula) or value.unit is not None:
        return None
    if value.ratio.atoms() == {"\\infty"}:
        term = value.ratio.term
        right = term is not None and (term[1] < 0) == low
        return Bound(None, False) if right and not closed else None
    return Bound(value.ratio, closed)


def rising(low: Bound, high: Bound) -> bool:
    """Whether these can be the ends of an interval: not where the first is known to be the larger one."""
    first, second = low.at and low.at.value, high.at and high.at.value
    return first is None or second is None or first < second or (first == second and low.closed and high.closed)
