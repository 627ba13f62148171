"""The page of levels: do they ask more of a solver, and is a small model later and worse at them?

Another family is another name in `FAMILIES`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from assay.core import cache_folder
from assay.lab import WORKERS, run_cells
from assay.runs import write_json, write_text
from assay.tasks import family

__all__ = ["FAMILIES", "SEEDS", "Ladder", "make_page", "rank_correlation"]

MAKER = "evidence.cells.levels:levels_cell"

FAMILIES = ("gates", "counter", "path", "select", "dedup")
"""Families of one arm whose tasks tell their solver's ``effort``."""

SEEDS = (0, 1)

TASKS = 200
"""Tasks per level over which effort is averaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """What was found of one family.

    Attributes:
        name, domain: of the family.
        effort: level to the mean number of steps of its solver.
        accuracy: level to the mean accuracy of sampled answers over seeds and evaluations.
    """

    name: str
    domain: str
    effort: Mapping[int, float]
    accuracy: Mapping[int, float]

    @property
    def correlations(self) -> tuple[float, float]:
        """Spearman's rank correlation of the level with effort, and with accuracy."""
        levels = list(self.effort)
        return rank_correlation(levels, list(self.effort.values())), rank_correlation(
            levels, [self.accuracy[lv] for lv in levels]
        )

    def failures(self) -> list[str]:
        """What does not grow, in words."""
        found: list[str] = []
        if not all(a < b for a, b in pairwise(self.effort.values())):
            found.append(f"{self.name}: effort does not grow from each level to the next: {list(self.effort.values())}")
        if self.correlations[1] > -0.9:
            found.append(f"{self.name}: accuracy and level have a rank correlation of {self.correlations[1]:.2f} > -.9")
        return found


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's: the correlation of ranks, equal values sharing their mean rank.

    >>> rank_correlation([1, 2, 3], [5.0, 7.0, 9.0]), rank_correlation([1, 2, 3], [9.0, 7.0, 7.0])
    (1.0, -0.866)
    """

    def ranks(values: Sequence[float]) -> list[float]:
        ordered = sorted(values)
        return [ordered.index(v) + (ordered.count(v) - 1) / 2 for v in values]

    return round(float(np.corrcoef(ranks(x), ranks(y))[0, 1]), 3)


def make_page(folder: Path) -> list[str]:
    """Runs the cells that are not done yet, and writes ``levels.md`` and ``levels.json``.

    Returns:
        What does not grow harder, in words.
    """
    work = cache_folder() / "studies" / "levels"
    records = run_cells(MAKER, [(name, seed, None) for name in FAMILIES for seed in SEEDS], work, WORKERS)
    ladders = [_ladder(name, [work / f"{name}-{seed}" for seed in SEEDS]) for name in FAMILIES]
    folder.mkdir(parents=True, exist_ok=True)
    cells = [{k: r[k] for k in ("kind", "seed", "steps", "digest", "cpu_seconds", "machine", "load")} for r in records]
    found = [{"name": x.name, "domain": x.domain, "effort": x.effort, "accuracy": x.accuracy} for x in ladders]
    write_json(folder / "levels.json", {"families": found, "cells": cells})
    write_text(folder / "levels.md", _page(ladders, records))
    return [failure for ladder in ladders for failure in ladder.failures()]


def _ladder(name: str, folders: Sequence[Path]) -> Ladder:
    source = family(name)
    ((arm, levels),) = source.arms().items()
    tasks = {level: [source.task(arm, level, "train", i) for i in range(TASKS)] for level in levels}
    seen: dict[int, list[float]] = {level: [] for level in levels}
    for folder in folders:
        for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
            metrics = json.loads(line)["metrics"]
            for level in levels:
                if f"eval/sampled/level_{level}" in metrics:
                    seen[level].append(float(metrics[f"eval/sampled/level_{level}"]))
    return Ladder(
        name=name,
        domain=tasks[levels[0]][0].domain,
        effort={level: float(np.mean([t.private["effort"] for t in of_level])) for level, of_level in tasks.items()},
        accuracy={level: float(np.mean(values)) for level, values in seen.items()},
    )


def _page(ladders: Sequence[Ladder], records: Sequence[Mapping[str, Any]]) -> str:
    failures = [failure for ladder in ladders for failure in ladder.failures()]
    verdict = "All levels do." if not failures else "Not met: " + "; ".join(failures) + "."
    return f"""# Levels: do they grow harder?

Each family has a solver that counts its steps. And each was shown to {len(SEEDS)} fresh models of a third of a million weights,
all levels in equal parts, for {records[0]["steps"]} steps; the accuracy of sampled answers to held-out questions is averaged over
the evaluations on the way, because what is easy is learned early. A family that such a model does not begin to learn in so few
steps, as `addition` and `lookup`, says nothing here and was left out.

    python -m evidence levels        # about 15 minutes on two cores; cells that are done are read, not run

Asked: effort grows from each level to the next, and the rank correlation (Spearman's) of level and accuracy is at most -.9.
{verdict}

Machine: {"; ".join(sorted({r["machine"] for r in records}))}. Numbers and digests: `levels.json`.

| family | domain | level with effort | level with accuracy |
|---|---|---|---|
{chr(10).join(f"| {x.name} | {x.domain} | {x.correlations[0]:+.3f} | {x.correlations[1]:+.3f} |" for x in ladders)}

{chr(10).join(map(_section, ladders))}"""


def _section(ladder: Ladder) -> str:
    head = f"| level | {' | '.join(map(str, ladder.effort))} |\n|---|{'---|' * len(ladder.effort)}"
    effort = " | ".join(f"{v:.1f}" for v in ladder.effort.values())
    accuracy = " | ".join(f"{v:.2f}" for v in ladder.accuracy.values())
    return f"## {ladder.name}\n\n{head}\n| steps of the solver | {effort} |\n| accuracy | {accuracy} |\n"
