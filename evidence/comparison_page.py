"""The page of comparisons: what was asked and predicted, how each arm was tuned, and what the interval says."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core import cache_folder
from assay.lab import WORKERS, Comparison, ComparisonResult, run_cells
from assay.runs import write_json, write_text

__all__ = ["make_page"]

MAKER = "evidence.cells.comparisons:comparison_cell"
"""Makes the cells of every comparison."""

COMPARISONS = "evidence.cells.comparisons:COMPARISONS"
"""Where they are: the room of recipes lies above this one, so that it is named and not imported."""


def make_page(folder: Path) -> list[str]:
    """Runs the cells that are not done yet, tuning first, and writes ``comparison.md`` and ``comparison.json``.

    Returns:
        Nothing: a prediction that fails is a finding, not a fault.
    """
    module, _, name = COMPARISONS.partition(":")
    asked = cast(Mapping[str, Comparison], getattr(import_module(module), name))
    found, records = list[ComparisonResult](), list[dict[str, Any]]()
    for comparison in asked.values():
        work = cache_folder() / "studies" / "comparison" / comparison.name
        tuning = run_cells(MAKER, comparison.tuning_cells(), work, WORKERS)
        test = run_cells(MAKER, comparison.test_cells(comparison.chosen_rates(tuning)), work, WORKERS)
        found.append(comparison.result_of(tuning, test))
        records += [*tuning, *test]
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "comparison.json", {"comparisons": [_numbers(f) for f in found], "cells": [_short(r) for r in records]})
    write_text(folder / "comparison.md", _page(found, records))
    return []


def _numbers(found: ComparisonResult) -> dict[str, Any]:
    d = found.difference
    return {
        "name": found.comparison.name,
        "predicted": found.comparison.predicted,
        "verdict": found.verdict,
        "difference": [d.value, d.low, d.high],
        "rates": dict(found.rates),
        "tuning": [{"arm": arm, "rate": rate, "accuracy": value} for (arm, rate), value in found.tuned.items()],
        "test": {arm: dict(zip(map(str, found.comparison.test), values, strict=True)) for arm, values in found.accuracy.items()},
    }


def _short(record: Mapping[str, Any]) -> dict[str, Any]:
    return {k: record[k] for k in ("kind", "seed", "steps", "digest", "cpu_seconds", "machine", "load")}


def _page(found: list[ComparisonResult], records: list[dict[str, Any]]) -> str:
    loads = [x for r in records for x in r["load"]]
    return f"""# Comparisons: tuned alike, judged apart

Each compares two arms under the rules that a ranking needs: question, metric and predicted sign stand in the code before the run
(`evidence.cells.comparisons`); both arms get the same grid of learning rates, the same tuning seeds and the same steps; the test
seeds tuned nothing; the verdict is read off an interval. It holds for its rung and this family, and for nothing else.

    python -m evidence comparison        # cells that are done are read, not run

The metric is the accuracy of one sampled answer to each of 512 held-out items after the last step. Each seed has a base of its
own, and both arms start from it. The interval is a paired 95 % bootstrap over seeds and, within a seed, items; its quantiles are
moved outwards for the few seeds (Hesterberg 2015). *Higher*: it lies above 0. *Lower*: below. *No difference seen*: it holds 0,
which is not "no difference": the interval says how large one could be.

Machine: {"; ".join(sorted({r["machine"] for r in records}))}; {WORKERS} cells at a time, load average {min(loads):.1f} to
{max(loads):.1f}. CPU-seconds of all steps: {sum(r["cpu_seconds"] for r in records):,.0f}. Numbers and digests: `comparison.json`.

{chr(10).join(map(_section, found))}"""


def _section(found: ComparisonResult) -> str:
    c, d = found.comparison, found.difference
    first, second = c.arms
    grid = "\n".join(f"| {r:g} | " + " | ".join(f"{found.tuned[a.name, r]:.3f}" for a in c.arms) + " |" for r in c.rates)
    pairs = [found.accuracy[a.name] for a in c.arms]
    rows = "\n".join(f"| {s} | {a:.3f} | {b:.3f} | {b - a:+.3f} |" for s, a, b in zip(c.test, *pairs, strict=True))
    means = " | ".join(f"**{np.mean(values):.3f}**" for values in pairs)
    edge = (
        f" The rate of {' and of '.join(found.edge)} lies at the end of the grid: a better one may lie beyond."
        if found.edge
        else ""
    )
    kept = "as predicted" if found.verdict == c.predicted else "not as predicted"
    return f"""## {c.name}: {found.verdict}

{c.question} Rung {c.rung}; {c.steps} steps of {first.stage.groups} prompts x {first.stage.group_size} rollouts. Predicted of
`{second.name}` against `{first.name}`: *{c.predicted}*, because {c.because}.

Found: *{found.verdict}*, {kept}: {d.value:+.3f} [{d.low:+.3f}, {d.high:+.3f}].

| test seed | `{first.name}` at {found.rates[first.name]:g} | `{second.name}` at {found.rates[second.name]:g} | difference |
|---|---|---|---|
{rows}
| mean | {means} | **{d.value:+.3f}** |

Tuning, mean over seeds {" and ".join(map(str, c.tuning))}:{edge}

| learning rate | `{first.name}` | `{second.name}` |
|---|---|---|
{grid}
"""
