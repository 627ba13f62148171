"""Values as floats, for no verdict but whether a rounded number is said to be near what it is a rounding of."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from assay.verify.math.poly import Poly
from assay.verify.math.ratio import Ratio
from assay.verify.math.values import Formula

__all__ = ["rounds"]

_DECIMAL = re.compile(r"(?:- )?(?:\d+(?:\.(\d+))?|\.(\d+))( %)?")


def rounds(first: Formula, second: Formula) -> bool | None:
    r"""Whether one of two is the other, rounded to the digits that it has; None where that cannot be computed.

    Half a unit in the last place is a rounding; up to a whole one it may have been cut off, which is not known.

    >>> from assay.verify.math.read import read
    >>> [rounds(read(r"\sqrt{2}"), read(text)) for text in ("1.41", "1.42", "1.5", "3")]
    [True, None, None, False]
    """
    for exact, written in ((first, second), (second, first)):
        found = _DECIMAL.fullmatch(written.source)
        value, near = _float(exact.ratio), _float(written.ratio)
        if found is None or value is None or near is None:
            continue
        unit = 10.0 ** -(len(found.group(1) or found.group(2) or "") + 2 * bool(found.group(3)))
        apart = abs(value - near)
        return True if apart <= unit / 2 * (1 + 1e-9) else None if apart < unit else False
    return None


def _float(value: Ratio) -> float | None:
    top, bottom = _sum(value.top), _sum(value.bottom)
    return top / bottom if top is not None and bottom else None


def _sum(poly: Poly) -> float | None:
    total = 0.0
    try:
        for mono, factor in poly.items():
            term = float(Fraction(factor))
            for atom, power in mono:
                base = _CONSTANTS.get(atom) or (
                    math.log(int(atom[1:])) if atom[0] == "%" else int(atom[1:]) if atom[0] == "#" else None
                )
                if base is None:
                    return None
                term *= base ** float(power)
            total += term
    except OverflowError:
        return None
    return total


_CONSTANTS = {"pi": math.pi, "e": math.e}
