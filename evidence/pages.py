"""Committed evidence: each study's cells run (or read, where done), and its page written from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from assay.core import UnknownNameError, cache_folder
from assay.lab import GATE_SEEDS, WORKERS, LearningGate, accuracy, change, judge, run_cells
from assay.runs import write_json, write_text
from evidence import (
    atlas,
    calibration_page,
    comparison_page,
    contamination_page,
    control_methods_page,
    control_page,
    families_page,
    gpu_page,
    help_page,
    kills,
    levels_page,
    methods_page,
    mismatch_page,
    mixed_page,
    rung_page,
    scale_page,
    speed_page,
)
from evidence.audits import page as verifiers_page
from evidence.cells.gate import CONTROLS, MAKER
from evidence.drawing import plotting
from evidence.mixed import LEDGER, MIXED

__all__ = ["STUDIES", "make"]

SOON = 0.90
"""Greedy held-out accuracy to which the quickstart's page counts CPU-seconds."""


def make(folder: Path, studies: Sequence[str] = ()) -> int:
    """Writes the pages of some studies, or of all, with plots and numbers into ``folder``; the runs stay in the cache.

    Returns:
        0 when each study found what it should, else 1.

    Raises:
        UnknownNameError: no such study.
    """
    failures: list[str] = []
    for name in studies or STUDIES:
        if name not in STUDIES:
            raise UnknownNameError("study", name, STUDIES)
        failures += STUDIES[name](folder)
    for failure in failures:
        print(f"not met: {failure}")
    return 1 if failures else 0


def quickstart(folder: Path) -> list[str]:
    """Runs the learning gate's cells, those that are not done yet, and writes its page, plot and numbers.

    Returns:
        The bars that are not met, in words.
    """
    work = cache_folder() / "studies" / "quickstart"
    cells = [("rl", s, None) for s in GATE_SEEDS] + [(c, s, None) for c in CONTROLS for s in GATE_SEEDS[:2]]
    records = run_cells(MAKER, cells, work, WORKERS)
    gate = judge(records)
    curves = {r["seed"]: _curve(work / f"rl-{r['seed']}") for r in records if r["kind"] == "rl"}
    folder.mkdir(parents=True, exist_ok=True)
    soon = {r["seed"]: _until(curves[r["seed"]], r["base_cpu_seconds"]) for r in records if r["kind"] == "rl"}
    write_json(folder / "quickstart.json", {"curves": curves, "cells": [_short(r) for r in records], "cpu_seconds_to_bar": soon})
    _plot(curves, folder / "quickstart.svg")
    write_text(folder / "quickstart.md", _page(gate, records, soon))
    return gate.failures()


STUDIES: Mapping[str, Callable[[Path], list[str]]] = {
    "quickstart": quickstart,
    "exact_resume": kills.make_page,
    "atlas": atlas.make_page,
    "methods": methods_page.make_page,
    "comparison": comparison_page.make_page,
    **{study.name: partial(mixed_page.make_page, study) for study in (MIXED, LEDGER)},
    "levels": levels_page.make_page,
    "rung_l1": rung_page.make_page,
    "calibration": calibration_page.make_page,
    "help": help_page.make_page,
    "contamination": contamination_page.make_page,
    "mismatch": mismatch_page.make_page,
    "control": control_page.make_page,
    "control_methods": control_methods_page.make_page,
    "tasks": families_page.make_page,
    "gpu": gpu_page.make_page,
    "scale": scale_page.make_page,
    "speed": speed_page.make_page,
    "verifiers": verifiers_page.make_page,
}
"""Study to what writes its page and says what is wrong."""


def _curve(folder: Path) -> dict[str, list[float]]:
    """Held-out accuracy over the run: step, CPU seconds of RL, greedy, sampled, and greedy on the hardest level."""
    lines = [json.loads(x) for x in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [(x["step"], x["metrics"]) for x in lines if "eval/greedy/all" in x["metrics"]]
    return {
        "step": [float(s) for s, _ in rows],
        "cpu": [float(m.get("time/cpu", 0.0)) for _, m in rows],
        "greedy": [m["eval/greedy/all"] for _, m in rows],
        "sampled": [m["eval/sampled/all"] for _, m in rows],
        "hardest": [m["eval/greedy/level_10"] for _, m in rows],
    }


def _until(curve: Mapping[str, Sequence[float]], base: float) -> float | None:
    """CPU-seconds, those of the base included, until the first evaluation at `SOON`; None where there is none."""
    reached = (cpu for cpu, greedy in zip(curve["cpu"], curve["greedy"], strict=True) if greedy >= SOON)
    return next((base + cpu for cpu in reached), None)


def _short(record: Mapping[str, Any]) -> dict[str, Any]:
    """A cell's numbers without its items."""
    kept = {
        k: record[k]
        for k in ("kind", "seed", "steps", "digest", "cpu_seconds", "base_cpu_seconds", "machine", "load")
        if k in record
    }
    for name in ("base_greedy", "base_sampled", "now_greedy", "now_sampled"):
        levels = sorted({i["level"] for i in record[name]})
        kept[name] = accuracy(record[name])
        kept[f"{name}_levels"] = {str(lv): accuracy([i for i in record[name] if i["level"] == lv]) for lv in levels}
    return kept


def _plot(curves: Mapping[int, Mapping[str, Sequence[float]]], path: Path) -> None:
    plt = plotting()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, constrained_layout=True)
    for axis, name, title in zip(axes, ("greedy", "hardest"), ("all levels, 3 to 10 digits", "10 digits"), strict=True):
        for seed, curve in curves.items():
            axis.plot(curve["step"], curve[name], lw=1.3, label=f"seed {seed}")
        axis.set(title=title, xlabel="RL steps", ylim=(-0.02, 1.02))
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("held-out greedy accuracy")
    axes[1].legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(path, format="svg", metadata={"Date": None})
    plt.close(figure)


