"""Inequalities in one unknown, solved where they are linear."""

from __future__ import annotations

from collections.abc import Sequence

from assay.verify.math.ratio import Ratio, number
from assay.verify.math.values import Bound, Formula, Intervals, Piece, Value

__all__ = ["inequality", "names"]


def inequality(signs: Sequence[str], values: Sequence[Value]) -> Intervals | None:
    r"""``a < x <= b``, ``2x + 1 >= 5``, ``x \ne 3`` as intervals of the one variable."""
    formulas = [value.ratio for value in values if isinstance(value, Formula) and value.unit is None]
    if len(formulas) < len(values) or len(signs) > 2:
        return None
    if len(signs) == 2:
        up = all(sign in ("<", "\\le") for sign in signs)
        if not up and not all(sign in (">", "\\ge") for sign in signs):
            return None
        closed = ["e" in sign for sign in signs]
        low, middle, high = formulas if up else formulas[::-1]
        closed = closed if up else closed[::-1]
        name = _variable(middle)
        if name is None or names(low) or names(high):
            return None
        lower, upper = _end(low, closed[0], -1), _end(high, closed[1], 1)
        return Intervals((Piece(lower, upper),), name) if lower and upper else None
    return _solve_linear(signs[0], formulas[0] - formulas[1])


def _end(at: Ratio, closed: bool, side: int) -> Bound | None:
    if at.atoms() == {"\\infty"}:
        term = at.term
        return Bound(None, False) if not closed and term is not None and term[1] * side > 0 else None
    return None if "\\infty" in at.atoms() else Bound(at, closed)


def names(value: Ratio) -> set[str]:
    """The symbols in a formula that are no constants; opaque terms count."""
    return {atom for atom in value.atoms() if atom not in ("pi", "e", "i", "\\infty") and atom[0] not in "#%&"}


def _variable(value: Ratio) -> str | None:
    term = value.term
    return (
        term[0][0][0] if term is not None and term[1] == 1 and len(term[0]) == 1 and term[0][0][1] == 1 and names(value) else None
    )


def _solve_linear(sign: str, difference: Ratio) -> Intervals | None:
    """``a x + b sign 0`` with rational ``a``, solved for ``x``."""
    found = names(difference)
    if len(found) != 1 or len(difference.bottom) != 1 or any(atom[0] in "^?" for atom in found):
        return None
    (name,) = found
    slope = difference.top.get(((name, 1),))
    rest = {mono: value for mono, value in difference.top.items() if mono != ((name, 1),)}
    if slope is None or any(atom == name for mono in rest for atom, _ in mono):
        return None
    at = Ratio(rest, difference.bottom) * number(-1) / number(slope)
    if "\\infty" in at.atoms():
        return None
    if sign == "\\ne":
        return Intervals((Piece(Bound(None, False), Bound(at, False)), Piece(Bound(at, False), Bound(None, False))), name)
    below = (sign in ("<", "\\le")) == (slope > 0)
    bound = Bound(at, sign in ("\\le", "\\ge"))
    return Intervals((Piece(Bound(None, False), bound) if below else Piece(bound, Bound(None, False)),), name)
