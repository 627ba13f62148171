r"""Exact arithmetic on sums of products: rationals, roots of rationals, the imaginary unit, pi, e, symbols, opaque terms.

A polynomial maps monomials to rational coefficients. An atom of a monomial is a string:

- a symbol such as ``x`` or ``\theta``, ``pi``, ``e``, ``i``, ``deg`` (the degree sign);
- ``#p``: a prime, with an exponent in (0, 1): roots of rationals have one normal form, and are independent over the rationals
  (Besicovitch 1940);
- ``%p``: the natural logarithm of a prime;
- ``&p``: a prime to a whole power that is too large to be written out, positive or negative;
- ``^b^m``: a base to a power with symbols in it;
- ``?...``: a term of which nothing is known but how it is written.

Everything is bounded: what would grow too large raises `Undecidable`.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = ["BITS", "ONE", "Mono", "Num", "Poly", "Undecidable", "add", "atoms", "constant", "mul", "product", "scale", "render"]

Num = int | Fraction
Mono = tuple[tuple[str, Num], ...]
Poly = dict[Mono, Num]

BITS = 4096
"""Numbers have at most so many bits in numerator and denominator."""

_TERMS = 200
_EXPONENT = 4096
_LARGE = 10**15
"""Largest exponent of a prime that is not written out."""


class Undecidable(Exception):
    """The expression is not one that exact arithmetic reads, or it is too large."""


ONE: Poly = {(): 1}


def small(value: Num) -> Num:
    """The number itself, as an int where it is one.

    Raises:
        Undecidable: more than `BITS` bits.
    """
    if value.numerator.bit_length() > BITS or value.denominator.bit_length() > BITS:
        raise Undecidable("a number with too many digits")
    return value.numerator if value.denominator == 1 else value


def product(a: Mono, b: Mono) -> tuple[Mono, Num]:
    """Product of two monomials: a monomial and a rational factor."""
    if not b:
        return a, 1
    if not a:
        return b, 1
    powers: dict[str, Num] = dict(a)
    factor: Num = 1
    for atom, exponent in b:
        total = powers.pop(atom, 0) + exponent
        if atom == "i":
            total %= 4
            if total >= 2:
                factor, total = -factor, total - 2
        elif atom[0] == "#":
            whole = total.numerator // total.denominator
            total -= whole
            if whole:
                factor *= Fraction(int(atom[1:])) ** whole
        if total:
            if abs(total) > (_LARGE if atom[0] == "&" else _EXPONENT):
                raise Undecidable("a power that is too high")
            powers[atom] = total
    return tuple(sorted(powers.items())), factor


def add(a: Poly, b: Poly, sign: int = 1) -> Poly:
    """``a + sign * b``."""
    out = dict(a)
    for mono, value in b.items():
        total = out.pop(mono, 0) + sign * value
        if total:
            out[mono] = small(total)
    return out


def mul(a: Poly, b: Poly) -> Poly:
    """``a * b``."""
    if len(a) * len(b) > _TERMS:
        raise Undecidable("a product of too many terms")
    out: Poly = {}
    for left, x in a.items():
        for right, y in b.items():
            mono, factor = product(left, right)
            total = out.pop(mono, 0) + x * y * factor
            if total:
                out[mono] = small(total)
    return out


def scale(a: Poly, factor: Num) -> Poly:
    """``factor * a``."""
    return {mono: small(value * factor) for mono, value in a.items()} if factor else {}


def constant(a: Poly) -> Num | None:
    """The rational that a polynomial is, else None."""
    if not a:
        return 0
    return a.get(()) if len(a) == 1 else None


def atoms(a: Poly) -> set[str]:
    """Every atom in it."""
    return {atom for mono in a for atom, _ in mono}


def render(a: Poly) -> str:
    """One text per polynomial: equal polynomials have equal texts."""
    return "+".join(
        f"{value}*" + "*".join(f"({atom})^{power}" for atom, power in mono)
        for mono, value in sorted(a.items(), key=lambda t: t[0])
    )
