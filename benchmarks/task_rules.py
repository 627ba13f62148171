"""Train by the rules of published task systems, and beside each a control: the sign is written here before the first run.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.task_rules [--trials NAME ...] [--seeds 2]

Records go to ``docs/evidence/task_rules.json``, of which ``docs/evidence/task_rules.md`` is made; trials that are there are read, not
run. Every trial starts from the base of its seed and is judged by the true verifier on held-out items. None was tuned.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.core import Sampling
from assay.train import Policy, Run, train
from benchmarks.task_rules_arms import ARMS, TRIALS, Arm, Trial

PLACE = Path(__file__).parents[1] / "docs" / "evidence" / "task_rules.json"
PER_LEVEL, DRAWS = 48, 2

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row of the page.

    Attributes:
        base, part, control: accuracies seed by seed.
    """

    base: list[float]
    part: list[float]
    control: list[float]

    @property
    def gaps(self) -> list[float]:
        """The part's less its control's."""
        return [a - b for a, b in zip(self.part, self.control, strict=True)]

    @property
    def found(self) -> str:
        """The sign that all seeds have."""
        gaps = self.gaps
        return "higher" if min(gaps) > 0 else "lower" if max(gaps) < 0 else "seeds disagree" if any(gaps) else "none"


def measured(trial: Trial, seed: int) -> dict[str, Any]:
    """Accuracy by level behind a run, drawn and greedy, and what was spent."""
    with tempfile.TemporaryDirectory() as folder, trial.service() as url:
        run: Run = trial.run(seed, url)
        done = train(run, Path(folder) / "run", progress=False)
        lines = [json.loads(line)["metrics"] for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
        scores = {f"{when}-{how}": _judged(trial, place, n) for when, place in (("base", done.folder / "start"), ("end", done.folder))
                  for how, n in (("drawn", DRAWS), ("greedy", 0))}  # fmt: skip
    steps = [line for line in lines if "time/cpu" in line]
    return {
        **scores,
        "steps": len(steps),
        "tokens": sum(line.get("tokens/sampled", 0.0) for line in lines),
        "cpu": round(steps[-1]["time/cpu"], 1),
    }


def _judged(trial: Trial, model: Path, n: int) -> dict[str, float]:
    items = Policy(model).evaluate(trial.truth, n=n, per_level=PER_LEVEL, sampling=Sampling(max_new_tokens=trial.new))
    found: dict[str, list[float]] = {}
    for item in items:
        found.setdefault(f"{item['arm']}/{item['level']}", []).extend(float(value >= 1.0) for value in item["values"])
    return {cell: round(float(np.mean(values)), 4) for cell, values in sorted(found.items())}


def outcome(arm: Arm, records: Mapping[str, Mapping[str, Record]]) -> Outcome:
    """Mean accuracy over the arm's levels, of the seeds that both trials have."""
    part, control = records.get(arm.part, {}), records.get(arm.control, {})
    seeds = sorted(set(part) & set(control))

    def mean(record: Record, when: str) -> float:
        cells = record[f"{when}-{arm.how}"]
        return float(np.mean([value for cell, value in cells.items() if not arm.levels or int(cell.rpartition("/")[2]) in arm.levels]))

    return Outcome(
        [mean(part[s], "base") for s in seeds], [mean(part[s], "end") for s in seeds], [mean(control[s], "end") for s in seeds]
    )


def row_of(arm: Arm, records: Mapping[str, Mapping[str, Record]]) -> str:
    """A line of the table."""
    of = outcome(arm, records)
    shown = [" ".join(f"{x:.3f}" for x in column) for column in (of.base, of.part, of.control)]
    gaps = " ".join(f"{gap:+.3f}" for gap in of.gaps)
    levels = f"levels {arm.levels[0]} to {arm.levels[-1]}" if arm.levels else "all levels"
    return f"| {arm.name} | {arm.how}, {levels} | {' | '.join(shown)} | {gaps} | {arm.predicted} | {of.found} |"


def cost_of(name: str, records: Mapping[str, Mapping[str, Record]]) -> str:
    """A line of what a trial was and spent."""
    runs = [records[name][seed] for seed in sorted(records[name])]
    steps, cpu = ("/".join(str(run[key]) for run in runs) for key in ("steps", "cpu"))
    greedy = " ".join(f"{np.mean([*run['end-greedy'].values()]):.3f}" for run in runs)
    return f"| `{name}` | {TRIALS[name].what} | {greedy} | {steps} | {np.mean([r['tokens'] for r in runs]):,.0f} | {cpu} |"


def page(records: Mapping[str, Mapping[str, Record]]) -> str:
    """The page of these records."""
    done = [arm for arm in ARMS if outcome(arm, records).part]
    table = "\n".join(row_of(arm, records) for arm in done)
    reasons = "\n".join(f"- **{a.name}**: `{a.part}` against `{a.control}`: {a.predicted}, because {a.why}." for a in done)
    costs = "\n".join(cost_of(name, records) for name in TRIALS if name in records)
    gained = [a.name for a in done if min(p - b for p, b in zip(outcome(a, records).part, outcome(a, records).base, strict=True)) > 0]
    return f"""# Rules of task systems beside their controls

Each trial trains a base of 0.34M parameters on a family of short tasks. Part and control start from the same weights, and both are
judged by the true verifier on the same held-out items, {PER_LEVEL} of each level: drawn {DRAWS} times each at temperature 1, or once greedily. Numbers
stand seed by seed. Two seeds say little: found is a sign that both have, there is no interval, and nothing was tuned.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.task_rules

| rule | accuracy | base | part | control | difference | predicted | found |
|---|---|---|---|---|---|---|---|
{table}

Above its base on all seeds is the part of: {"; ".join(gained) or "none"}. Where a part is above its control and not above its base, the
control fell, which is no gain by training.

The signs were written in the table of arms (`ARMS` in `benchmarks/task_rules_arms.py`) before the first run:

{reasons}

## What each trial was

Steps and CPU-seconds are seed by seed, of training without its base and without evaluation; greedy accuracy is over all levels.

| trial | what | greedy | steps | tokens sampled | CPU-s |
|---|---|---|---|---|---|
{costs}
"""


def main() -> None:
    """Runs what is missing, seed by seed, and writes the page after each trial."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trials", nargs="+", default=list(TRIALS), choices=list(TRIALS))
    given = parser.parse_args()
    records: dict[str, dict[str, Any]] = json.loads(PLACE.read_text()) if PLACE.exists() else {}
    for seed in map(str, range(given.seeds)):
        for name in given.trials:
            if seed not in records.setdefault(name, {}):
                records[name][seed] = measured(TRIALS[name], int(seed))
                print(name, seed, records[name][seed], flush=True)
                PLACE.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
                PLACE.with_suffix(".md").write_text(page(records), encoding="utf-8")


if __name__ == "__main__":
    main()
