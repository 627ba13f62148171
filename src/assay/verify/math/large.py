r"""Numbers that are too large to be written out, compared exactly as products of powers of primes.

``7^{2023}`` and ``2006!`` are read as primes with exponents (`&p`, see `poly`), in which sums are not collected. Here a sum of
such products is tested for zero: by its remainder modulo a prime, which proves that it is not, or by computing it.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm, log2

from assay.verify.math.formula import formula
from assay.verify.math.poly import Mono, Num, Poly, Undecidable
from assay.verify.math.ratio import Ratio, independent
from assay.verify.math.tokens import tokens

__all__ = ["same", "zero"]

_MODULUS = 2**521 - 1
_BITS = 400_000
"""Bits of all numbers together that are computed for one comparison."""

_Term = tuple[Num, dict[int, int]]


def same(gold: str, answer: str) -> bool | None:
    r"""Whether two formulas are equal, where that is open only because of their large numbers; else None.

    >>> same("7 ^ { 2023 }", r"7 \cdot 7 ^ { 2022 }"), same("1 / 2004 !", "1 / 2006 !"), same(r"\sin ( x )", r"\cos ( x )")
    (True, False, None)
    """
    first, second = _read(gold), _read(answer)
    if first is None or second is None:
        return None
    try:
        return zero(first.difference(second))
    except Undecidable:
        return None


def _read(source: str) -> Ratio | None:
    try:
        return formula(tokens(source))
    except (Undecidable, RecursionError):
        return None


def zero(rest: Poly) -> bool | None:
    """Whether a sum is 0; None where that is not known.

    Of every product of symbols the coefficient is a sum of products of powers of primes, which is computed or proved not to be 0.
    """
    groups: dict[Mono, list[_Term]] = {}
    for mono, value in rest.items():
        primes = {int(atom[1:]): int(power) for atom, power in mono if atom[0] == "&"}
        others = tuple((atom, power) for atom, power in mono if atom[0] != "&")
        groups.setdefault(others, []).append((value, primes))
    known = {mono: _vanishes(terms) for mono, terms in groups.items()}
    if all(known.values()):
        return True
    if None in known.values():
        return None
    return False if independent({mono: 1 for mono, found in known.items() if not found}) else None


def _vanishes(terms: list[_Term]) -> bool | None:
    if len(terms) == 1:
        return False
    every = {p for _, primes in terms for p in primes}
    lowest = {p: min(primes.get(p, 0) for _, primes in terms) for p in every}
    whole = lcm(*(Fraction(value).denominator for value, _ in terms))
    scaled = [(int(value * whole), {p: primes.get(p, 0) - lowest[p] for p in every}) for value, primes in terms]
    remainder = 0
    for value, primes in scaled:
        for p, e in primes.items():
            value = value * pow(p, e, _MODULUS) % _MODULUS
        remainder += value
    if remainder % _MODULUS:
        return False
    if sum(abs(value).bit_length() + sum(e * log2(p) for p, e in primes.items()) for value, primes in scaled) > _BITS:
        return None
    return sum(_product(value, primes) for value, primes in scaled) == 0


def _product(value: int, primes: dict[int, int]) -> int:
    for p, e in primes.items():
        value *= p**e
    return value
