"""Hints, starting places and demonstrations beside controls: the measurements of single methods.

    python benchmarks/given_help.py [--seeds N] [--parts NAME ...]

The quickstart's base was shown digit sorting of levels 3 to 5. Each arm trains it, and is judged on held-out tasks, greedily and
without help. Cells are records in ``--records``; those that are there are read, not run, and ``--page`` writes the page from them
alone.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.core.protocols import TaskSource
from assay.guide import AdHint, Compose, DifficultyWeights, FirstTasks, GuideHint, Prefix, Quarters
from assay.lab.controls import OtherSolutions
from assay.objective import Nll, Token, grpo
from assay.recipes import quickstart
from assay.train import Evaluation, HintEntropy, Imitate, ImitateFailures, NamedMethod, Reinforce, train, wire_run
from assay_tasks import SortDigits
from forced_parts import sign_of
from user_rows import WIDE, woven

HARD, TASKS, KNOWN = 7, 256, (3, 4, 5)
RECORDS = Path("docs/evidence/given_help.jsonl")
PAGE = Path("docs/evidence/given_help.md")
SORT = SortDigits()


@dataclass(frozen=True, kw_only=True)
class Arm:
    """What is trained, and what was expected of it before.

    Attributes:
        predicted: held-out accuracy against the part's first arm, as a sign.
        make: stages, from a folder for files.
        method: by name, of the last stage; empty for the stage's own objective.
        tasks: what is trained on; digit sorting when None.
    """

    predicted: str
    make: Callable[[Path], tuple[Any, ...]]
    method: str = ""
    tasks: TaskSource | None = None


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one table compares.

    Attributes:
        text: what is trained and how, and what the controls are.
        arms: the first is what the others are compared with.
        read: what the table says, written behind the runs.
    """

    text: str
    arms: Mapping[str, Arm]
    read: str = ""


def rl(**changes: Any) -> Reinforce:
    """The quickstart's stage on 256 tasks of level 7, 4 prompts with 8 rollouts a step."""
    (stage,) = quickstart().stages
    assert isinstance(stage, Reinforce)
    given = {"steps": 120, "groups": 4, "group_size": 8, "levels": (HARD,), "index": FirstTasks(n=TASKS)}
    return replace(stage, **{**given, **changes})


def others() -> TaskSource:
    """Digit sorting whose tasks bring the solution of another."""
    return OtherSolutions(source=SORT)


