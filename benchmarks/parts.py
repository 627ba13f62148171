"""Train with a part, and beside it a control: the sign of the difference is written here before the first run.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.parts [--arms NAME ...] [--seeds 2]

Records go to ``docs/evidence/parts.json``, of which ``docs/evidence/parts.md`` is made; runs that are there are read, not run.
Every run starts from the base of its seed and is judged by the true verifier, greedily, on held-out items. No part was tuned.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core import CurriculumSpec, Sampling, TaskSource
from assay.guide import (
    AlpGmm,
    DeferredReplay,
    Mixed,
    Piecewise,
    Promoted,
    PromptPair,
    Recompose,
    Refill,
    RuleReasoner,
    Scaler,
    Uniform,
)
from assay.lab import Inverted, RandomReward, Rewarded
from assay.objective import Token, grpo, pass_at_k_training, pro_rl, skywork_or1, w_grpo
from assay.recipes import ace_reason_tasks, quickstart
from assay.tasks import Problems
from assay.train import Evaluation, Policy, Reinforce, Run, train
from benchmarks.part_curricula import (
    ROWS,
    after_each_other,
    after_look,
    blended,
    by_angles,
    by_norms,
    by_phases,
    falling_k,
    near_base,
)
from benchmarks.part_tasks import BOX, FARM, FORMULAS, PROGRAMS, SUMS, base_of, slow

PLACE = Path(__file__).parents[1] / "docs" / "evidence" / "parts.json"
QUIET = Evaluation(every=0, final_per_level=1, kl_to_base=False)
EVENLY = Uniform()
VALIDATED = Evaluation(every=15, per_level=32, final_per_level=32, kl_to_base=False)
Runs = Callable[[int, Path], Run]
"""Seed and a folder for what the run needs before it, to the run."""


def sorting(**parts: Any) -> Runs:
    """The quickstart with fields of its stage; 100 steps of 32 prompts with 8 rollouts, uniform draws, unless they say else."""

    def made(seed: int, folder: Path) -> Run:
        run = quickstart(seed)
        stage = replace(cast(Reinforce, run.stages[0]), **{"steps": 100, "curriculum": Uniform(), **parts})
        return replace(run, stages=(stage,), evaluation=QUIET)

    return made


def of_family(
    tasks: Problems,
    levels: tuple[int, ...],
    new: int,
    reward: str = "true",
    shown: int = 200,
    curriculum: CurriculumSpec = EVENLY,
    evaluation: Evaluation = QUIET,
) -> Runs:
    """RL on all levels of a small family, from a base that was shown some of them, under the true or another reward."""

    def made(seed: int, folder: Path) -> Run:
        other = {"random": RandomReward(seed), "inverted": Inverted(tasks.verifier())}
        stage = Reinforce(
            steps=60,
            groups=16,
            group_size=8,
            objective=replace(grpo(kl=0.0), aggregate=Token()),
            curriculum=curriculum,
            learner=slow(3e-4),
        )
        return Run(
            name=f"{tasks.name}-{reward}",
            seed=seed,
            model=base_of(tasks, seed, levels=levels, steps=shown, new=new),
            tasks=tasks if reward == "true" else Rewarded(source=tasks, scorer=other[reward]),
            stages=(stage,),
            sampling=Sampling(max_new_tokens=new),
            evaluation=evaluation,
        )

    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A part beside its control.

    Attributes:
        runs: with the part.
        control: without.
        truth: what both are judged by.
        against: the control, in words.
        predicted: sign of the difference in held-out accuracy, the part's less its control's.
        why: the reason for the prediction.
    """

    runs: Runs
    control: Runs
    truth: TaskSource
    against: str
    predicted: str
    why: str


SORT = quickstart(0).tasks
SHORT = tuple(level for level in BOX.arms()["box/sort"] if BOX.level_point("box/sort", level)[1] <= 4)
RANDOM = "the same run, paid at random"
EVEN = "the same run with uniform draws"
STAGES = {"max_new_tokens": Piecewise(points=((0, 10), (40, 12), (70, 14)))}


