"""Quotients of polynomials, compared by cross multiplication."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from assay.verify.math.poly import ONE, Mono, Num, Poly, Undecidable, add, atoms, constant, mul, render, scale, small

__all__ = ["Ratio", "number", "symbol"]


_NAME = 2000
"""Characters of an atom; terms inside terms would grow without bound."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """``top / bottom``; ``bottom`` is 1 wherever that can be had."""

    top: Poly
    bottom: Poly

    def __add__(self, other: Ratio) -> Ratio:
        return self._sum(other, 1)

    def __sub__(self, other: Ratio) -> Ratio:
        return self._sum(other, -1)

    def __mul__(self, other: Ratio) -> Ratio:
        if self.bottom is ONE and other.bottom is ONE:
            return Ratio(mul(self.top, other.top), ONE)
        return quotient(mul(self.top, other.top), mul(self.bottom, other.bottom))

    def __truediv__(self, other: Ratio) -> Ratio:
        return quotient(mul(self.top, other.bottom), mul(self.bottom, other.top))

    def __neg__(self) -> Ratio:
        return Ratio(scale(self.top, -1), self.bottom)

    def _sum(self, other: Ratio, sign: int) -> Ratio:
        if self.bottom is ONE and other.bottom is ONE:
            return Ratio(add(self.top, other.top, sign), ONE)
        top = add(mul(self.top, other.bottom), mul(other.top, self.bottom), sign)
        return quotient(top, mul(self.bottom, other.bottom))

    @property
    def value(self) -> Num | None:
        """The rational that it is, else None."""
        return constant(self.top) if self.bottom is ONE else None

    @property
    def term(self) -> tuple[Mono, Num] | None:
        """Its only monomial with the coefficient, where it is one term."""
        return next(iter(self.top.items())) if self.bottom is ONE and len(self.top) == 1 else None

    @property
    def text(self) -> str:
        """Equal texts mean equal values; the other way round only for polynomials."""
        return render(self.top) if self.bottom is ONE else f"[{render(self.top)}]/[{render(self.bottom)}]"

    def atoms(self) -> set[str]:
        """Every atom in it."""
        return atoms(self.top) | atoms(self.bottom)

    def same(self, other: Ratio) -> bool | None:
        """Whether two quotients are equal; None where exact arithmetic cannot tell."""
        if self.bottom is ONE and other.bottom is ONE and self.top == other.top:
            return True
        rest = self.difference(other)
        return True if not rest else False if independent(rest) else None

    def difference(self, other: Ratio) -> Poly:
        """The numerator of ``self - other``, over a denominator that is not 0."""
        if self.bottom is ONE and other.bottom is ONE:
            return add(self.top, other.top, -1)
        return add(mul(self.top, other.bottom), mul(other.top, self.bottom), -1)


def number(value: Num) -> Ratio:
    """A rational."""
    return Ratio({(): small(value)} if value else {}, ONE)


def symbol(atom: str, power: Num = 1) -> Ratio:
    """An atom, to a power.

    Raises:
        Undecidable: its name is too long.
    """
    if len(atom) > _NAME:
        raise Undecidable("a term that is too long")
    return Ratio({((atom, power),): 1}, ONE)


def quotient(top: Poly, bottom: Poly) -> Ratio:
    """``top / bottom`` in lowest effort: a single term, roots and the imaginary unit leave the denominator.

    Raises:
        Undecidable: a division by zero, or numbers that grow too large.
    """
    while True:  # each round takes a root out of the denominator
        if not bottom:
            raise Undecidable("a division by zero")
        if len(bottom) == 1:
            ((mono, value),) = bottom.items()
            inverse, factor = _inverse(mono)
            return Ratio(mul(top, {inverse: small(Fraction(factor) / value)}), ONE)
        root = _root(bottom)
        if root is None:
            return Ratio(top, bottom)
        other = {mono: -value if any(atom == root for atom, _ in mono) else value for mono, value in bottom.items()}
        top, bottom = mul(top, other), mul(bottom, other)


def _inverse(mono: Mono) -> tuple[Mono, Num]:
    factor: Num = 1
    out: list[tuple[str, Num]] = []
    for atom, power in mono:
        if atom == "i":
            out.append(("i", 1))
            factor = -factor
        elif atom[0] == "#":
            out.append((atom, 1 - power))
            factor = factor * Fraction(1, int(atom[1:]))
        else:
            out.append((atom, -power))
    return tuple(out), factor


def _root(bottom: Poly) -> str | None:
    """A square root or ``i`` by whose conjugate the denominator can be multiplied."""
    powers: dict[str, set[Num]] = {}
    for mono in bottom:
        for atom, power in mono:
            powers.setdefault(atom, set()).add(power)
    return next((atom for atom, found in powers.items() if atom == "i" or (atom[0] == "#" and found == {Fraction(1, 2)})), None)


def independent(rest: Poly) -> bool:
    """Whether a polynomial in which something is left is certainly not zero.

    Rationals, roots of rationals, ``i`` and symbols are independent, also beside one of pi, e or logarithms of primes; of several
    of those together nobody knows. Of an opaque term nothing is known, and large powers of primes are not collected (`large`).
    """
    found = atoms(rest)
    if any(atom[0] in "?&" for atom in found):
        return False
    logs = [mono for mono in rest if any(atom[0] == "%" for atom, _ in mono)]
    if logs:  # Baker: linear forms in logarithms
        if any(sum(abs(p) for a, p in mono if a[0] == "%") != 1 or any(p < 0 for a, p in mono if a[0] == "%") for mono in logs):
            return len(rest) == 1
        return not found & {"pi", "e"}
    return not {"pi", "e"} <= found or len(rest) == 1
