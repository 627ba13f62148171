r"""Sums, products and integrals that are written out, computed exactly: what an equation such as ``\sum_{i=1}^4 i = 10`` says."""

from __future__ import annotations

import re

from assay.verify.math.formula import formula
from assay.verify.math.functions import power
from assay.verify.math.poly import ONE, Undecidable
from assay.verify.math.ratio import Ratio, number, symbol

__all__ = ["compute_ratio", "is_size"]

_END = r"(?:(?:- )?\d+|\\pi|\{ (?:- )?(?:\d+|\\pi|\\frac \{ \\pi \} \{ \d+ \}) \})"
_SUM = re.compile(
    r"\\(?P<kind>sum|prod) _ \{ (?P<index>[a-z]) = (?P<first>(?:- )?\d{1,9}) \} \^ (?P<last>\d|\{ (?:- )?\d{1,9} \}) (?P<term>.+)"
)
_INTEGRAL = re.compile(
    rf"\\int (?:_ (?P<low>{_END}) \^ (?P<high>{_END})|\^ (?P<above>{_END}) _ (?P<below>{_END})) (?P<body>.+) d (?P<of>[a-z])"
)
_SIZE = re.compile(r"\| [A-Z] \\c[ua]p [A-Z](?: \\c[ua]p [A-Z])* \|")
_MOST = 100
"""Terms of a sum or product, and the degree of what is integrated."""
_LONGEST = 40
"""Tokens of a term."""


def is_size(source: str) -> bool:
    r"""Whether it is the size of a union or an intersection of sets, which only names a number.

    >>> is_size(r"| A \cup B |"), is_size("| x |")
    (True, False)
    """
    return _SIZE.fullmatch(source) is not None


def compute_ratio(source: str) -> Ratio | None:
    r"""The value of a sum or product between whole numbers, or of the integral of a polynomial; None for anything else.

    Args:
        source: tokens with spaces between, as `assay.verify.math.values.Opaque` has them.

    >>> compute_ratio(r"\sum _ { i = 1 } ^ 4 i").value, compute_ratio(r"\int _ 0 ^ 2 2 x d x").value
    (10, 4)
    >>> compute_ratio(r"\int _ 0 ^ a x d x") is None
    True
    """
    found = _SUM.fullmatch(source)
    try:
        if found is not None:
            return _total(found)
        found = _INTEGRAL.fullmatch(source)
        return None if found is None else _integral(found)
    except Undecidable:
        return None


def _total(found: re.Match[str]) -> Ratio | None:
    first, last = (int(found[end].replace(" ", "").strip("{}")) for end in ("first", "last"))
    term = found["term"].split()
    if not 0 < last - first + 1 <= _MOST or len(term) > _LONGEST:
        return None
    total = number(int(found["kind"] == "prod"))
    for n in range(first, last + 1):
        one = formula(
            [part for token in term for part in (("(", *_signed_factors(n), ")") if token == found["index"] else (token,))]
        )
        total = total + one if found["kind"] == "sum" else total * one
    return total


def _signed_factors(n: int) -> tuple[str, ...]:
    return (str(n),) if n >= 0 else ("-", str(-n))


def _integral(found: re.Match[str]) -> Ratio | None:
    low, high = (formula(str(found[end] or found[other]).split()) for end, other in (("low", "below"), ("high", "above")))
    body, of = formula(found["body"].split()), found["of"]
    if body.bottom is not ONE:
        return None
    total = number(0)
    for mono, factor in body.top.items():
        by = dict(mono).pop(of, 0)
        others = [atom for atom, _ in mono if atom != of]
        if by.denominator != 1 or not 0 <= by <= _MOST or not set(others) <= {"pi", "e"}:
            return None
        rest = number(factor)
        for atom, raised in mono:
            rest = rest * (number(1) if atom == of else power(symbol(atom), number(raised)))
        total = total + rest / number(by + 1) * (power(high, number(by + 1)) - power(low, number(by + 1)))
    return total
