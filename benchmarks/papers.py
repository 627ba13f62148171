"""Train what no other page measures of a published system, each part beside a control that is paid at random.

    python benchmarks/papers.py --steps 150 --seeds 1        # prints a table, and JSON lines with --out FILE

OREAL learns from the quickstart's base with its token reward model. GiGPO learns on the tools, over episodes of several calls, so
that steps of one group meet the same state. CURE continues rollouts from uncertain tokens, or plays all whole. Accuracy is
greedy, on held-out tasks, by the true verifier; entropy is that of the last step.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.lab import RandomReward, Rewarded
from assay.objective import Objective, cure, gigpo, grpo, oreal
from assay.recipes import quickstart, tools
from assay.rollout import CriticalTokens
from assay.runtime import Anchor, ValueHead
from assay.train import Evaluation, Policy, Reinforce, Run, TurnState, train

PARTS = ("OREAL, token reward model", "GiGPO on tools", "CURE, critical tokens", "CURE, whole rollouts")
"""Rows of the table."""


def run_of(name: str, seed: int, steps: int) -> Run:
    """The recipe with the part in it."""
    run = tools(seed) if name.startswith("GiGPO") else quickstart(seed)
    (stage,) = run.stages
    assert isinstance(stage, Reinforce)
    objective: Objective = grpo(kl=0.0)
    more: dict[str, Any] = {"minibatches": 2}
    learner = stage.learner
    if name.startswith("OREAL"):
        more = {}
        objective = oreal(scores="belief")
        learner = replace(learner, anchors=(Anchor("ref"),), heads=(ValueHead(name="belief"),), policy_after=10)
    elif name.startswith("GiGPO"):
        objective = gigpo(state="state")
        more = {**more, "columns": (TurnState(name="state"),)}
    elif name.startswith("CURE"):
        objective = cure()
        sampler = CriticalTokens(characters=1) if name.endswith("tokens") else stage.sampler
        more = {"group_size": 16, "groups": 16, "sampler": sampler}
    stage = replace(stage, steps=steps, objective=objective, learner=learner, **more)
    return replace(run, stages=(stage,), evaluation=Evaluation(every=0, final_per_level=64, kl_to_base=False))


def measure_method(name: str, seed: int, steps: int, control: bool) -> dict[str, Any]:
    """Greedy accuracy before and behind, by the true verifier."""
    run = run_of(name, seed, steps)
    tasks = run.tasks
    if control:
        run = replace(run, tasks=Rewarded(source=tasks, scorer=RandomReward()))
    with tempfile.TemporaryDirectory() as folder:
        done = train(run, Path(folder) / "run")
        before, after = (
            sum(item["values"] == [1.0] for item in items) / len(items)
            for items in (Policy(model).evaluate(tasks, n=0) for model in (done.folder / "start", done.folder))
        )
        last = json.loads((done.folder / "metrics.jsonl").read_text().splitlines()[-1])["metrics"]
    entropy = last["entropy/mean"]
    found = {"part": name, "seed": seed, "control": control, "before": before, "after": after, "cpu": last["time/cpu"]}
    return found | {"entropy": entropy}


def main() -> None:
    """Runs the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    print("| part | seed | reward | base | trained | entropy | CPU-s |\n|---|---|---|---|---|---|---|")
    for name in given.parts:
        for seed in range(given.seeds):
            for control in (False, True):
                row = measure_method(name, seed, given.steps, control)
                reward = "random" if control else "true"
                print(
                    f"| {name} | {seed} | {reward} | {row['before']:.3f} | {row['after']:.3f} | "
                    f"{row['entropy']:.3f} | {row['cpu']:.0f} |",
                    flush=True,
                )
                if given.out:
                    with given.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