def shown_hints(steps: int) -> Imitate:
    """Other tasks of level 7 with half to all of their solution behind the prompt, to be answered in full."""
    rows: list[dict[str, Any]] = []
    for i in range(1000, 2000):
        task = SORT.task("sort", HARD, "train", i)
        answer = str(task.private["answer"])
        rows.append({"prompt": task.public["prompt"] + answer[: HARD - i % (HARD // 2 + 1)], "completion": answer})
    return Imitate(data=tuple(rows), steps=steps, batch=32, learner=rl().learner)


def alone(stage: Any) -> Callable[[Path], tuple[Any, ...]]:
    """One stage."""
    return lambda folder: (stage,)


def adhint(entropy: bool = False, posterior: bool = False) -> Callable[[Path], tuple[Any, ...]]:
    """ADHint with likelihood on all hint tokens."""
    weights = (HintEntropy(),) if entropy else ()
    both = grpo() + Nll(streams=("expert",), coef=0.1, aggregate=Token(), weights=weights)
    plain = Compose(learn_forced=True)
    composer = DifficultyWeights(inner=plain) if posterior else plain
    return alone(rl(guidance=AdHint(), objective=both, composer=composer))


HINT = GuideHint(text="{prompt}{hint}", share=0.6)
IN = Prefix(share=(1 / HARD, 1.0), probability=0.8)
PARTS: Mapping[str, Part] = {
    "ReLIFT: the learning rate of supervised updates": Part(
        text="60 steps of 16 prompts with 8 rollouts on levels 3 to 5 and 7; the demonstrations of 16 failed tasks are a "
        "supervised update (`ImitateFailures`), at a multiple of the learning rate of RL.",
        arms={
            "rate 1": Arm(predicted="", make=alone(woven(ImitateFailures(data=WIDE, size=16)))),
            "rate .1": Arm(predicted="-", make=alone(woven(ImitateFailures(data=WIDE, size=16, rate=0.1)))),
            "rate 4": Arm(predicted="+", make=alone(woven(ImitateFailures(data=WIDE, size=16, rate=4.0)))),
        },
    ),
    "RLGF: PPO behind what a guide wrote": Part(
        text="PPO, 120 steps. On four prompts of five the guide, the task's solution, writes the first 1 to 6 digits (`Prefix`, "
        "the roll-in of PPO++). The control's guide writes another task's.",
        arms={
            "no guide": Arm(predicted="", make=alone(rl()), method="ppo"),
            "guide": Arm(predicted="+", make=alone(rl(guidance=IN)), method="ppo"),
            "guide of another task": Arm(predicted="-", make=alone(rl(guidance=IN)), method="ppo", tasks=others()),
        },
    ),
    "SPARKLE: quarters of the solution": Part(
        text="GRPO, 120 steps. A prompt is posed plainly or behind one to four quarters of its solution (`Quarters`), evenly.",
        arms={
            "plain": Arm(predicted="", make=alone(rl())),
            "quarters": Arm(predicted="+", make=alone(rl(guidance=Quarters(unit="")))),
            "quarters of another task": Arm(predicted="-", make=alone(rl(guidance=Quarters(unit=""))), tasks=others()),
        },
    ),
    "ADHint: weights of hint tokens and of rollouts": Part(
        text="GRPO, 120 steps; plain rollouts, as many behind a part of the solution (`AdHint`), and a likelihood of .1 on all "
        "hint tokens. `HintEntropy` weighs these, `DifficultyWeights` the rollouts.",
        arms={
            "neither": Arm(predicted="", make=adhint()),
            "HintEntropy": Arm(predicted="-", make=adhint(entropy=True)),
            "DifficultyWeights": Arm(predicted="+", make=adhint(posterior=True)),
            "both": Arm(predicted="0", make=adhint(entropy=True, posterior=True)),
        },
    ),
    "Guide-GRPO: hints where all rollouts fail": Part(
        text="First 40 supervised steps on other tasks of level 7, posed with four to seven of the seven digits of the solution "
        "behind the prompt: from then on hints mean something. Then 120 steps of RL. The hint is the first four digits.",
        arms={
            "no hints (guide_grpo)": Arm(predicted="", make=lambda folder: (shown_hints(40), rl()), method="guide_grpo"),
            "hints": Arm(predicted="+", make=lambda folder: (shown_hints(40), rl(guidance=HINT)), method="guide_grpo"),
            "hints of another task": Arm(
                predicted="0",
                make=lambda folder: (shown_hints(40), rl(guidance=HINT)),
                method="guide_grpo",
                tasks=others(),
            ),
        },
    ),
}
"""The tables. Signs were written before the runs."""


def measured(part: str, arm: str, seed: int) -> dict[str, Any]:
    """A cell: held-out greedy accuracy at the end, tokens and CPU-seconds of the steps."""
    asked = PARTS[part].arms[arm]
    with tempfile.TemporaryDirectory() as folder:
        stages = asked.make(Path(folder))
        wanted = Evaluation(every=0, final_per_level=128, levels=(*KNOWN, HARD), kl_to_base=False)
        run = replace(quickstart(), name="help", seed=seed, stages=stages, evaluation=wanted)
        run = run if asked.tasks is None else replace(run, tasks=asked.tasks)
        if asked.method:
            run = wire_run(run, {len(stages) - 1: NamedMethod(method=asked.method, settings={})})[0]
        train(run, Path(folder) / "run", progress=False)
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line)["metrics"] for line in lines]
    last = next(m for m in reversed(told) if "eval/greedy/all" in m)
    return {
        "part": part,
        "arm": arm,
        "seed": seed,
        "accuracy": last[f"eval/greedy/level_{HARD}"],
        "known": sum(last[f"eval/greedy/level_{k}"] for k in KNOWN) / len(KNOWN),
        "tokens": sum(m.get("tokens/sampled", 0.0) for m in told),
        "cpu": max(m.get("time/cpu", 0.0) for m in told),
    }


HEAD = f"""The quickstart's base (0.34M parameters) was shown digit sorting of levels 3 to 5 and never answers level {HARD}
right. Each arm trains it, on the first {TASKS} tasks of level {HARD} where nothing else is said, and is judged on 128 held-out
tasks of that level, greedily and without help. Nothing was tuned but what a part names. The sign against a part's first arm was
written before the runs; the one that was found is `+` or `-` where all seeds are on that side, and `0` elsewhere. CPU-seconds are
of the steps, beside other work."""


def page(records: list[dict[str, Any]]) -> str:
    """The page, of records alone."""
    out = [
        "# Hints, starting places and demonstrations\n",
        "    python benchmarks/given_help.py --seeds 3        # cells that are done are read, not run\n",
        HEAD,
    ]
    for name, part in PARTS.items():
        cells = {arm: sorted(_of(records, name, arm), key=lambda r: r["seed"]) for arm in part.arms}
        if not all(cells.values()):
            continue
        first = [r["accuracy"] for r in next(iter(cells.values()))]
        out += [
            f"\n## {name}\n\n{part.text}\n",
            f"| arm | predicted | found | level {HARD}, each seed | mean | levels 3 to 5 | tokens sampled | CPU-s |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for arm, rows in cells.items():
            values = [r["accuracy"] for r in rows]
            found = "" if arm == next(iter(part.arms)) else sign_of(values, first)
            mean, known, tokens, cpu = (sum(r[key] for r in rows) / len(rows) for key in ("accuracy", "known", "tokens", "cpu"))
            shown = ", ".join(f"{v:.2f}" for v in values)
            numbers = f"{shown} | {mean:.3f} | {known:.2f} | {tokens:,.0f} | {cpu:.0f}"
            out.append(f"| {arm} | {part.arms[arm].predicted} | {found} | {numbers} |")
        if part.read:
            out.append("\n" + part.read)
    return "\n".join(out) + "\n"


def _of(records: list[dict[str, Any]], part: str, arm: str) -> list[dict[str, Any]]:
    return [r for r in records if (r["part"], r["arm"]) == (part, arm)]


def main() -> None:
    """Runs what is missing and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    records = [json.loads(line) for line in asked.records.read_text().splitlines()] if asked.records.exists() else []
    done = {(r["part"], r["arm"], r["seed"]) for r in records}
    for part in asked.parts:
        for seed in range(asked.seeds):
            for arm in PARTS[part].arms:
                if (part, arm, seed) not in done:
                    records.append(measured(part, arm, seed))
                    with asked.records.open("a") as file:
                        file.write(json.dumps(records[-1]) + "\n")
                    print(records[-1], flush=True)
    asked.page.write_text(page(records), encoding="utf-8")


if __name__ == "__main__":
    main()
