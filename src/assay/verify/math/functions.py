"""Powers, roots, logarithms and angles in exact arithmetic; whatever has no exact form becomes an opaque term."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from assay.verify.math.poly import BITS, ONE, Mono, Num, Undecidable, product
from assay.verify.math.ratio import Ratio, number, symbol

__all__ = ["FUNCTIONS", "absolute", "binomial", "factorial", "logarithm", "opaque", "power", "root"]

_PRIMES = tuple(n for n in range(2, 1000) if all(n % k for k in range(2, math.isqrt(n) + 1)))
_EXPANDED = 12
_LARGEST_FACTORIAL = 400
_LARGEST = 10_000
"""Largest number whose factorial is read, as powers of primes."""
_HIGHEST = 10**12
"""Largest power of a number that is read."""

Function = Callable[[Ratio], Ratio]


def opaque(name: str, *arguments: Ratio) -> Ratio:
    """A term of which only the writing is known."""
    return symbol(f"?{name}({';'.join(a.text for a in arguments)})")


def factors(n: int) -> dict[int, int] | None:
    """Prime factors of a positive integer; None where it has several that are large."""
    out: dict[int, int] = {}
    for p in _PRIMES:
        while n % p == 0:
            out[p] = out.get(p, 0) + 1
            n //= p
        if n < p * p:
            break
    if n == 1:
        return out
    if n < _PRIMES[-1] ** 2:
        return out | {n: 1}
    return None


def _split(value: Num) -> dict[int, int] | None:
    """Prime factors of a positive rational, with signed exponents."""
    top, bottom = factors(value.numerator), factors(value.denominator)
    if top is None or bottom is None:
        return None
    return top | {p: -e for p, e in bottom.items()}


# ---- powers


def power(base: Ratio, exponent: Ratio) -> Ratio:
    """``base ^ exponent``; never larger than `BITS` bits."""
    by = exponent.value
    if by is None:
        return _symbolic(base, exponent)
    if by.denominator == 1:
        return _whole(base, by.numerator) or opaque("pow", base, exponent)
    return _fractional(base, Fraction(by)) or opaque("pow", base, exponent)


def _whole(base: Ratio, n: int) -> Ratio | None:
    if n == 0:
        return number(1) if base.top else _undefined_ratio("0^0")
    term = base.term
    if term is None:
        if not base.top:
            return base if n > 0 else _undefined_ratio("a division by zero")
        if abs(n) > _EXPANDED:
            return None
        out = base
        for _ in range(abs(n) - 1):
            out = out * base
        return out if n > 0 else number(1) / out
    mono, value = term
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if value not in (1, -1) and bits * abs(n) > BITS:
        return _large(mono, value, n)
    total, factor = _raise_power(mono, n)
    coefficient = (value if n % 2 else 1) if value in (1, -1) else Fraction(value) ** n
    return Ratio({total: (coefficient * factor)}, ONE) * number(1)


def _large(mono: Mono, value: Num, n: int) -> Ratio | None:
    """A power that is not written out, as powers of primes; None where the factors are not found."""
    primes = _split(abs(value)) if abs(n) <= _HIGHEST else None
    if primes is None:
        return None
    total, factor = _raise_power(mono, n)
    return Ratio({total: factor if value > 0 or n % 2 == 0 else -factor}, ONE) * _primes({p: e * n for p, e in primes.items()})


def _primes(powers: dict[int, int]) -> Ratio:
    return Ratio({tuple(sorted((f"&{p}", e) for p, e in powers.items() if e)): 1}, ONE)


def _raise_power(mono: Mono, n: Num) -> tuple[Mono, Num]:
    out: Mono = ()
    factor: Num = 1
    for atom, exponent in mono:
        total = exponent * n
        if abs(total) > BITS and atom != "i" and atom[0] != "&":
            raise Undecidable("a power that is too high")
        # a product with a neighbour that is not there brings roots and the imaginary unit into their normal form
        more_mono, more = product(((atom, total - 1),), ((atom, 1),))
        out, again = product(out, more_mono)
        factor *= more * again
    return out, factor


def _undefined_ratio(what: str) -> Ratio:
    raise Undecidable(what)


def root(value: Ratio, degree: Ratio) -> Ratio:
    """The principal real root; of negative numbers the real one for odd degrees and ``i`` times a root for the second."""
    return power(value, number(1) / degree)


def _fractional(base: Ratio, by: Fraction) -> Ratio | None:
    term = base.term
    if term is None:
        return base if not base.top and by > 0 else None
    mono, value = term
    if any(atom == "i" or (atom[0] == "&" and (power * by).denominator != 1) for atom, power in mono):
        return None
    odd = len(mono) == 1 and mono[0][1] == 1 and value > 0  # the root of one symbol stays a power of it
    if not odd and any(atom[0] not in "#&" and atom not in ("pi", "e") for atom, _ in mono):
        return None
    sign = number(1)
    if value < 0:
        if by.denominator == 2:
            sign = _whole(symbol("i"), by.numerator) or sign
        elif by.denominator % 2:
            sign = number(-1 if by.numerator % 2 else 1)
        else:
            return None
    return _rational(abs(value), by, _raise_power(mono, by), sign)


def _rational(value: Num, by: Fraction, rest: tuple[Mono, Num], sign: Ratio) -> Ratio | None:
    primes = _split(value)
    if primes is None:
        exact = _perfect(value, by)
        return None if exact is None else sign * exact * Ratio({rest[0]: rest[1]}, ONE)
    out = sign * Ratio({rest[0]: rest[1]}, ONE)
    for p, e in primes.items():
        total = e * by
        whole = total.numerator // total.denominator
        if abs(whole) * p.bit_length() > BITS:
            return None
        out = out * number(Fraction(p) ** whole)
        if total != whole:
            out = out * symbol(f"#{p}", total - whole)
    return out


def _perfect(value: Num, by: Fraction) -> Ratio | None:
    if by.denominator != 2 or abs(by.numerator) != 1:
        return None
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top != value.numerator or bottom * bottom != value.denominator:
        return None
    found = Fraction(top, bottom)
    return number(found if by > 0 else 1 / found)


def _symbolic(base: Ratio, exponent: Ratio) -> Ratio:
    term = base.term
    if exponent.bottom is not ONE or term is None or any(atom[0] in "?&" for atom in exponent.atoms()):
        return opaque("pow", base, exponent)
    mono, value = term
    if value > 0 and not mono:
        primes = _split(value)
        bases: dict[str, int] | None = None if primes is None else {str(p): e for p, e in primes.items()}
    elif value == 1 and len(mono) == 1 and mono[0][1] == 1 and mono[0][0] not in ("i", "deg") and mono[0][0][0] not in "#%^?&":
        bases = {mono[0][0]: 1}
    else:
        bases = None
    if bases is None:
        return opaque("pow", base, exponent)
    out = number(1)
    for key, coefficient in exponent.top.items():
        if bases == {"e": 1} and key == (("i", 1), ("pi", 1)):
            out = out * (_cosine(coefficient) + symbol("i") * _sine(coefficient))
            continue
        for name, times in bases.items():
            out = out * _factor(name, key, coefficient * times)
    return out


def _factor(base: str, key: Mono, coefficient: Num) -> Ratio:
    if key:
        return symbol(f"^{base}^" + "*".join(f"({a})^{p}" for a, p in key), coefficient)
    return power(number(int(base)) if base.isdigit() else symbol(base), number(coefficient))


# ---- logarithms


def logarithm(value: Ratio, base: Ratio | None = None) -> Ratio:
    """Natural, or to a base."""
    if base is not None:
        return logarithm(value) / logarithm(base)
    term = value.term
    if term is not None and term[1] > 0 and all(atom == "e" or atom[0] in "#&" for atom, _ in term[0]):
        primes = _split(term[1])
        if primes is not None:
            total = number(0)
            for p, e in primes.items():
                total = total + symbol(f"%{p}") * number(e)
            for atom, exponent in term[0]:
                total = total + (number(exponent) if atom == "e" else symbol(f"%{atom[1:]}") * number(exponent))
            return total
    if not value.top:
        raise Undecidable("the logarithm of 0")
    return opaque("ln", value)


# ---- angles

_HALF = Fraction(1, 2)
_TABLE: dict[Fraction, tuple[Num, int]] = {
    Fraction(0): (0, 1),
    Fraction(1, 6): (_HALF, 1),
    Fraction(1, 4): (_HALF, 2),
    Fraction(1, 3): (_HALF, 3),
    _HALF: (1, 1),
}
"""``sin(k pi)`` for k up to one half: a rational times the root of an integer."""


def _sine(turns: Num) -> Ratio:
    """``sin(turns * pi)``."""
    turns = Fraction(turns) % 2
    sign = 1
    if turns >= 1:
        turns, sign = turns - 1, -1
    if turns > _HALF:
        turns = 1 - turns
    if turns not in _TABLE:
        return number(sign) * opaque("sin", number(turns) * symbol("pi"))
    factor, under = _TABLE[turns]
    return number(sign * factor) * (number(1) if under == 1 else symbol(f"#{under}", _HALF))


def _cosine(turns: Num) -> Ratio:
    return _sine(Fraction(turns) + _HALF)


def _turns(angle: Ratio) -> Num | None:
    """The angle as a multiple of pi; None where it is no rational one."""
    if not angle.top:
        return 0
    term = angle.term
    if term is None:
        return None
    if term[0] == (("pi", 1),):
        return term[1]
    return Fraction(term[1]) / 180 if term[0] == (("deg", 1),) else None


def _trigonometric(name: str) -> Function:
    return lambda angle: _angle(name, angle)


def _angle(name: str, angle: Ratio) -> Ratio:
    turns = _turns(angle)
    if turns is None:
        return opaque(name, angle)
    sine, cosine = _sine(turns), _cosine(turns)
    pairs = {
        "sin": (sine, None),
        "cos": (cosine, None),
        "tan": (sine, cosine),
        "cot": (cosine, sine),
        "sec": (number(1), cosine),
        "csc": (number(1), sine),
    }
    top, bottom = pairs[name]
    return top if bottom is None else top / bottom


# ---- whole numbers


def factorial(value: Ratio) -> Ratio:
    """``n!`` of a natural number; above a few hundred as powers of primes."""
    n = value.value
    if n is None or n.denominator != 1 or not 0 <= n <= _LARGEST:
        return opaque("factorial", value)
    return number(math.factorial(n.numerator)) if n <= _LARGEST_FACTORIAL else _primes(_in_factorial(n.numerator))


@lru_cache(maxsize=64)
def _in_factorial(n: int) -> dict[int, int]:
    """Prime factors of ``n!`` (Legendre)."""
    out: dict[int, int] = {}
    for p in _sieve():
        if p > n:
            break
        power, left = 0, n // p
        while left:
            power, left = power + left, left // p
        out[p] = power
    return out


@lru_cache(maxsize=1)
def _sieve() -> tuple[int, ...]:
    marks = bytearray([1]) * (_LARGEST + 1)
    for n in range(2, math.isqrt(_LARGEST) + 1):
        if marks[n]:
            marks[n * n :: n] = bytes(len(range(n * n, _LARGEST + 1, n)))
    return tuple(n for n in range(2, _LARGEST + 1) if marks[n])


def binomial(n: Ratio, k: Ratio) -> Ratio:
    """``n`` over ``k``, of natural numbers; a large one as powers of primes."""
    top, bottom = n.value, k.value
    if top is None or bottom is None or top.denominator != 1 or bottom.denominator != 1 or not 0 <= bottom <= top <= _LARGEST:
        return opaque("binomial", n, k)
    if top <= 1000 or min(bottom, top - bottom) * top.numerator.bit_length() <= BITS:
        return number(math.comb(top.numerator, bottom.numerator))
    above, below = _in_factorial(top.numerator), [_in_factorial(part.numerator) for part in (bottom, top - bottom)]
    return _primes({p: e - sum(part.get(p, 0) for part in below) for p, e in above.items()})


def absolute(value: Ratio) -> Ratio:
    """``|x|``, exact for a rational times positive constants."""
    if not value.top:
        return value
    term = value.term
    if term is not None and all(atom[0] in "#&" or atom in ("pi", "e") for atom, _ in term[0]):
        return Ratio({term[0]: abs(term[1])}, ONE)
    return opaque("abs", value)


def _floor(value: Ratio) -> Ratio:
    n = value.value
    return opaque("floor", value) if n is None else number(n.numerator // n.denominator)


def _ceil(value: Ratio) -> Ratio:
    n = value.value
    return opaque("ceil", value) if n is None else number(-(-n.numerator // n.denominator))


FUNCTIONS: dict[str, Function] = {
    "sin": _trigonometric("sin"),
    "cos": _trigonometric("cos"),
    "tan": _trigonometric("tan"),
    "cot": _trigonometric("cot"),
    "sec": _trigonometric("sec"),
    "csc": _trigonometric("csc"),
    "ln": logarithm,
    "exp": lambda value: power(symbol("e"), value),
    "abs": absolute,
    "floor": _floor,
    "ceil": _ceil,
    "lg": lambda value: logarithm(value, number(10)),
}
"""Functions of one argument by name."""
