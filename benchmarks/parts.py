"""Train with a part, and beside it a control: the sign of the difference is written here before the first run.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.parts [--arms NAME ...] [--seeds 2]

Records go to ``docs/evidence/parts.json``, of which ``docs/evidence/parts.md`` is made; runs that are there are read, not run.
Every run starts from the base of its seed and is judged by the true verifier, greedily, on held-out items. No part was tuned.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from assay.guide import PromptPair, RuleReasoner
from assay.objective import pro_rl, w_grpo
from assay.train import Policy, train
from benchmarks.curriculum_arms import CURRICULA
from benchmarks.part_arms import EVEN, RANDOM, SORT, Arm, against_random, of_family, sorting
from benchmarks.part_tasks import FARM, SUMS

PLACE = Path(__file__).parents[1] / "docs" / "evidence" / "parts.json"
ARMS: Mapping[str, Arm] = {
    "BroRL: 4 prompts, 256 rollouts each": Arm(
        runs=sorting(objective=pro_rl(), groups=4, group_size=256, minibatches=2, steps=25),
        control=sorting(objective=pro_rl(), groups=128, group_size=8, minibatches=2, steps=25),
        truth=SORT,
        against="128 prompts with 8 rollouts each, as many steps and updates",
        predicted="lower",
        why="four prompts a step seldom have all levels, and this base is far from a plateau, where breadth is reported to help",
    ),
    "RuleReasoner over a queue of 4 batches": Arm(
        runs=sorting(curriculum=RuleReasoner(queue=4)),
        control=sorting(),
        truth=SORT,
        against=EVEN,
        predicted="lower",
        why="most weight is on the longest levels, which are never solved at first",
    ),
    "W-GRPO with a hard and an easy pool": Arm(
        runs=sorting(curriculum=PromptPair(probes=1, hard_levels=(6, 7), easy_levels=(3, 4)), objective=w_grpo(scale="batch")),
        control=sorting(objective=w_grpo(scale="batch")),
        truth=SORT,
        against=EVEN,
        predicted="lower",
        why="a small model learns two prompts by heart and forgets the rest",
    ),
    "PuzzleClone: hens and cows": against_random(
        FARM, (1,), 3, "numbers of the second level were not shown, and of the first the base solves some"
    ),
    "RandomCalculation: right reward": against_random(
        SUMS, (1,), 8, "only right rewards help on expressions that no model has seen", 250
    ),
    "RandomCalculation: inverted reward": Arm(
        runs=of_family(SUMS, (1,), 8, "inverted", 250),
        control=of_family(SUMS, (1,), 8, "random", 250),
        truth=SUMS,
        against=RANDOM,
        predicted="none",
        why="both end near nothing: an inverted reward pays wrong answers, and a random one wears the base down",
    ),
    **CURRICULA,
}


def measure_arm(arm: Arm, control: bool, seed: int) -> dict[str, Any]:
    """Held-out answers before and behind a run, and what was spent."""
    with tempfile.TemporaryDirectory() as folder:
        run = (arm.control if control else arm.runs)(seed, Path(folder))
        done = train(run, Path(folder) / "run", progress=False)
        lines = [json.loads(line)["metrics"] for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
        before, right = (
            {i["id"]: float(i["values"][0] >= 1.0) for i in Policy(model).evaluate(arm.truth, n=0, per_level=48)}
            for model in (done.folder / "start", done.folder)
        )
    steps = [line for line in lines if "time/cpu" in line]
    return {
        "base": round(float(np.mean([*before.values()])), 4),
        "accuracy": round(float(np.mean([*right.values()])), 4),
        "right": "".join(str(int(right[name])) for name in sorted(right)),
        "tokens": sum(line.get("tokens/sampled", 0.0) for line in lines),
        "cpu": round(steps[-1]["time/cpu"], 1),
    }


def row_of(name: str, records: Mapping[str, Any]) -> str:
    """A line of the table, of the seeds that were run."""
    arm, of = ARMS[name], records[name]
    pairs = [(of[key], of[key.replace("part", "control")]) for key in sorted(of) if key.startswith("part")]
    gaps = [x["accuracy"] - y["accuracy"] for x, y in pairs]
    found = "none" if not any(gaps) else "higher" if min(gaps) > 0 else "lower" if max(gaps) < 0 else "seeds disagree"
    shown = [" ".join(f"{x['accuracy']:.3f}" for x in column) for column in zip(*pairs, strict=True)]
    base = " ".join(f"{x['base']:.3f}" for x, _ in pairs)
    tokens = " / ".join(f"{np.mean([x['tokens'] for x in column]):,.0f}" for column in zip(*pairs, strict=True))
    apart = " ".join(f"{gap:+.3f}" for gap in gaps)
    return f"| {name} | {base} | {shown[0]} | {shown[1]} | {apart} | {arm.predicted} | {found} | {tokens} |"


def _dynamic(records: Mapping[str, Any]) -> str:
    """Whether dynamic sampling needs fewer tokens, by the seeds that were run; empty where none was."""
    of = records.get("Dynamic sampling at equal tokens", {})
    gaps = [of[f"part-{i}"]["accuracy"] - of[f"control-{i}"]["accuracy"] for i in range(len(of) // 2)]
    found = (
        "no, it is lower on all" if all(x < 0 for x in gaps) else "yes, it is not lower on any" if min(gaps) >= 0 else "on some"
    )
    return f"Is dynamic sampling as accurate with as many tokens? By {len(gaps)} seeds: {found}." if gaps else ""


def page(records: Mapping[str, Any]) -> str:
    """The page of these records."""
    done = [name for name in ARMS if name in records and any(k.startswith("control") for k in records[name])]
    reasons = "\n".join(f"- **{n}**, against {ARMS[n].against}: {ARMS[n].predicted}, because {ARMS[n].why}." for n in done)
    table = "\n".join(row_of(name, records) for name in done)
    seeds = {
        n: [k[-1] for k in sorted(records[n]) if k[:4] == "part" and records[n][k]["accuracy"] > records[n][k]["base"]]
        for n in done
    }
    gained = "; ".join(f"{n}, {' and '.join(of)}" for n, of in seeds.items() if of) or "none"
    return f"""# Parts beside their controls

