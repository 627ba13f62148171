"""assay-small: eight families, one model of a third of a million weights. Shown their easy levels, it climbs to the others."""

from __future__ import annotations

from collections.abc import Mapping

from assay.core.canon import FrozenMap
from assay.lab.cells import Cell
from assay.recipes.suite import Suite
from assay.tasks import TaskMixture, family, suite
from assay.train.run import Run

__all__ = ["AUXILIARY", "SHOWN", "assay_small", "mixed", "mixed_base", "mixed_cell"]

SHOWN: Mapping[str, tuple[int, ...]] = FrozenMap(
    {
        "dedup": (3, 4, 5, 6),
        "gates": (2, 3, 4, 5, 6),
        "knights": (1, 2, 3, 4, 5),
        "largest": (2, 3, 4),
        "octal": (2, 3, 4, 5),
        "reverse": (2, 3, 4, 5, 6),
        "sort": (3, 4, 5, 6),
        "strip": (4, 5, 6, 7),
    }
)
"""The levels of each scored family that the base is shown; all others it must find by itself."""

AUXILIARY: Mapping[str, tuple[int, ...]] = FrozenMap({"skip": (3, 4, 5, 6, 7, 8, 9, 10)})
"""Families that the base is shown at all levels, neither practised nor scored: they show that answers may be long."""


def assay_small(*, auxiliary: bool = True) -> TaskMixture:
    """The families of the suite (`assay.tasks.suite`).

    Args:
        auxiliary: with those that are only shown.

    >>> sorted(assay_small(auxiliary=False).arms()) == sorted(SHOWN)
    True
    """
    return _suite().tasks(auxiliary=auxiliary)


def mixed_base(seed: int = 0) -> Run:
    """The suite's base: 0.34M parameters, supervised on fresh traces of the easy levels (about 200 CPU-seconds)."""
    return _suite().base(seed)


def mixed(seed: int = 0) -> Run:
    """GRPO on eight families at once: each has a frontier, which begins one level past what the base was shown."""
    return _suite().rl(seed)


def mixed_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """A cell of the suite's study: arguments and errors are those of `Suite.cell`."""
    return _suite().cell(kind, seed, steps)


def _suite() -> Suite:
    sort, reverse, *others = suite("assay-small").sources
    families = (sort, reverse, *sorted((*others, *map(family, AUXILIARY)), key=lambda source: source.name))
    return Suite(name="mixed", title="assay-small", families=families, shown=SHOWN, auxiliary=AUXILIARY)
