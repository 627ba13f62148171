"""Compare curricula at equal processor time: predicted sign first, tuned alike, judged on seeds that tuned nothing.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/curricula.py --out docs/evidence/curricula.json

The task is the quickstart's (levels 3 to 5 shown, 3 to 10 practised and judged). Every run starts from the base of its seed and
ends at the first step at which its steps have used ``BUDGET`` CPU-seconds, evaluation left out. Each arm tries the same learning
rates on the tuning seeds, and the best by mean accuracy is run on the test seeds; settings of its own are its defaults, or stand
in ``ARMS``. Runs that are in the file are read, not run. The arms of a seed run one after the other, so that load on the machine
meets all of them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core import cache_folder
from assay.guide import Dump, Frontier, Mixed, PromptValue, Refill, RuleReasoner, Sec, SuccessVariance, Uniform
from assay.lab import over_seeds
from assay.recipes import quickstart
from assay.runtime import AdamW, LearnerSettings, LearningRateSchedule
from assay.train import Callback, Evaluation, Policy, Reinforce, Run, resume, train

BUDGET = 4.0
"""CPU-seconds of steps that a run has."""

TUNING, TEST = (5, 6), (0, 1, 2, 3, 4)
PER_LEVEL = 64

Parts = Mapping[str, Any]
"""Fields of the stage that an arm sets."""

RATES = (2.5e-4, 5e-4)

ARMS: Mapping[str, Parts] = {
    "uniform": {"curriculum": Uniform()},
    "success variance": {"curriculum": SuccessVariance()},
    "frontier": {"curriculum": Frontier(start={"sort": 6})},
    "SEC": {"curriculum": Sec(alpha=0.3, temperature=0.3)},
    "DUMP": {"curriculum": Dump()},
    "RuleReasoner": {"curriculum": RuleReasoner()},
    "PCL": {"curriculum": PromptValue(pool=256)},
    "dynamic sampling": {"curriculum": Uniform(), "filter": Mixed(), "refill": Refill(rounds=4)},
}

PREDICTED: Mapping[str, tuple[str, str]] = {
    "success variance": ("higher", "few draws go to levels that are always or never solved"),
    "frontier": ("higher", "the level above the solved ones is drawn at least half of the time"),
    "SEC": ("higher", "the mean absolute advantage is largest where half of the rollouts succeed"),
    "DUMP": ("higher", "as SEC, beside a bonus for levels that were drawn seldom"),
    "RuleReasoner": (
        "lower",
        "most weight is on the longest levels, which are never solved at first and are the dearest to sample",
    ),
    "PCL": ("higher", "prompts that are solved half of the time have the most signal, and a value of a prompt costs no rollout"),
    "dynamic sampling": ("lower", "it pays for rollouts that it throws away, and the currency is processor time"),
}
"""Of each arm against uniform draws, in held-out greedy accuracy at equal CPU-seconds; written before the first run."""


class StopAtBudget(Callback):
    """Ends a run at the first step at which its steps have used so many CPU-seconds."""

    def on_step(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Whether the budget is used."""
        return metrics["time/cpu"] >= BUDGET


def run_of(arm: str, rate: float, seed: int) -> Run:
    """An arm at a learning rate, which stays: the number of steps is not known before."""
    run = quickstart(seed)
    (stage,) = run.stages
    constant = LearnerSettings(optimizer=AdamW(lr=rate), schedule=LearningRateSchedule(kind="constant"))
    stage = replace(cast(Reinforce, stage), steps=100_000, learner=constant, **ARMS[arm])
    quiet = Evaluation(every=0, final_per_level=1, kl_to_base=False)
    return replace(run, stages=(stage,), evaluation=quiet, checkpoint_every=100_000, prove_weights=False)


