"""Train by the rules of published task systems, and beside each a control: the sign is written here before the first run.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.task_rules [--trials NAME ...] [--seeds 2]

Records go to ``docs/evidence/task_rules.json``, of which ``docs/evidence/task_rules.md`` is made; trials that are there are read,
not run. Every trial starts from the base of its seed and is judged by the true verifier on held-out items. None was tuned.
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


def measured(trial: Trial, seed: int, base: Record) -> dict[str, Any]:
    """Accuracy by level before and behind a run, and what was spent; ``base`` is what is known of its base already."""
    with tempfile.TemporaryDirectory() as folder, trial.service() as url:
        run: Run = trial.run(seed, url)
        done = train(run, Path(folder) / "run", progress=False)
        lines = [json.loads(line)["metrics"] for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
        places = {"base": done.folder / "start", "end": done.folder}
        names = [(when, how, f"{when}-{how}") for when in places for how in trial.hows]
        scores = {name: base.get(name) or _judged(trial, places[when], how) for when, how, name in names}
    steps = [line for line in lines if "time/cpu" in line]
    return {
        **scores,
        "steps": len(steps),
        "tokens": sum(line.get("tokens/sampled", 0.0) for line in lines),
        "cpu": round(steps[-1]["time/cpu"], 1),
    }


def _judged(trial: Trial, model: Path, how: str) -> dict[str, float]:
    """Accuracy of each arm and level."""
    found: dict[str, list[float]] = {}
    if how == "likeliest":
        source = trial.truth
        tasks = [
            source.task(a, level, "test", i) for a, levels in source.arms().items() for level in levels for i in range(PER_LEVEL)
        ]
        labels = [list(map(str, task.public["facts"]["labels"])) for task in tasks]
        said = Policy(model).choose([task.public_view().messages for task in tasks], labels)
        for task, label in zip(tasks, said, strict=True):
            found.setdefault(f"{task.arm}/{task.level}", []).append(float(label == task.private["answer"]))
    else:
        sampling = Sampling(max_new_tokens=trial.new)
        items = Policy(model).evaluate(trial.truth, n=DRAWS if how == "drawn" else 0, per_level=PER_LEVEL, sampling=sampling)
        for item in items:
            found.setdefault(f"{item['arm']}/{item['level']}", []).extend(float(value >= 1.0) for value in item["values"])
    return {cell: round(float(np.mean(values)), 4) for cell, values in sorted(found.items())}


def outcome(arm: Arm, records: Mapping[str, Mapping[str, Record]]) -> Outcome:
    """Mean accuracy over the arm's levels, of the seeds that both trials have."""
    part, control = records.get(arm.part, {}), records.get(arm.control, {})
    seeds = sorted(set(part) & set(control))

    def mean(record: Record, when: str, how: str) -> float:
        cells = {cell.rpartition("/")[::2]: value for cell, value in record[f"{when}-{how}"].items()}
        return float(
            np.mean([v for (a, n), v in cells.items() if arm.arms in ("", a) and (not arm.levels or int(n) in arm.levels)])
        )

    return Outcome(
        [mean(part[s], "base", arm.how) for s in seeds],
        [mean(part[s], "end", arm.how) for s in seeds],
        [mean(control[s], "end", arm.control_how or arm.how) for s in seeds],
    )


def row_of(arm: Arm, records: Mapping[str, Mapping[str, Record]]) -> str:
    """A line of the table."""
    of = outcome(arm, records)
    shown = [" ".join(f"{x:.3f}" for x in column) for column in (of.base, of.part, of.control)]
    gaps = " ".join(f"{gap:+.3f}" for gap in of.gaps)
    levels = f"levels {arm.levels[0]} to {arm.levels[-1]}" if arm.levels else "all levels"
    how = f"{arm.how} against {arm.control_how}" if arm.control_how else arm.how
    return f"| {arm.name} | {how}, {levels} | {' | '.join(shown)} | {gaps} | {arm.predicted} | {of.found} |"


def cost_of(name: str, records: Mapping[str, Mapping[str, Record]]) -> str:
    """A line of what a trial was and spent."""
    runs = [records[name][seed] for seed in sorted(records[name])]
    steps, cpu = (" ".join(str(run[key]) for run in runs) for key in ("steps", "cpu"))
    return f"| `{name}` | {TRIALS[name].what} | {steps} | {np.mean([r['tokens'] for r in runs]):,.0f} | {cpu} |"


def page(records: Mapping[str, Mapping[str, Record]]) -> str:
    """The page of these records."""
    done = [arm for arm in ARMS if outcome(arm, records).part]
    table = "\n".join(row_of(arm, records) for arm in done)
    reasons = "\n".join(f"- **{a.name}**: `{a.part}` against `{a.control}`: {a.predicted}, because {a.why}." for a in done)
    costs = "\n".join(cost_of(name, records) for name in TRIALS if name in records)
    gained = [
        a.name for a in done if min(p - b for p, b in zip(outcome(a, records).part, outcome(a, records).base, strict=True)) > 0
    ]
    return f"""# Rules of task systems beside their controls

Each trial trains a base of 0.34M parameters on a family of short tasks. Part and control start from the same weights, unless the
row says else, and both are judged by the true verifier on the same held-out items, {PER_LEVEL} of each level: drawn {DRAWS}
times each at temperature 1, once greedily, or by the likeliest of the labels. Numbers stand seed by seed. Two seeds say
little: found is a sign that both have, there is no interval, and nothing was tuned.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.task_rules

| rule | accuracy | base | part | control | difference | predicted | found |
|---|---|---|---|---|---|---|---|
{table}

Above its base on all seeds is the part of: {"; ".join(gained) or "none"}. Where a part is above its control and not above its
base, the control fell, which is no gain by training.

The signs were written in the table of arms (`ARMS` in `benchmarks/task_rules_arms.py`) before the first run:

{reasons}

Two things were changed once: a first family of sums, with powers and fractions, of which the base solved 7 %, gave way to whole
numbers; and all lengths at once became a control of mazes when the hardest alone had come to nothing. Signs stayed as they were.
Rows with one number are of one seed, and differences below .05 are within the error of such samples.

Promotion by validation may take fewer steps than its control has, for a level ends when it is mastered. The names of new
classes were never shown: no model writes them, and only decoding by perplexity can choose one. The judge of queries is a script
that knows the question's words; a judging model may err.

## What each trial was

Steps and CPU-seconds are seed by seed, of training without its base and without evaluation.

| trial | what | steps | tokens sampled | CPU-s |
|---|---|---|---|---|
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
                of = [n for n in records if seed in records[n] and n in TRIALS and TRIALS[n].base is TRIALS[name].base]
                base = {key: value for key, value in records[of[0]][seed].items() if key.startswith("base-")} if of else {}
                records[name][seed] = measured(TRIALS[name], int(seed), base)
                ends = {
                    key: round(sum(value.values()) / len(value), 3)
                    for key, value in records[name][seed].items()
                    if key.startswith(("base-", "end-"))
                }
                print(name, seed, ends, flush=True)
                PLACE.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
                PLACE.with_suffix(".md").write_text(page(records), encoding="utf-8")


if __name__ == "__main__":
    main()
