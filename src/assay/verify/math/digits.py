"""How many digits of two formulas have to agree before they are the same: several times as many as their numbers have.

A rule of nearness would take ``1/7^2023`` for 0 and ``cos(10^-40)`` for 1. The size of an expression bounds the decimal exponents
of all that is computed in it, from above and from below: of ``10^-40`` it is 40, and of ``tanh(100)``, which is 1 up to
``10^-87``, over 100.
Expressions that differ do so, but for a construction made to deceive, within a few times their sizes.
"""

from __future__ import annotations

from math import inf, isnan, log10
from typing import Any

__all__ = ["MOST", "digits_for", "size"]

MOST = 12_000
"""Digits that are computed; what needs more is not decided."""

_STEEP = frozenset(["exp", "sinh", "cosh", "tanh", "coth", "sech", "csch", "factorial", "gamma", "erf"])
"""Functions whose values are as long as their arguments are large."""


def digits_for(total: float) -> tuple[int, int]:
    """Digits to compute, and decimal places that must agree, for two expressions of a total size.

    >>> digits_for(0), digits_for(100)
    ((50, 25), (450, 325))
    """
    return (50 + int(4 * total), 25 + int(3 * total)) if total < MOST else (MOST + 1, MOST)


def size(value: Any) -> float:
    """A bound on the decimal exponents of all numbers in a sympy expression without symbols; infinite where none is known."""
    if value.is_Rational:
        return 0.302 * (int(value.p).bit_length() + int(value.q).bit_length())
    parts = [size(part) for part in value.args]
    if not parts:
        return 1.0
    if value.is_Add:
        return max(parts) + log10(len(parts))
    if value.is_Pow:
        exponent = value.args[1]
        large = _magnitude(exponent)
        return large * parts[0] + (0 if exponent.is_Rational else large + parts[1]) if large > 1 else sum(parts)
    steep = _magnitude(value.args[0]) if type(value).__name__ in _STEEP else 0.0
    return sum(parts) + steep * max(1.0, log10(1 + steep)) + 1


def _magnitude(value: Any) -> float:
    try:
        found = abs(complex(value.evalf(15)))
    except (TypeError, ValueError, OverflowError):
        return inf
    return inf if isnan(found) else found