def _taught(tasks: Problems, levels: tuple[int, ...], new: int, why: str, shown: int = 200) -> Arm:
    runs = (of_family(tasks, levels, new, reward, shown) for reward in ("true", "random"))
    return Arm(runs=next(runs), control=next(runs), truth=tasks, against=RANDOM, predicted="higher", why=why)


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
    "PuzzleClone: hens and cows": _taught(
        FARM, (1,), 3, "numbers of the second level were not shown, and of the first the base solves some"
    ),
    "RandomCalculation: right reward": _taught(
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
    "AGAIN behind a first look": Arm(
        runs=after_look,
        control=sorting(curriculum=AlpGmm()),
        truth=SORT,
        against="ALP-GMM without a classroom",
        predicted="higher",
        why="the students found where progress is, so that the first 16 steps need not be even draws",
    ),
    "RoRecomp, put-off rollouts apart": Arm(
        runs=sorting(composer=Recompose(apart=True), replay=DeferredReplay(capacity=64, batch=32)),
        control=sorting(),
        truth=SORT,
        against="the same run that learns from all rollouts at once",
        predicted="lower",
        why="right answers of a level are of one length: there is nothing to shorten, and half of all is learned from late",
    ),
    "GAIN-RL: rows by angle": Arm(
        runs=by_angles(True),
        control=by_angles(False),
        truth=ROWS,
        against="the same rows, drawn evenly",
        predicted="lower",
        why="angles of digits say little of a row's length, and a bell leaves behind what a small model then forgets",
    ),
    "DONOD: the kept 30 % of rows": Arm(
        runs=by_norms(True),
        control=by_norms(False),
        truth=ROWS,
        against="as many rows at random; half of all answers are another row's",
        predicted="higher",
        why="a wrong answer asks for a larger update, so that fewer of the kept answers are wrong",
    ),
    "Pass@k Training: k of 4, then of 1": Arm(
        runs=falling_k,
        control=sorting(objective=pass_at_k_training(k=1)),
        truth=SORT,
        against="k of 1 from the first step",
        predicted="lower",
        why="k of 4 pays little where most rollouts succeed, and greedy accuracy is what is judged",
    ),
    "Skywork-OR1: answers of 10, 12, 14 tokens": Arm(
        runs=sorting(objective=skywork_or1(), schedules=STAGES),
        control=sorting(objective=skywork_or1()),
        truth=SORT,
        against="14 tokens from the first step",
        predicted="none",
        why="answers of the levels that are learned first fit into 10 tokens, and later stages are long enough for the others",
    ),
    "ALP-GMM in a box of two axes": Arm(
        runs=of_family(BOX, SHORT, 10, curriculum=AlpGmm(fit_every=64, buffer=128)),
        control=of_family(BOX, SHORT, 10),
        truth=BOX,
        against="even draws of the 30 points",
        predicted="none",
        why="success changes nearly everywhere in 60 steps, so that there is little to avoid",
    ),
    "SCALER over four programs": Arm(
        runs=of_family(PROGRAMS, (1, 2, 3), 10, curriculum=Scaler(active=2, start=2.0)),
        control=of_family(PROGRAMS, (1, 2, 3), 10),
        truth=PROGRAMS,
        against=EVEN,
        predicted="higher",
        why="difficulty begins at what the base was shown and climbs with each program's accuracy",
    ),
    "SATURN: right reward": _taught(
        FORMULAS, (1, 2), 16, "of random values some satisfy a formula, so that every level has a signal at first", 250
    ),
    "SATURN: promotion by validation": Arm(
        runs=of_family(FORMULAS, (1, 2), 16, shown=250, curriculum=Promoted(), evaluation=VALIDATED),
        control=of_family(FORMULAS, (1, 2), 16, shown=250),
        truth=FORMULAS,
        against="even draws of the four stages",
        predicted="lower",
        why="the harder stages have a signal from the start, and promotion reaches them late",
    ),
    "SELF: unsolved prompts, near the base": Arm(
        runs=near_base,
        control=sorting(),
        truth=SORT,
        against="all prompts, without the divergence",
        predicted="lower",
        why="most answers of the base to long lists are wrong, and the divergence holds on to them",
    ),
    "DRIVE: the hardest rows in phases": Arm(
        runs=by_phases(True),
        control=by_phases(False),
        truth=SORT,
        against="the same stages, the last one with even draws",
        predicted="lower",
        why="the hardest rows are the longest, which are never solved, and a small model forgets the others",
    ),
    "AceReason: one family after the other": Arm(
        runs=after_each_other(True),
        control=after_each_other(False),
        truth=ace_reason_tasks(),
        against="both families at once for as many steps",
        predicted="lower",
        why="a small model forgets the family that is not practised, and early stages cut its longer answers off",
    ),
    "CrossThink: two general to one of mathematics": Arm(
        runs=blended("general"),
        control=blended("math_only"),
        truth=ace_reason_tasks(),
        against="mathematics alone for as many steps",
        predicted="higher",
        why="both kinds are judged, and the control practises one",
    ),
    "Dynamic sampling at equal tokens": Arm(
        runs=sorting(filter=Mixed(), refill=Refill(rounds=4), steps=27),
        control=sorting(),
        truth=SORT,
        against="uniform draws and every group, 100 steps",
        predicted="lower",
        why="a step of it has about four times the tokens, and at this size steps count for more than full batches",
    ),
}


def measured(arm: Arm, control: bool, seed: int) -> dict[str, Any]:
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

The signs were written in the table of arms (`ARMS` in `benchmarks/parts.py`) before the first run:

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
                    records[name][key] = measured(ARMS[name], kind == "control", seed)
                    print(name, key, records[name][key]["accuracy"], records[name][key]["cpu"], flush=True)
                    PLACE.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
        PLACE.with_suffix(".md").write_text(page({k: records[k] for k in records if len(records[k]) >= 4}), encoding="utf-8")


if __name__ == "__main__":
    main()
