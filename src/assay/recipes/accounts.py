"""assay-ledger: rows that lead to each other, followed, collected and added up, and rows selected by their key."""

from __future__ import annotations

from collections.abc import Mapping

from assay.core.canon import FrozenMap
from assay.lab.cells import Cell
from assay.recipes.suite import Suite
from assay.train.run import Run
from assay_tasks.small.tables import AddAlong, Collect, FollowPath, SelectRows, SumAlong

__all__ = ["AUXILIARY", "SHOWN", "ledger", "ledger_base", "ledger_cell"]

SHOWN: Mapping[str, tuple[int, ...]] = FrozenMap(
    {
        "balance": (2, 3),
        "collect": (2, 3),
        "columns": (2, 3),
        "path": (2, 3),
        "select": (3, 4, 5, 6),
    }
)
"""The levels of each scored family that the base is shown; all others it must find by itself."""

AUXILIARY: Mapping[str, tuple[int, ...]] = FrozenMap({})
"""Families that the base is shown, neither practised nor scored: none."""


def ledger_base(seed: int = 0) -> Run:
    """The suite's base: 0.34M parameters, supervised on fresh traces of the easy levels (about 160 CPU-seconds)."""
    return _suite().base(seed)


def ledger(seed: int = 0) -> Run:
    """GRPO on all five families at once: each has a frontier, which begins one level past what the base was shown."""
    return _suite().rl(seed)


def ledger_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """A cell of the suite's study: arguments and errors are those of `Suite.cell`."""
    return _suite().cell(kind, seed, steps)


def _suite() -> Suite:
    families = (SumAlong(), Collect(), AddAlong(), FollowPath(dots=True), SelectRows(levels=tuple(range(3, 13))))
    return Suite(
        name="ledger",
        title="assay-ledger",
        families=families,
        shown=SHOWN,
        auxiliary=AUXILIARY,
        warm_up=1800,
        batch=64,
        gate=0.0,
        steps=280,
    )
