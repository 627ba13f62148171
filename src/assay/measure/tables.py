"""Evaluations and comparisons as tables for people (rich) and as JSON for programs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.core.canon import plain
from assay.measure.accuracy_at_k import EvalRow, EvalTable
from assay.measure.intervals import Interval, Paired
from assay.measure.runs import RunComparison

__all__ = [
    "comparison_json",
    "comparison_table",
    "evaluation_json",
    "evaluation_table",
    "paired_json",
    "paired_table",
    "render",
]


def evaluation_table(table: EvalTable, title: str = "", tasks: bool = False) -> Table:
    """One row per (arm, level) and one for all; with ``tasks`` also one per task. Intervals are over tasks."""
    out = _table(title, "tasks", *table.names)
    rows = [*table.tasks, *table.cells] if tasks else list(table.cells)
    for index, row in enumerate(rows):
        out.add_row(*_cells(row), end_section=index == len(rows) - 1)
    out.add_row(*_cells(table.total), style="bold")
    return out


def evaluation_json(table: EvalTable) -> dict[str, Any]:
    """The same as plain values: ``threshold``, ``attempts``, ``all``, ``cells``, ``tasks``."""
    return {
        "threshold": table.threshold,
        "attempts": table.rollouts,
        "all": plain(table.total),
        "cells": [plain(r) for r in table.cells],
        "tasks": [plain(r) for r in table.tasks],
    }


def paired_table(rows: Sequence[tuple[str, Paired]], title: str = "") -> Table:
    """Paired differences, one row each: name, difference with interval, p-value, and how many tasks went which way."""
    out = _table(title, "difference", "p", "better", "worse", "same")
    for name, p in rows:
        out.add_row(name, _format_signed(p.difference), _p(p.p_value), str(p.better), str(p.worse), str(p.same))
    return out


def paired_json(rows: Sequence[tuple[str, Paired]]) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [{"name": name, **plain(p)} for name, p in rows]


def comparison_table(rows: Sequence[RunComparison], title: str = "") -> Table:
    """Several runs: last accuracy, gain over the own base, difference from the first run; paired where items coincide."""
    out = _table(title, "seed", "step", "accuracy", "gain over base", "against first", "p")
    for r in rows:
        first = r.versus_first
        out.add_row(
            r.name,
            "–" if r.seed is None else str(r.seed),
            str(r.step),
            _interval(r.accuracy) if r.accuracy else "–",
            _format_signed(r.gain.difference) if r.gain else "–",
            _format_signed(first.difference) if first else "–",
            _p(first.p_value) if first else "–",
        )
    return out


def comparison_json(rows: Sequence[RunComparison]) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [plain(r) for r in rows]


def render(table: Table, width: int = 100) -> str:
    """A table as plain text without colours, for logs and files.

    >>> print(render(paired_table([("now - base", Paired(Interval(0.25, 0.1, 0.4), 0.01, 9, 1, 6))]), 80))
    <BLANKLINE>
                               difference       p   better   worse   same
     ────────────────────────────────────────────────────────────────────
     now - base   +0.250 (+0.100, +0.400)   0.010        9       1      6
    <BLANKLINE>
    """
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(table)
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _table(title: str, *columns: str) -> Table:
    out = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    out.add_column("")
    for name in columns:
        out.add_column(name, justify="right")
    return out


def _cells(row: EvalRow) -> list[str | Text]:
    shown = [f"{m.value:.3f}" if row.tasks == 1 and m.low == m.high else _interval(m) for m in row.metrics.values()]
    return [Text(row.name), str(row.tasks), *shown]


def _interval(x: Interval) -> str:
    return f"{x.value:.3f} ({x.low:.3f}, {x.high:.3f})"  # square brackets would be markup to rich


def _format_signed(x: Interval) -> str:
    return f"{x.value:+.3f} ({x.low:+.3f}, {x.high:+.3f})"


def _p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"
