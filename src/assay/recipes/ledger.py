"""assay-ledger: tables, paths and sums, which ask a small model to find a row by its key. Shown their easy levels, it climbs."""

from __future__ import annotations

from collections.abc import Mapping

from assay.core.canon import FrozenMap
from assay.lab.cells import Cell
from assay.recipes.suite import Suite
from assay.tasks.small.numbers import AddDigits, RunningTotal
from assay.tasks.small.strings import EveryKth
from assay.tasks.small.tables import FollowPath, LookUpAll, RecallAll, SelectRows
from assay.tasks.small.worlds import Cells
from assay.train.run import Run

__all__ = ["AUXILIARY", "SHOWN", "ledger", "ledger_base", "ledger_cell"]

SHOWN: Mapping[str, tuple[int, ...]] = FrozenMap({
    "addition": (1, 2, 3), "lookup": (1, 2, 3, 4, 5), "path": (2, 3, 4), "recall": (1, 2, 3, 4), "select": (3, 4, 5, 6),
    "total": (2, 3, 4, 5, 6),
})  # fmt: skip
"""The levels of each scored family that the base is shown; all others it must find by itself."""

AUXILIARY: Mapping[str, tuple[int, ...]] = FrozenMap({"cells": (6, 9, 12), "skip": (4, 7, 10)})
"""Families that the base is shown, neither practised nor scored: they show that answers may be long."""


def ledger_base(seed: int = 0) -> Run:
    """The suite's base: 0.34M parameters, supervised on fresh traces of the easy levels (about 210 CPU-seconds)."""
    return _suite().base(seed)


def ledger(seed: int = 0) -> Run:
    """GRPO on tables, paths and sums at once: each has a frontier, which begins one level past what the base was shown."""
    return _suite().rl(seed)


def ledger_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """A cell of the suite's study; see `Suite.cell`.

    Args:
        kind: ``rl``, the recipe, or a control from the same base: ``random``, ``format``, ``longer``.
        seed: of run and base.
        steps: fewer or more than the recipe's own.

    Raises:
        UnknownNameError: no such cell.
    """
    return _suite().cell(kind, seed, steps)


def _suite() -> Suite:
    counted = tuple(range(1, 9))
    families = (
        AddDigits(levels=counted), LookUpAll(levels=counted), FollowPath(), RecallAll(levels=counted), SelectRows(),
        RunningTotal(), Cells(levels=AUXILIARY["cells"]), EveryKth(levels=AUXILIARY["skip"]),
    )  # fmt: skip
    return Suite(
        name="ledger", title="assay-ledger", families=families, shown=SHOWN, auxiliary=AUXILIARY,
        warm_up=2500, batch=64, gate=0.0, steps=450,
    )  # fmt: skip