def _page(gate: LearningGate, records: Sequence[Mapping[str, Any]], soon: Mapping[int, float | None]) -> str:
    total, loads = list(gate.cpu_seconds.values()), [x for r in records for x in r["load"]]
    told = {s: "never" if x is None else f"{x:.0f}" for s, x in soon.items()}
    rows = [
        f"| {s} | {gate.base[s]:.3f} | **{gate.greedy[s]:.3f}** | {gate.hardest[s]:.2f} | {told[s]} | {gate.cpu_seconds[s]:.0f} |"
        for s in gate.greedy
    ]
    levels = _levels([r for r in records if r["kind"] == "rl"])
    controls = [_control(r) for r in records if r["kind"] != "rl"]
    verdict = "All bars are met." if not gate.failures() else "Not met: " + "; ".join(gate.failures()) + "."
    return f"""# Quickstart: does it learn, and is it the verifier that teaches?

A 0.34M-parameter base is shown noisy traces of sorting few digits, then improved by RL with a verifier on 3 to 10 digits. Each
seed has a base of its own. 512 held-out items (64 per level), greedy answers unless stated; a prompt is held out by a hash of its
text.

    python -m evidence quickstart        # four minutes on two quiet cores; cells that are done are read, not run

Machine: {"; ".join(sorted({r["machine"] for r in records}))}. One thread per run, {WORKERS} runs at a time.
CPU-seconds are warm-up and RL steps together, evaluation left out: of the whole run, and until the first evaluation that
found {SOON:.2f} or more. The machine's load average was {min(loads):.1f} to
{max(loads):.1f} when a cell began or ended, these runs included: above {WORKERS} other work shared it, and CPU-seconds read high.
Median {np.median(total):.0f}, range {min(total):.0f} to {max(total):.0f}.

| seed | base | after RL | 10 digits | CPU-s to {SOON:.2f} | CPU-s |
|---|---|---|---|---|---|
{chr(10).join(rows)}

Median after RL **{np.median(list(gate.greedy.values())):.3f}**, worst {min(gate.greedy.values()):.3f}. {verdict}

![Held-out accuracy over RL steps, five seeds](quickstart.svg)

Per level, mean over seeds:

{levels}

## Controls

The same base under rewards that must not teach, and under more supervision. The interval is the paired 95 % bootstrap interval,
over items, of the change of greedy accuracy against the base; its upper end must not exceed +.03.

| control | seed | steps | base | after | change |
|---|---|---|---|---|---|
{chr(10).join(controls)}

`random`: a coin toss per rollout. `format`: 1 for digits in the right number. `inverted`: 1 for a wrong answer. `longer`: the
supervised stage once more on the same traces at half its learning rate. The supervised control sees no prompt of the higher
levels, so the claim is "a verifier instead of demonstrations", not "RL beats supervised learning".
"""


def _levels(records: Sequence[Mapping[str, Any]]) -> str:
    levels = sorted({i["level"] for i in records[0]["now_greedy"]})

    def row(label: str, key: str) -> str:
        means = [np.mean([accuracy([i for i in r[key] if i["level"] == lv]) for r in records]) for lv in levels]
        return f"| {label} | " + " | ".join(f"{m:.2f}" for m in means) + " |"

    head = "| digits | " + " | ".join(map(str, levels)) + " |\n|---|" + "---|" * len(levels)
    named = (("base, greedy", "base_greedy"), ("base, sampled", "base_sampled"))
    after = (("after RL, greedy", "now_greedy"), ("after RL, sampled", "now_sampled"))
    return "\n".join([head, *(row(label, key) for label, key in (*named, *after))])


def _control(record: Mapping[str, Any]) -> str:
    low, high = change(record)
    base, now = accuracy(record["base_greedy"]), accuracy(record["now_greedy"])
    return f"| {record['kind']} | {record['seed']} | {record['steps']} | {base:.3f} | {now:.3f} | [{low:+.3f}, {high:+.3f}] |"