def measure_arm(arm: str, rate: float, seed: int) -> dict[str, Any]:
    """Held-out answers under greedy decoding after the budget, and what was spent."""
    tasks = quickstart(seed).tasks
    with tempfile.TemporaryDirectory() as folder:
        done = train(run_of(arm, rate, seed), Path(folder) / "run", progress=False, callbacks=[StopAtBudget()])
        lines = [json.loads(line)["metrics"] for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
        resume(done.folder, steps=len(lines), progress=False)  # no further step: writes the model
        items = Policy(done.folder).evaluate(tasks, n=0, per_level=PER_LEVEL)
    return {
        "arm": arm,
        "rate": rate,
        "seed": seed,
        "right": {item["id"]: float(item["values"][0] >= 1.0) for item in items},
        "steps": len(lines),
        "tokens": sum(line.get("tokens/sampled", 0.0) for line in lines),
        "cpu": lines[-1]["time/cpu"],
    }


class Study:
    """Runs that were done, in a file of JSON lines, and those that are not."""

    def __init__(self, path: Path) -> None:
        self._path = path
        known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self.records = {(r["arm"], r["rate"], r["seed"]): r for r in known}

    def record(self, arm: str, rate: float, seed: int) -> dict[str, Any]:
        """A run's record; runs what is not in the file."""
        if (arm, rate, seed) not in self.records:
            found = self.records[arm, rate, seed] = measure_arm(arm, rate, seed)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
            print(arm, rate, seed, f"{accuracy(found):.3f}", found["steps"], f"{found['cpu']:.2f}", flush=True)
        return self.records[arm, rate, seed]


def accuracy(record: Mapping[str, Any]) -> float:
    """Share of held-out items that were answered rightly."""
    return float(np.mean([*record["right"].values()]))


def gaps(first: Mapping[str, Any], second: Mapping[str, Any]) -> NDArray[np.float64]:
    """``[items]`` right in the second run minus right in the first, item by item."""
    a, b = first["right"], second["right"]
    return np.array([b[name] - a[name] for name in sorted(a)])


def verdict_of(low: float, high: float) -> str:
    """What an interval of a difference says."""
    return "higher" if low > 0 else "lower" if high < 0 else "no difference seen"


def compare(study: Study) -> dict[str, Any]:
    """Tunes every arm, runs its best configuration on the test seeds, and compares with uniform draws."""
    tuning = {(seed, r, arm): study.record(arm, r, seed) for seed in TUNING for r in RATES for arm in ARMS}
    tuned = {(arm, r): float(np.mean([accuracy(tuning[seed, r, arm]) for seed in TUNING])) for arm in ARMS for r in RATES}
    best = {arm: max(RATES, key=lambda r, arm=arm: tuned[arm, r]) for arm in ARMS}
    test = {(seed, arm): study.record(arm, best[arm], seed) for seed in TEST for arm in ARMS}
    rows: list[dict[str, Any]] = []
    for arm in ARMS:
        records = [test[seed, arm] for seed in TEST]
        row: dict[str, Any] = {
            "arm": arm,
            "rate": best[arm],
            "tuning": {f"{r:g}": round(tuned[arm, r], 4) for r in RATES},
            "accuracy": [round(accuracy(r), 4) for r in records],
            **{name: float(np.mean([r[name] for r in records])) for name in ("steps", "tokens", "cpu")},
        }
        if arm in PREDICTED:
            d = over_seeds([gaps(test[seed, "uniform"], test[seed, arm]) for seed in TEST])
            row |= {"predicted": PREDICTED[arm][0], "difference": [d.value, d.low, d.high], "found": verdict_of(d.low, d.high)}
        rows.append(row)
    return {"budget": BUDGET, "tuning_seeds": TUNING, "test_seeds": TEST, "items": 8 * PER_LEVEL, "arms": rows}


def table_of(found: Mapping[str, Any]) -> str:
    """The result as a table of Markdown."""
    lines = ["| arm | accuracy, test seeds | mean | against uniform | predicted | found | steps | tokens |", "|" + "---|" * 8]
    for row in found["arms"]:
        shown = " ".join(f"{x:.3f}" for x in row["accuracy"])
        d = row.get("difference")
        said = f"{d[0]:+.3f} [{d[1]:+.3f}, {d[2]:+.3f}] | {row['predicted']} | {row['found']}" if d else "– | – | –"
        mean = sum(row["accuracy"]) / len(TEST)
        lines.append(f"| {row['arm']} | {shown} | {mean:.3f} | {said} | {row['steps']:.0f} | {row['tokens']:,.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Runs what is missing and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=cache_folder() / "studies" / "curricula.jsonl", help="records of the runs")
    parser.add_argument("--out", type=Path, help="where the result is written")
    given = parser.parse_args()
    found = compare(Study(given.work))
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(table_of(found))


if __name__ == "__main__":
    main()
