"""Train the quickstart with each curriculum, guidance and filter, and with a random reward as control.

    python benchmarks/guides.py --steps 150 --seeds 1        # prints a table, and JSON lines with --out FILE

Each run starts from the quickstart's base (levels 3 to 5 shown) and is judged on held-out items of levels 3 to 10, greedily and
without help. The control of a part is the same run, paid at random. Nothing is ranked here: no part was tuned.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.core import Annealing
from assay.guide import (
    Again,
    AlpGmm,
    Bell,
    Dump,
    FirstTasks,
    Ghpo,
    HardFocus,
    HistoryRows,
    Mixed,
    PromptPair,
    PromptValue,
    Refill,
    ResampleOnCorrect,
    Retrospective,
    Rounds,
    RuleReasoner,
    Scaler,
    Sec,
    Seele,
    SkipSolved,
    SuccessWindow,
    Uniform,
    WhenFlat,
)
from assay.lab import RandomReward, Rewarded
from assay.objective import campo, pro_rl, w_grpo
from assay.recipes import quickstart
from assay.train import Evaluation, Reinforce, Run, train

AFTER = {"AGAIN, after ALP-GMM": "ALP-GMM"}
"""Parts that learn from an earlier run, and with which part that has trained."""

CAMPO_LENGTHS = WhenFlat(metric="length/mean", values=(9, 14), window=10)

SAMPLING: dict[str, dict[str, Any]] = {"annealed, EAD": {"annealing": Annealing(peak=1.2, least=0.5, decay=20.0, start=0)}}
"""Fields of the run's sampling that a part sets."""

PARTS: dict[str, dict[str, Any]] = {
    "uniform": {"curriculum": Uniform()},
    "success variance (the recipe's)": {},
    "SEC": {"curriculum": Sec(alpha=0.3, temperature=0.3)},
    "DUMP": {"curriculum": Dump()},
    "RuleReasoner": {"curriculum": RuleReasoner()},
    "rows by spread": {"curriculum": HistoryRows(pool=64, epochs=2, keep=64)},
    "bell over rows": {"curriculum": Bell(pool=128, sigma=96.0, stride=32.0)},
    "hardest rows": {"curriculum": HardFocus(warm=30, sizes=(256, 128, 64), batches=(40, 40, 40))},
    "phases, hard rows carried": {"curriculum": Retrospective(batches=18, carry=64)},
    "rounds": {"curriculum": Rounds(batches=30)},
    "pair of prompts": {"curriculum": PromptPair(probes=1), "objective": w_grpo(scale="batch")},
    "values of prompts": {"curriculum": PromptValue(pool=256)},
    "solved ones skipped": {"screen": SkipSolved()},
    "four tasks a level": {"index": FirstTasks(n=4)},
    "dynamic sampling": {"filter": Mixed(), "refill": Refill(rounds=4)},
    "success window": {"filter": SuccessWindow(), "refill": Refill(rounds=4)},
    "RoC, 4 of 8": {"filter": ResampleOnCorrect(keep=4)},
    "GHPO": {"guidance": Ghpo(text="{prompt}{hint}")},
    "SEELE, 2 rounds": {"guidance": Seele(rounds=2), "group_size": 4},
    "ALP-GMM": {"curriculum": AlpGmm(fit_every=250)},
    "AGAIN, after ALP-GMM": {"curriculum": Again(fit_every=250, classroom=("EARLIER",))},
    "SCALER": {"curriculum": Scaler(active=1)},
    "adaptive rounds": {"filter": Mixed(), "refill": Refill(rounds=4, adapt=0.3)},
    "longer when flat, CAMPO": {"objective": campo(), "schedules": {"max_new_tokens": CAMPO_LENGTHS}},
    "4 x 256 rollouts, BroRL": {"objective": pro_rl(), "groups": 4, "group_size": 256, "minibatches": 2, "steps": 38},
    "annealed, EAD": {},
}


def run_of(name: str, seed: int, steps: int, control: bool, folder: str) -> Run:
    """The quickstart with one part; where it learns from an earlier run, that is made in ``folder`` with another seed."""
    run = quickstart(seed)
    (stage,) = run.stages
    assert isinstance(stage, Reinforce)
    stage = replace(stage, **{"steps": steps, **PARTS[name]})
    if name in AFTER:
        assert isinstance(stage.curriculum, Again)
        earlier = train(run_of(AFTER[name], seed + 100, steps, False, folder), Path(folder) / "earlier", progress=False)
        stage = replace(stage, curriculum=replace(stage.curriculum, classroom=(str(earlier.folder),)))
    tasks = Rewarded(source=run.tasks, scorer=RandomReward()) if control else run.tasks
    quiet = Evaluation(every=0, final_per_level=64, kl_to_base=False)
    sampling = replace(run.sampling, **SAMPLING.get(name, {}))
    return replace(run, stages=(stage,), tasks=tasks, evaluation=quiet, sampling=sampling)


def measure_guide(name: str, seed: int, steps: int, control: bool) -> dict[str, Any]:
    """Greedy accuracy before and behind, by the true verifier, and what was spent."""
    from assay.train import Policy

    with tempfile.TemporaryDirectory() as folder:
        done = train(run_of(name, seed, steps, control, folder), Path(folder) / "run", progress=False)
        lines = [json.loads(line) for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
        tasks = quickstart(seed).tasks
        before, after = (
            sum(item["values"] == [1.0] for item in items) / len(items)
            for items in (Policy(model).evaluate(tasks, n=0) for model in (done.folder / "start", done.folder))
        )
    sampled = sum(line["metrics"].get("tokens/sampled", 0.0) for line in lines)
    cpu = lines[-1]["metrics"]["time/cpu"]
    return {
        "part": name,
        "seed": seed,
        "control": control,
        "before": before,
        "after": after,
        "tokens": sampled,
        "cpu": cpu,
        "steps": steps,
    }


def main() -> None:
    """Runs the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    print("| part | seed | reward | base | trained | tokens sampled | CPU-s |\n|---|---|---|---|---|---|---|")
    for name in given.parts:
        for seed in range(given.seeds):
            for control in (False, True):
                row = measure_guide(name, seed, given.steps, control)
                print(
                    f"| {name} | {seed} | {'random' if control else 'true'} | {row['before']:.3f} | {row['after']:.3f} | "
                    f"{row['tokens']:,.0f} | {row['cpu']:.0f} |",
                    flush=True,
                )
                if given.out:
                    with given.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