Each part trains a base of 0.34M parameters, and so does its control, from the same weights. Both are judged by the true
verifier, greedily and without help, on the same held-out items, 48 of each level. Numbers stand seed by seed. Two seeds say
little: found is a sign that all seeds have, there is no interval, and no part was tuned. Steps or rollouts are equal, not
the cost, except that dynamic sampling is given as many tokens.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.parts

| part | base | part | control | difference | predicted | found | tokens sampled, both |
|---|---|---|---|---|---|---|---|
{table}

Above its base a part is on these seeds: {gained}. Where a part is above its control and not above its base, the control fell: a
random reward wears a base down, and the right one kept it. That is no gain by training.

{_dynamic(records)}

The signs were written in the tables of arms (`ARMS` in `benchmarks/parts.py`, `CURRICULA` in `benchmarks/curriculum_arms.py`)
before the first run:

{reasons}

Sorting is the quickstart's, levels 3 to 10, of which the base was shown 3 to 5, and rows are of levels 3 to 8. The puzzles,
expressions, formulas and programs are those of the families in fewer letters (`benchmarks/part_tasks.py`), and so is the box of
lengths and numbers of different digits: the base is shown the lowest levels, for 200 or 250 supervised steps, and practises all
for 60 steps of 16 prompts with 8 rollouts. AceReason and the blends practise the recipe `ace-reason`'s two families.
Earlier runs that AGAIN's classroom needs, and rollouts of the base that are stored, are not among the tokens.
"""


def main() -> None:
    """Runs what is missing, seed by seed, and writes the page after each arm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    given = parser.parse_args()
    records: dict[str, dict[str, Any]] = json.loads(PLACE.read_text()) if PLACE.exists() else {}
    for name in given.arms:
        for seed in range(given.seeds):
            for kind in ("part", "control"):
                key = f"{kind}-{seed}"
                if key not in records.setdefault(name, {}):
                    records[name][key] = measure_arm(ARMS[name], kind == "control", seed)
                    print(name, key, records[name][key]["accuracy"], records[name][key]["cpu"], flush=True)
                    PLACE.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
        PLACE.with_suffix(".md").write_text(page({k: records[k] for k in records if len(records[k]) >= 4}), encoding="utf-8")


if __name__ == "__main__":
    main()
