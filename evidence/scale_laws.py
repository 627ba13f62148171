"""What numbers of scale say: exponents, sums of powers, growth over steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.core import DataError
from assay.measure import Interval, student
from evidence.scale import Held

__all__ = ["Growth", "Law", "exponents", "growth", "law"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """Seconds of a step as a sum of a fixed cost and of powers of a size.

    Attributes:
        fixed, linear, square: seconds at size 0, per unit, and per square of a unit; none is negative.
        off: largest relative distance from a value that was measured.
    """

    fixed: float
    linear: float
    square: float
    off: float

    def share(self, what: str, size: float) -> float:
        """Of ``fixed``, ``linear`` or ``square``: its part of a step of a size."""
        parts = {"fixed": self.fixed, "linear": self.linear * size, "square": self.square * size * size}
        return parts[what] / sum(parts.values())


def exponents(sizes: ArrayLike, seconds: ArrayLike) -> Interval:
    """The exponent b of ``seconds = a * size ** b``, by least squares on logarithms, with Student's interval over repeats.

    Args:
        sizes: ``[N]``.
        seconds: ``[repeats, N]``; each repeat has a fit of its own.

    Raises:
        DataError: fewer than two repeats, or sizes, or a number that is not positive.

    >>> str(exponents([1, 10, 100], [[2, 20, 200], [3, 30, 300]]))
    '1.000 [1.000, 1.000]'
    """
    x, y = np.asarray(sizes, np.float64), np.asarray(seconds, np.float64)
    if len(x) < 2 or not (x > 0).all() or not (y > 0).all():
        raise DataError(f"an exponent needs two sizes or more, and positive numbers: sizes {x}, seconds {y}")
    logs = np.log(x) - np.log(x).mean()
    return student((np.log(y) @ logs) / (logs @ logs))


def law(sizes: ArrayLike, seconds: ArrayLike, *, square: bool = False) -> Law:
    """Fits a `Law` by least squares of relative distances, with no part below 0.

    Args:
        sizes: ``[N]``.
        seconds: ``[N]``.
        square: with a part that grows as the square of the size.

    >>> found = law([1, 2, 4, 8], [7, 9, 13, 21])
    >>> round(found.fixed, 6), round(found.linear, 6), found.off < 1e-9
    (5.0, 2.0, True)
    """
    x, y = np.asarray(sizes, np.float64), np.asarray(seconds, np.float64)
    columns: list[NDArray[np.float64]] = [np.ones_like(x), x, *([x * x] if square else [])]
    design = np.stack(columns, 1) / y[:, None]
    kept = list(range(len(columns)))
    while True:  # the part that is most below 0 goes; there are three at most
        found, *_ = np.linalg.lstsq(design[:, kept], np.ones_like(y), rcond=None)
        if found.min() >= 0.0 or len(kept) == 1:
            break
        kept.pop(int(np.argmin(found * np.abs(design[:, kept]).max(0))))
    parts = np.zeros(3)
    parts[kept] = found
    off = float(np.abs(design[:, kept] @ found - 1.0).max())
    return Law(fixed=float(parts[0]), linear=float(parts[1]), square=float(parts[2]), off=off)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What is more per thousand steps.

    Attributes:
        resident: bytes, with its interval.
        objects: of Python's, likewise.
        files, threads: most that there were minus those at the beginning.
    """

    resident: Interval
    objects: Interval
    files: int
    threads: int


def growth(held: Sequence[Held], first: int, block: int = 1000) -> Growth:
    """Growth per thousand steps, from step ``first`` on.

    What a process holds goes up and down in stairs, so that distances from a line do not tell how sure its slope is. The mean of
    each block of steps is compared with that of the block before; differences of blocks give the mean with Student's interval.

    Args:
        held: in order of steps.
        first: what a run holds for good is there by then.
        block: steps that are taken together.

    Raises:
        DataError: fewer than three blocks.

    >>> steps = [Held(step=s, resident=7 * s, objects=100, files=4, threads=1, cpu=0.0) for s in range(0, 4001, 100)]
    >>> found = growth(steps, 1000)
    >>> str(found.resident), found.objects.value, found.files
    ('7000.000 [7000.000, 7000.000]', 0.0, 0)
    """
    kept = [h for h in held if h.step >= first]
    blocks: dict[int, list[Held]] = {}
    for h in kept:
        blocks.setdefault((h.step - first) // block, []).append(h)
    size = max(map(len, blocks.values()), default=0)
    whole = [b for b in blocks.values() if len(b) == size]
    if len(whole) < 3:
        raise DataError(
            f"{len(whole)} whole blocks of {block} steps behind step {first}; growth needs three: make the run longer"
        )

    def per_thousand(name: str) -> Interval:
        return student(np.diff([np.mean([getattr(h, name) for h in b]) for b in whole]) * (1000 / block))

    most: dict[str, Any] = {name: max(getattr(h, name) for h in kept) - getattr(kept[0], name) for name in ("files", "threads")}
    return Growth(resident=per_thousand("resident"), objects=per_thousand("objects"), **most)
