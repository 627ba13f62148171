"""The page of a suite: curves per family and level, the bars, and the controls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core import cache_folder
from assay.lab import WORKERS, run_cells
from assay.runs import write_json, write_text
from evidence.drawing import plotting
from evidence.mixed import MixedGate, MixedStudy, cell_means, family_means, judge_mixed

__all__ = ["make_page"]

Curve = dict[str, Any]
"""``cpu``: CPU-seconds of RL at each evaluation; ``cells``: ``ARM/level_L`` to greedy accuracies there."""


def make_page(study: MixedStudy, folder: Path) -> list[str]:
    """Runs the cells that are not done yet, and writes ``NAME.md``, ``NAME.svg`` and ``NAME.json``.

    Returns:
        The bars that are not met, in words.
    """
    shown = _list_families(study, "SHOWN")
    work = cache_folder() / "studies" / study.name
    records = run_cells(f"{study.recipe}:{study.maker}", study.cells(), work, WORKERS)
    gate = judge_mixed(records, shown, len(study.seeds))
    curves = {s: _curve(work / f"rl-{s}") for s in study.seeds}
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{study.name}.json", {"curves": curves, "cells": [_short(r) for r in records]})
    _plot(curves, shown, folder / f"{study.name}.svg")
    write_text(folder / f"{study.name}.md", _page(study, gate, records, curves))
    return gate.failures()


def _list_families(study: MixedStudy, name: str) -> Mapping[str, tuple[int, ...]]:
    return cast("Mapping[str, tuple[int, ...]]", getattr(import_module(study.recipe), name))


def _curve(folder: Path) -> Curve:
    """What the run's own evaluations found."""
    lines = [json.loads(x)["metrics"] for x in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [m for m in lines if "eval/greedy/all" in m]
    head = "eval/greedy/"
    names = sorted(n for n in (name.removeprefix(head) for name in rows[0] if name.startswith(head)) if "/level_" in n)
    return {"cpu": [float(m.get("time/cpu", 0.0)) for m in rows], "cells": {n: [m[head + n] for m in rows] for n in names}}


def _short(record: Mapping[str, Any]) -> dict[str, Any]:
    """A cell's numbers without its items."""
    names = ("kind", "seed", "steps", "digest", "cpu_seconds", "base_cpu_seconds", "machine", "load")
    kept: dict[str, Any] = {k: record[k] for k in names if k in record}
    for name in ("base_greedy", "base_sampled", "now_greedy", "now_sampled"):
        kept[name] = {f"{arm}/level_{level}": mean for (arm, level), mean in sorted(cell_means(record[name]).items())}
    return kept


def _plot(curves: Mapping[int, Curve], shown: Mapping[str, Sequence[int]], path: Path) -> None:
    """A picture per family: accuracy over CPU-seconds, a line per level, the mean over seeds; dashed where demonstrated."""
    plt = plotting()
    with plt.rc_context({"svg.fonttype": "none"}):
        rows = -(-len(shown) // 4)
        figure, axes = plt.subplots(rows, 4, figsize=(11, 2.4 * rows), sharey=True, squeeze=False, layout="constrained")
        count = min(len(c["cpu"]) for c in curves.values())
        cpu = np.mean([c["cpu"][:count] for c in curves.values()], axis=0)
        for axis, arm in zip(axes.flat, sorted(shown), strict=False):
            levels = sorted(int(n.rpartition("_")[2]) for n in next(iter(curves.values()))["cells"] if n.startswith(f"{arm}/"))
            for i, level in enumerate(levels):
                mean = np.mean([c["cells"][f"{arm}/level_{level}"][:count] for c in curves.values()], axis=0)
                style = "--" if level in shown[arm] else "-"
                axis.plot(cpu, mean, style, lw=1.2, color=plt.cm.viridis(i / len(levels)), label=str(level))
            axis.set(title=arm, ylim=(-0.03, 1.03))
            axis.grid(alpha=0.25)
            axis.legend(frameon=False, fontsize=6, ncols=2, loc="lower right")
        for axis in axes.flat[len(shown) :]:
            axis.set_axis_off()
        figure.supxlabel("CPU-seconds of RL", fontsize=9)
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)


def _page(study: MixedStudy, gate: MixedGate, records: Sequence[Mapping[str, Any]], curves: Mapping[int, Curve]) -> str:
    shown, rl = _list_families(study, "SHOWN"), [r for r in records if r["kind"] == "rl"]
    loads = [x for r in records for x in r["load"]]
    verdict = "All bars are met." if not gate.failures() else "Not met: " + "; ".join(gate.failures()) + "."
    helpers = " and ".join(f"`{arm}`" for arm in _list_families(study, "AUXILIARY"))
    elsewhere = "Long answers were demonstrated elsewhere, in what is shown at all its levels, and neither practised nor scored: "
    beside = f"{elsewhere}{helpers}." if helpers else "Nothing else is shown."
    notes = f"\n{study.notes}\n" if study.notes else ""
    return f"""# {study.title}

A model of a third of a million weights is shown the easy levels of {len(shown)} families, and improved by RL with their verifiers
on all levels. Each seed has a base of its own. {len(rl[0]["now_greedy"])} held-out items, up to 64 per level (fewer where a level
has fewer questions), greedy answers; a prompt is held out by a hash of its text. {study.tuned}

    python -m evidence {study.name}        # {study.lasts}; cells that are done are read, not run

{beside}

Machine: {"; ".join(sorted({r["machine"] for r in records}))}. One thread per run. Load average {min(loads):.1f} to
{max(loads):.1f} when a cell began or ended: above {WORKERS} other work shared the machine, and CPU-seconds read high. Numbers and
digests: `{study.name}.json`.

| seed | shown, base | shown, after | not shown, base | not shown, after | CPU-s of warm-up | CPU-s of RL |
|---|---|---|---|---|---|---|
{chr(10).join(_seed_row(gate, r) for r in rl)}

Means over families of their mean over levels. {verdict} The bars: over the seeds, levels that were not shown from at most .20
to at least .60, those that were at least .92, in 300 CPU-seconds of RL; more supervision at most .05 above its base; a random
reward lowers.

![Held-out accuracy over CPU-seconds, by family and level]({study.name}.svg)

Per level, mean over seeds, in percent; levels left of the semicolon were shown.

| family | base | base at temperature 1 | after RL |
|---|---|---|---|
{chr(10).join(_family_row(arm, rl, shown) for arm in sorted(shown))}

Not learned by the base, less than .92 on the levels shown: {_families_below(rl, "base_greedy", shown, True, 0.92)}.
Not kept, less than .92 there after RL: {_families_below(rl, "now_greedy", shown, True, 0.92)}.
Not climbed, less than .05 on the levels not shown: {_families_below(rl, "now_greedy", shown, False, 0.05)}.
A model that ends its answers where those it was shown ended must once go on by chance before a verifier can reward it; whether
that happens is luck of the seed.
{notes}
## On the way

Mean over seeds at the run's own evaluations, of fewer items than above:

| CPU-s of RL | shown | not shown |
|---|---|---|
{chr(10).join(_way(curves, shown))}

## Controls

From the same bases, under rewards that must not teach, and under more supervision on the levels shown.

| control | seed | steps | shown | not shown |
|---|---|---|---|---|
{chr(10).join(_control_row(gate, r) for r in records if r["kind"] != "rl")}

`random`: a coin toss per rollout. `format`: 1 for symbols of answers in the right number. `longer`: the supervised stage once
more, at half its learning rate.

What the form alone gives, per family, levels not shown, mean over the control's seeds, in percent:

| | {" | ".join(sorted(shown))} |
|---|{"---|" * len(shown)}
{chr(10).join(_form_rows(records, shown))}
"""


def _seed_row(gate: MixedGate, record: Mapping[str, Any]) -> str:
    (easy, hard), (easier, harder) = gate.before["rl", record["seed"]], gate.after["rl", record["seed"]]
    return (
        f"| {record['seed']} | {easy:.3f} | {easier:.3f} | {hard:.3f} | **{harder:.3f}** | {record['base_cpu_seconds']:.0f} | "
        f"{record['cpu_seconds']:.0f} |"
    )


def _family_row(arm: str, records: Sequence[Mapping[str, Any]], shown: Mapping[str, Sequence[int]]) -> str:
    def side(key: str) -> str:
        found = [cell_means(r[key]) for r in records]
        levels = sorted(level for name, level in found[0] if name == arm)
        told = {lv: f"{100 * np.mean([f[arm, lv] for f in found]):.0f}" for lv in levels}
        return f"{' '.join(t for lv, t in told.items() if lv in shown[arm])}; " + " ".join(
            t for lv, t in told.items() if lv not in shown[arm]
        )

    return f"| {arm} | {side('base_greedy')} | {side('base_sampled')} | {side('now_greedy')} |"


def _families_below(
    records: Sequence[Mapping[str, Any]], key: str, shown: Mapping[str, Sequence[int]], demonstrated: bool, bar: float
) -> str:
    """Families below a bar on one side, with the seeds."""
    found: dict[str, list[str]] = {}
    for record in records:
        for arm, mean in family_means(cell_means(record[key]), shown, demonstrated).items():
            if mean < bar:
                found.setdefault(arm, []).append(str(record["seed"]))
    return "; ".join(f"`{arm}` at seed {', '.join(seeds)}" for arm, seeds in found.items()) or "none"


def _way(curves: Mapping[int, Curve], shown: Mapping[str, Sequence[int]]) -> list[str]:
    out: list[str] = []
    for i in range(min(len(c["cpu"]) for c in curves.values())):
        sides: list[float] = []
        for demonstrated in (True, False):
            means: list[float] = []
            for curve in curves.values():
                at = {(n.partition("/level_")[0], int(n.rpartition("_")[2])): v[i] for n, v in curve["cells"].items()}
                means.append(float(np.mean(list(family_means(at, shown, demonstrated).values()))))
            sides.append(float(np.mean(means)))
        out.append(f"| {np.mean([c['cpu'][i] for c in curves.values()]):.0f} | {sides[0]:.3f} | {sides[1]:.3f} |")
    return out


def _control_row(gate: MixedGate, record: Mapping[str, Any]) -> str:
    name = (str(record["kind"]), int(record["seed"]))
    (easy, hard), (easier, harder) = gate.before[name], gate.after[name]
    return f"| {name[0]} | {name[1]} | {record['steps']} | {easy:.3f} to {easier:.3f} | {hard:.3f} to {harder:.3f} |"


def _form_rows(records: Sequence[Mapping[str, Any]], shown: Mapping[str, Sequence[int]]) -> list[str]:
    rows: list[str] = []
    asked = (("base", "format", "base_greedy"), ("format", "format", "now_greedy"), ("RL", "rl", "now_greedy"))
    seeds = {r["seed"] for r in records if r["kind"] == "format"}
    for label, kind, key in asked:
        alike = [r for r in records if r["kind"] == kind and r["seed"] in seeds]
        found = [family_means(cell_means(r[key]), shown, False) for r in alike]
        rows.append(f"| {label} | " + " | ".join(f"{100 * np.mean([f[arm] for f in found]):.0f}" for arm in sorted(shown)) + " |")
    return rows
