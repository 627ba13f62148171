"""The page of agents: the recipe `tools`, its controls, and published methods trained on it.

    python -m evidence.agents_page --seeds 1 2 3 4 5 [--arms true random lies ...] [--work FOLDER]

Each run is made once and kept in the work folder. The page and its numbers are written from all that are there.

Predicted before the runs of seeds 1 to 5, at bills that were never shown: the base solves at most 0.3 and the recipe
brings it to at least 0.8, in the mean of the seeds, in at most 600 CPU-s of a seed; each control ends no higher than its base.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.lab import RandomReward, Rewarded
from assay.recipes import SHOWN_BILLS, tools, tools_rlvmr
from assay.runs import write_json, write_text
from assay.train import Evaluation, Policy, Reinforce, Run, train
from assay_tasks import Bills

__all__ = ["ARMS", "Arm", "main", "page"]

TURNS = 24
PER_LEVEL = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One kind of run.

    Attributes:
        what: it is, in words.
        made: from the recipe's run.
        steps: of reinforcement learning.
        expected: what it was expected to do to bills that were never shown, written before its run: ``up`` or ``not up``.
    """

    what: str
    made: Callable[[Run], Run]
    steps: int = 240
    expected: str


ARMS: Mapping[str, Arm] = {
    "true": Arm(what="the recipe", made=lambda run: run, expected="up"),
    "random": Arm(
        what="control: rewards drawn at random",
        made=lambda run: replace(run, tasks=Rewarded(source=run.tasks, scorer=RandomReward())),
        steps=120,
        expected="not up",
    ),
    "lies": Arm(
        what="control: tools that answer with another number",
        made=lambda run: replace(run, tasks=Bills(lies=1.0)),
        steps=120,
        expected="not up",
    ),
    "rlvmr": Arm(what="RLVMR (`tools-rlvmr`)", made=lambda run: tools_rlvmr(run.seed), expected="up"),
    "rlvmr-random": Arm(
        what="control of RLVMR: rewards drawn at random",
        made=lambda run: replace(tools_rlvmr(run.seed), tasks=Rewarded(source=run.tasks, scorer=RandomReward())),
        steps=120,
        expected="not up",
    ),
}


def measure(name: str, seed: int, work: Path) -> dict[str, Any]:
    """One run, or what is kept of it: greedy accuracy by honest tools before and behind, at bills shown and never shown."""
    kept = work / f"{name}-{seed}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    arm = ARMS[name]
    run = arm.made(tools(seed))
    (stage,) = run.stages
    assert isinstance(stage, Reinforce)
    quiet = Evaluation(every=0, final_per_level=1, kl_to_base=False)
    run = replace(run, stages=(replace(stage, steps=arm.steps),), evaluation=quiet)
    done = train(run, work / f"{name}-{seed}", progress=False)
    lines = [json.loads(line)["metrics"] for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
    row = {
        "arm": name,
        "seed": seed,
        "steps": arm.steps,
        "before": _by_level(done.folder / "start"),
        "after": _by_level(done.folder),
        "cpu": lines[-1]["time/cpu"],
        "tokens": sum(line.get("tokens/sampled", 0.0) for line in lines),
        "calls": lines[-1].get("tools/calls"),
    }
    write_json(kept, row)
    return row


def _by_level(folder: Path) -> dict[str, float]:
    items = Policy(folder).evaluate(Bills(), n=0, per_level=PER_LEVEL, max_turns=TURNS)
    right: dict[str, list[bool]] = {}
    for item in items:
        right.setdefault(str(item["level"]), []).append(item["values"] == [1.0])
    return {level: sum(found) / len(found) for level, found in right.items()}


def _mean(by_level: Mapping[str, float], shown: bool) -> float:
    found = [share for level, share in by_level.items() if (int(level) in SHOWN_BILLS) is shown]
    return sum(found) / len(found)


def page(rows: list[dict[str, Any]]) -> str:
    """The page's text."""
    seeds = sorted({row["seed"] for row in rows if row["arm"] == "true"})
    lines = [
        "# Agents that use tools",
        "",
        "The recipe `tools`: a model of 0.34M weights is shown 3,000 noisy traces of bills of "
        f"{SHOWN_BILLS[0]} to {SHOWN_BILLS[-1]} lines, each looked up",
        "by one tool and added by another, then learns from its own rollouts at bills of up to 8 lines. Judged greedily, with",
        f"honest tools, on {PER_LEVEL} held-out bills of each length. *Never shown* is the mean over bills of 4 to 8 lines. What",
        "an arm should do was written into the script before its run, except for the recipe, whose settings come from this seed.",
        "",
        f"    python -m evidence.agents_page --seeds {len(seeds)}",
        "",
        "| arm | seed | steps | never shown: base | trained | expected | shown: base | trained | CPU-s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, arm in ARMS.items():
        for row in sorted((r for r in rows if r["arm"] == name), key=lambda r: r["seed"]):
            before, after = row["before"], row["after"]
            shares = [f"{_mean(found, shown):.3f}" for shown in (False, True) for found in (before, after)]
            cells = [arm.what, str(row["seed"]), str(row["steps"]), *shares[:2], arm.expected, *shares[2:], f"{row['cpu']:.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
    unmet = [f"{row['arm']} (seed {row['seed']})" for row in rows if not _as_expected(row)]
    said = "Each arm did what was expected." if not unmet else f"Not as expected: {', '.join(unmet)}."
    return "\n".join([*lines, "", *_notes(said), ""])


def _notes(said: str) -> list[str]:
    return [
        f"{said} CPU-s are those of learning and of evaluations inside the run, without the base",
        "(40), on two cores beside other work. A control is the same run with one thing changed: the reward, or what the tools",
        "answer while it learns; it has half the steps.",
    ]


def _as_expected(row: Mapping[str, Any]) -> bool:
    gain = _mean(row["after"], False) - _mean(row["before"], False)
    return (gain > 0.1) == (ARMS[row["arm"]].expected == "up")


def main() -> None:
    """Makes runs that are not there yet, and writes the page."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    parser.add_argument("--work", type=Path, default=Path("runs/agents-page"))
    parser.add_argument("--out", type=Path, default=Path("docs/evidence"))
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    for name in given.arms:
        for seed in given.seeds:
            print(json.dumps(measure(name, seed, given.work)), flush=True)
    rows = [json.loads(file.read_text()) for file in sorted(given.work.glob("*.json"))]
    write_json(given.out / "agents.json", {"rows": rows})
    write_text(given.out / "agents.md", page(rows))


if __name__ == "__main__":
    main()
