"""The symbolic tier: formulas as ``math-verify`` reads them. It may compute without end: it runs where it can be killed.

What can be evaluated is compared at random places, with several times the digits that the numbers in the formulas have
(`assay.verify.math.digits`): equal formulas agree there, and different ones do not, however small or close they are. What is no
expression is left to ``math-verify``'s own comparison.
"""

from __future__ import annotations

import logging
import random
import re
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from assay.core.errors import how_to_install
from assay.verify.math import large
from assay.verify.math.digits import MOST, digits_for, size
from assay.verify.math.guards import tame

__all__ = ["MISSING", "available", "load", "same"]

MISSING = f"the symbolic tier is not installed: {how_to_install('math')}"

_DEGREES = re.compile(r"\^\s*(?:\\circ|\{\s*\\circ\s*\})")
_DECIMAL = re.compile(r"(\d*)\.(\d+)")
_PLACES = 8
_ENOUGH = 3
_FIRST = (
    ("\\sin ( 2 x ) + \\frac { 1 } { 2 }", "2 \\sin x \\cos x + 0.5"),
    ("\\sqrt { x ^ { 2 } + 1 } - \\ln ( x )", "| x | \\cdot \\log _ { 2 } 3 + e ^ { 2 x }"),
    ("\\tan ^ 2 ( 3 t ) + \\binom { 5 } { 2 }", "4 ! + \\pi / 2 - \\arctan ( t )"),
)
_COUNTERS = frozenset("kmnN")


def available() -> bool:
    """Whether ``math-verify`` is installed; imports nothing.

    >>> isinstance(available(), bool)
    True
    """
    return find_spec("math_verify") is not None


@lru_cache(maxsize=1)
def load() -> Any:
    """The library, imported once, with what it learns on its first formulas (a second)."""
    library = import_module("math_verify")
    for name in ("math_verify", "latex2sympy2_extended"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return library


def prepare() -> None:
    """Import the library, and let its parser and its tables learn on a few formulas what each new process would have to."""
    for first, second in _FIRST:
        same(first, second)


def same(gold: str, answer: str) -> bool | None:
    """Whether two formulas are equal; None where they cannot be read, or are too large to try.

    It may run without end or raise anything: call it only in a process that can be killed.
    """
    if not (tame(gold) and tame(answer)):
        return None
    known = large.same(gold, answer)
    if known is not None:
        return known
    first, second = _parse_source(gold), _parse_source(answer)
    if first is None or second is None:
        return None
    expression = import_module("sympy").Expr
    if isinstance(first, expression) and isinstance(second, expression):
        return True if first == second else _compare_values(first, second)
    return bool(load().verify([first], [second], strict=True, timeout_seconds=None))


def _parse_source(source: str) -> Any:
    library = load()
    plain = import_module("latex2sympy2_extended").NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=False, boxed="none", equations=False
    )  # a letter at the end is no unit: ours have been read already
    config = [library.LatexExtractionConfig(normalization_config=plain)]
    source = _DEGREES.sub(r"\\frac{\\pi}{180}", source)
    source = _DECIMAL.sub(_as_fraction, source)
    found = library.parse(f"${source}$", config, fallback_mode="no_fallback", parsing_timeout=None)
    return next((value for value in found if not isinstance(value, str)), None)


def _as_fraction(match: re.Match[str]) -> str:
    """A decimal as the rational that it is: read as a float it would lose digits."""
    whole, part = match.groups()
    return f"\\frac{{{whole}{part}}}{{{10 ** len(part)}}}"


def _compare_values(first: Any, second: Any) -> bool | None:
    """Equality by evaluation; None where one of them gives no numbers, or only such as are too large to be told apart.

    A place counts where both are real. Only where that never happens do complex values count: ``2 ln x`` is ``ln(x^2)`` wherever
    both are defined.
    """
    sympy = import_module("sympy")
    first, second = _without_factor(*(_exact(sympy, value) for value in (first, second)))
    symbols = sorted(first.free_symbols | second.free_symbols, key=str)
    rng = random.Random("places")
    real: list[bool] = []
    other: list[bool] = []
    for n in range(_PLACES if symbols else 1):
        place = {symbol: _place(sympy, rng, n, str(symbol)) for symbol in symbols}
        there = [value.subs(place) for value in (first, second)]
        digits, agreed = digits_for(sum(map(size, there)))
        if digits > MOST:
            return None
        one, two = (value.evalf(digits) for value in there)
        if not (one.is_number and two.is_number and one.is_finite and two.is_finite):
            continue
        close = bool(abs(one - two) <= sympy.Float(10, digits) ** -agreed)
        (real if one.is_real and two.is_real else other).append(close)
    if len(real) >= min(_ENOUGH, _PLACES if symbols else 1):
        return all(real)
    return all(other) if other and not real else None


def _without_factor(first: Any, second: Any) -> tuple[Any, Any]:
    """The two, divided by the rational factor of the second: ``sin(x) / 7^2023`` needs no thousands of digits."""
    (one, left), (two, right) = first.as_coeff_Mul(), second.as_coeff_Mul()
    return (one / two * left, right) if one.is_Rational and two.is_Rational and two != 0 else (first, second)


def _exact(sympy: Any, value: Any) -> Any:
    """The imaginary unit as itself, and everything evaluated that was left standing."""
    return value.subs({symbol: sympy.I for symbol in value.free_symbols if str(symbol) == "i"}).doit()


def _place(sympy: Any, rng: random.Random, n: int, name: str) -> Any:
    if name in _COUNTERS and n % 2:
        return sympy.Integer(n // 2 + 1)
    value = sympy.Rational(rng.randint(300, 2900), 1009)
    return -value if n % 4 == 3 and name not in _COUNTERS else value
