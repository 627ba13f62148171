"""Does help that fades teach what rewards alone do not? Runs of the recipe ``hard``, without help, and with wrong help."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assay.core import cache_folder
from assay.lab import accuracy, run_cells
from assay.runs import write_json, write_text

__all__ = ["ARMS", "PREDICTED", "SEEDS", "failures", "make_page", "page", "row_of"]

MAKER = "assay.recipes:hard_cell"

SEEDS = (0, 1)
"""Level, base and learning rate were chosen on seed 0, with the arms ``seele``, ``guide`` and ``ghpo`` and shorter runs."""

ARMS: Mapping[str, str] = {
    "plain": "GRPO without help",
    "seele": "`Seele`: two rounds of four, behind as long a part of the solution as half of them need",
    "other": "control: the same with another task's solution",
}

PREDICTED: Mapping[str, tuple[float, float]] = {
    "plain": (0.0, 0.02),
    "seele": (0.6, 1.0),
    "other": (0.0, 0.05),
}
"""Bounds on the mean over seeds of held-out greedy accuracy without help, written before the runs of the page."""

SPANS = ("first", "middle", "last")
_SPAN = 30


def row_of(record: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A cell's numbers, and what its metrics say of help in the first, middle and last 30 steps."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = [line["metrics"] for line in lines if "reward/mean" in line["metrics"]]
    middle = max(0, len(steps) // 2 - _SPAN // 2)
    spans = dict(zip(SPANS, (steps[:_SPAN], steps[middle : middle + _SPAN], steps[-_SPAN:]), strict=True))
    return {
        "arm": record["kind"],
        "seed": record["seed"],
        **{name: accuracy(record[name]) for name in ("base_greedy", "base_sampled", "now_greedy", "now_sampled")},
        "items": len(record["base_greedy"]),
        "cpu_seconds": record["cpu_seconds"],
        "tokens": sum(m.get("tokens/sampled", 0.0) for m in steps),
        "help": {span: {name: _mean(part, f"help/{name}") for name in _HELP} for span, part in spans.items()},
        "machine": record["machine"],
        "load": record["load"],
    }


_HELP = ("share", "success", "success_without", "prefix")


def _mean(steps: Sequence[Mapping[str, float]], name: str) -> float | None:
    found = [m[name] for m in steps if name in m]
    return float(np.mean(found)) if found else None


def make_page(folder: Path) -> list[str]:
    """Runs the cells that are not done yet, one at a time, and writes ``help.md`` and ``help.json``; about 30 CPU-seconds each.

    Returns:
        What is not as predicted, in words.
    """
    work = cache_folder() / "studies" / "help"
    records = run_cells(MAKER, [(arm, seed, None) for seed in SEEDS for arm in ARMS], work, 1)
    rows = [row_of(record, work / f"{record['kind']}-{record['seed']}") for record in records]
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "help.json", {"rows": rows})
    write_text(folder / "help.md", page(rows))
    return failures(rows)


def failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is not as predicted; and bases that solve a task of the level."""
    found: list[str] = []
    for arm, (low, high) in PREDICTED.items():
        mean = float(np.mean([r["now_greedy"] for r in rows if r["arm"] == arm]))
        if not low <= mean <= high:
            found.append(f"{arm}: {mean:.3f}, predicted {low:.2f} to {high:.2f}")
    found += [f"the base of seed {r['seed']} solves tasks" for r in rows if r["arm"] == "plain" and r["base_sampled"] > 0.0]
    return found


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """The page of these numbers."""
    wrong = failures(rows)
    seeds = sorted({r["seed"] for r in rows})
    loads = [x for r in rows for x in r["load"]]
    heads = " | ".join(f"seed {s}" for s in seeds)
    verdict = "All is as predicted." if not wrong else "Not as predicted: " + "; ".join(wrong) + "."
    return f"""# Help that fades: tasks that the base never solves

A 0.34M-parameter base computes rows of 2 to 6 gates, and was shown how to finish longer ones from half of their solution in the
prompt. Of {rows[0]["items"]} held-out rows of 9 gates it solves none without that half, greedily or sampled. Each arm trains
it for 500 steps on 9 gates alone, and is judged on held-out rows of 9 gates **without help**, greedily. Help is the first part
of the solution, with which answers begin.

    python -m evidence help        # about four minutes on a quiet core; cells that are done are read, not run

{len(seeds)} seeds, each with a base of its own. Level and settings were chosen on seed 0, in shorter runs. Steps are
equal, not cost: CPU-seconds are of the RL steps, evaluation left out, on a shared machine (load {min(loads):.0f} to
{max(loads):.0f} on two cores). Machine: {"; ".join(sorted({r["machine"] for r in rows}))}.

| arm | predicted mean | {heads} | mean | tokens sampled | CPU-s |
|---|---|---|{"---|" * len(seeds)}---|---|
{chr(10).join(_result(arm, rows, seeds) for arm in ARMS)}

{verdict} The bounds were written before the runs (`evidence.help_page.PREDICTED`).

{chr(10).join(f"- `{arm}`: {what}." for arm, what in ARMS.items())}

## How help fades

Means over seeds, in the first, the middle and the last 30 steps: the share of rollouts with help, the share of the solution
that prefixes gave, and success with help and without.

| arm | rollouts with help | of the solution | success with help | success without |
|---|---|---|---|---|
{chr(10).join(_help(arm, rows) for arm in ARMS if arm != "plain")}

Not compared here: the other kinds of help, which `assay.recipes.hard_cell` has as arms.
"""


def _result(arm: str, rows: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> str:
    own = {r["seed"]: r for r in rows if r["arm"] == arm}
    low, high = PREDICTED[arm]
    each = " | ".join(f"{own[s]['now_greedy']:.3f}" for s in seeds)
    mean = np.mean([r["now_greedy"] for r in own.values()])
    tokens, cpu = (np.mean([r[name] for r in own.values()]) for name in ("tokens", "cpu_seconds"))
    return f"| {arm} | {low:.2f} to {high:.2f} | {each} | **{mean:.3f}** | {tokens:,.0f} | {cpu:.0f} |"


def _help(arm: str, rows: Sequence[Mapping[str, Any]]) -> str:
    own = [r["help"] for r in rows if r["arm"] == arm]

    def told(name: str) -> str:
        values = [[h[span][name] for h in own if h[span][name] is not None] for span in SPANS]
        return ", ".join(f"{np.mean(v):.2f}" if v else "–" for v in values)

    return f"| {arm} | {told('share')} | {told('prefix')} | {told('success')} | {told('success_without')} |"
