"""How sure a share is: Wilson's interval, for every package that counts."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from assay.core.errors import DataError

__all__ = ["wilson_bounds"]

_NORMAL = NormalDist()


def wilson_bounds(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Ends of Wilson's score interval of a proportion.

    Raises:
        DataError: ``n < 1`` or ``successes`` outside ``[0, n]``.

    Source: Wilson 1927.

    >>> [round(end, 3) for end in wilson_bounds(0, 10)]
    [0.0, 0.278]
    """
    if n < 1 or not 0 <= successes <= n:
        raise DataError(f"wilson: {successes} successes of {n}; needs n >= 1 and 0 <= successes <= n")
    z = _NORMAL.inv_cdf(0.5 + confidence / 2)
    p, scale = successes / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / scale
    half = z / scale * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (0.0 if successes == 0 else middle - half), (1.0 if successes == n else middle + half)
