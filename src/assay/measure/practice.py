"""The report's section on the curriculum at work: what was practised, how well, what was thrown away, which rows had signal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.measure.findings import percent
from assay.measure.html import figure, section, table
from assay.measure.plots import heat_map
from assay.measure.runs import RunView
from assay.runs.row_history import RowHistory

__all__ = ["Practice", "practice_section"]

MOST_CELLS = 18
"""Rows of a heat map; beyond, arms are shown without their levels, and of these the most practised ones."""

MOST_SPANS = 20
"""Columns of a heat map."""

LEAD = (
    "Every graded group of every step, learned from or not. A group has a signal where its rollouts differ in success; a row is "
    "one training task."
)
BINS = ("never", "under 20 %", "20 to 80 %", "over 80 %", "always")


@dataclass(frozen=True, slots=True, eq=False)
class Practice:
    """What a run practised, over spans of steps.

    Attributes:
        cells: names of arm and level, or of arms alone.
        ends: ``[spans]`` last step of each.
        draws: ``[cells, spans]`` share of the span's groups.
        success: ``[cells, spans]`` mean success; NaN where a cell was not practised.
        left_out: cells that are not shown.
    """

    cells: tuple[str, ...]
    ends: tuple[int, ...]
    draws: NDArray[np.float64]
    success: NDArray[np.float64]
    left_out: int

    @classmethod
    def of(cls, history: RowHistory) -> Practice:
        """By arm and level; by arm where there are too many."""
        several = len(np.unique(history.arm)) > 1
        names = [f"{a} {lv}" if several else f"level {lv}" for a, lv in zip(history.arm, history.level, strict=True)]
        order = sorted(set(zip(history.arm.tolist(), history.level.tolist(), names, strict=True)))
        if len(order) > MOST_CELLS:
            names = history.arm.tolist()
            order = sorted({(arm, 0, arm) for arm in names})
        groups = {name: names.count(name) for _, _, name in order}
        shown = sorted(groups, key=lambda name: -groups[name])[:MOST_CELLS]
        cells = tuple(name for _, _, name in order if name in shown)
        steps = np.unique(history.step)
        parts = np.array_split(steps, min(MOST_SPANS, len(steps)))
        span = np.searchsorted([part[-1] for part in parts], history.step)
        shape = len(cells), len(parts)
        count, rated, right = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        at = {name: i for i, name in enumerate(cells)}
        row = np.array([at.get(name, -1) for name in names])
        known = row >= 0
        np.add.at(count, (row[known], span[known]), 1.0)
        graded = known & ~np.isnan(history.reward)
        np.add.at(rated, (row[graded], span[graded]), 1.0)
        np.add.at(right, (row[graded], span[graded]), history.reward[graded])
        success = np.where(rated > 0, right / np.maximum(1.0, rated), np.nan)
        totals = np.bincount(span, minlength=len(parts))
        return cls(cells, tuple(int(part[-1]) for part in parts), count / totals, success, len(order) - len(cells))


def practice_section(run: RunView) -> str:
    """The section; empty where the run has no history of rows."""
    history = RowHistory.read(run.folder)
    if history is None:
        return ""
    inside = "\n".join(_heat_maps(Practice.of(history)))
    return section(
        "What was practised",
        f'<div class="grid">{inside}</div>',
        table(("", "groups", "share"), _waste(history), "Groups of the whole run, and what became of them."),
        table(("solved", "rows", "groups", "groups with a signal"), _rows(history), _rows_caption(history)),
        lead=LEAD,
    )


def _heat_maps(practice: Practice) -> Iterator[str]:
    kinds = {
        "Draws": (practice.draws, "Percent of the groups of these steps, by arm and level."),
        "Success in practice": (practice.success, "Percent of rollouts that were right, of what was practised then."),
    }
    more = f" {practice.left_out} less practised ones are not shown." if practice.left_out else ""
    for title, (values, caption) in kinds.items():
        name = title.split()[0].lower()
        roomy, narrow = (heat_map(f"practice-{name}-{n}", practice.ends, practice.cells, values, narrow=bool(n)) for n in (0, 1))
        words = ", ".join(f"{cell} {_ends(row)}" for cell, row in zip(practice.cells, values, strict=True))
        yield figure(title, roomy, f"{title}, first to last steps: {words}.", caption + more, narrow)


def _ends(row: NDArray[np.float64]) -> str:
    known = row[np.isfinite(row)]
    return f"{percent(float(known[0]))} to {percent(float(known[-1]))}" if len(known) else "never"


def _waste(history: RowHistory) -> list[Sequence[str]]:
    """What became of groups: learned from, thrown away, without a signal, without a verdict, posed with help."""
    blank = np.isnan(history.reward)
    mixed = history.signal
    found = {
        "graded": np.ones(len(history.step), np.bool_),
        "learned from, with a signal": history.kept & mixed,
        "learned from, without a signal": history.kept & ~mixed,
        "thrown away, although with a signal": ~history.kept & mixed,
        "thrown away, without a signal": ~history.kept & ~mixed & ~blank,
        "thrown away, without a verdict": ~history.kept & blank,
        "posed with a hint or a prefix": ~history.unhelped,
    }
    whole = len(history.step)
    return [
        (name, f"{int(which.sum()):,}", percent(float(which.mean())))
        for name, which in found.items()
        if which.any() or whole == 0
    ]


def _rows(history: RowHistory) -> list[Sequence[str]]:
    """Rows by how often they were solved without help."""
    mine = history.unhelped & ~np.isnan(history.reward)
    ids, row = np.unique(history.id[mine], return_inverse=True)
    if not len(ids):
        return []
    groups = np.bincount(row)
    rate = np.bincount(row, weights=history.reward[mine]) / groups
    signal = np.bincount(row, weights=history.signal[mine].astype(np.float64))
    bins = np.select([rate <= 0.0, rate < 0.2, rate <= 0.8, rate < 1.0], [0, 1, 2, 3], 4)
    out: list[Sequence[str]] = []
    for number, name in enumerate(BINS):
        of = bins == number
        if of.any():
            share = percent(float(signal[of].sum() / groups[of].sum()))
            out.append((name, f"{int(of.sum()):,}", f"{int(groups[of].sum()):,}", share))
    return out


def _rows_caption(history: RowHistory) -> str:
    met = len(np.unique(history.id))
    return (
        f"The {met:,} rows that were practised, each {len(history.id) / met:.1f} times on average, by how often their rollouts "
        "were right. 'assay curate ROWS OUT --limr RUN' (or --varied, --hardest) selects rows by this history."
    )
