"""Answers that begin with a part of a right one, beside controls.

    python benchmarks/forced_parts.py [--seeds N] [--parts NAME ...]

The quickstart's base was shown digit sorting of levels 3 to 5 and never answers level 7 right. Each arm trains on the first 256
tasks of level 7, and is judged on held-out ones, greedily and without help. Cells are records in ``--records``; those that are
there are read, not run, and ``--page`` writes the page from them alone.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.guide import AdHint, Compose, FirstTasks, Seele, TracePrefix
from assay.objective import Nll, Token, grpo
from assay.recipes import quickstart
from assay.train import Evaluation, Reinforce, train
from assay_tasks import SortDigits

HARD, TASKS = 7, 256
RECORDS = Path("docs/evidence/forced_parts.jsonl")
PAGE = Path("docs/evidence/forced_parts.md")


@dataclass(frozen=True, kw_only=True)
class Arm:
    """What is trained, and what was expected of it before.

    Attributes:
        predicted: held-out accuracy against the part's first arm, as a sign.
        make: fields of the stage, from a folder for files.
    """

    predicted: str
    make: Callable[[Path], dict[str, Any]]


def traces(folder: Path, other: bool, level: int = HARD) -> dict[str, Any]:
    """Prefixes of the right answer to each task, or of that to the next one."""
    tasks = [SortDigits().task("sort", level, "train", i) for i in range(TASKS)]
    answers = [str(task.private["answer"]) for task in tasks]
    answers = answers[1:] + answers[:1] if other else answers
    file = folder / "traces.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for task, answer in zip(tasks, answers, strict=True):
            said = [{"role": "user", "content": task.public["prompt"]}, {"role": "assistant", "content": answer}]
            out.write(json.dumps({"messages": said}) + "\n")
    return {"guidance": TracePrefix(traces=str(file)), "levels": (level,)}


def prefix_arms(level: int, steps: int) -> dict[str, Arm]:
    """PrefixRL beside plain GRPO and beside prefixes of other tasks' answers."""
    same = {"levels": (level,), "steps": steps}
    return {
        "plain": Arm(predicted="", make=lambda folder: same),
        "behind parts of right answers": Arm(predicted="+", make=lambda folder: traces(folder, False, level) | same),
        "behind parts of other tasks' answers": Arm(predicted="-", make=lambda folder: traces(folder, True, level) | same),
    }


def hints(guidance: Any, coef: float, by: str = "") -> Callable[[Path], dict[str, Any]]:
    """Likelihood on forced tokens; none with a coefficient of 0."""
    if not coef:
        return lambda folder: {"guidance": guidance, "steps": 120, "objective": grpo()}
    both = grpo() + Nll(streams=("expert",), by=by, coef=coef, aggregate=Token())
    return lambda folder: {"guidance": guidance, "steps": 120, "objective": both, "composer": Compose(learn_forced=True)}


def seele(coef: float) -> Callable[[Path], dict[str, Any]]:
    """Two rounds of four."""
    made = hints(Seele(rounds=2), coef)
    return lambda folder: made(folder) | {"group_size": 4}


PARTS: Mapping[str, Mapping[str, Arm]] = {
    "PrefixRL, level 7, 60 steps": prefix_arms(7, 60),
    "PrefixRL, level 7, 240 steps": prefix_arms(7, 240),
    "PrefixRL, level 9, 240 steps": prefix_arms(9, 240),
    "SEELE, likelihood on forced tokens, 120 steps": {
        "coefficient 0": Arm(predicted="", make=seele(0.0)),
        "coefficient .001, as published": Arm(predicted="0", make=seele(0.001)),
        "coefficient .1": Arm(predicted="+", make=seele(0.1)),
        "no help (grpo)": Arm(predicted="0", make=lambda folder: {"objective": grpo(), "steps": 120}),
    },
    "ADHint, likelihood on forced tokens, 120 steps": {
        "none": Arm(predicted="", make=hints(AdHint(), 0.0)),
        "all, coefficient .1": Arm(predicted="+", make=hints(AdHint(), 0.1)),
        "selective masks, coefficient .1": Arm(predicted="+", make=hints(AdHint(), 0.1, "advantage")),
    },
}
"""Part to its arms; the first is what the others are compared with. The signs were written before the runs."""


def measure_cell(part: str, arm: str, seed: int) -> dict[str, Any]:
    """A cell: held-out greedy accuracy at the end, tokens and CPU-seconds of the steps."""
    (stage,) = quickstart().stages
    assert isinstance(stage, Reinforce)
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, Any] = {"steps": 60, "groups": 4, "group_size": 8, "levels": (HARD,), "index": FirstTasks(n=TASKS)}
        given |= PARTS[part][arm].make(Path(folder))
        (level,) = given["levels"]
        wanted = Evaluation(every=0, final_per_level=128, levels=(level,))
        run = replace(quickstart(), name="forced", seed=seed, stages=(replace(stage, **given),), evaluation=wanted)
        train(run, Path(folder) / "run", progress=False)
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line)["metrics"] for line in lines]
    accuracy = next(m[f"eval/greedy/level_{level}"] for m in reversed(told) if "eval/greedy/all" in m)
    tokens = sum(m.get("tokens/sampled", 0.0) for m in told)
    cpu = max(m.get("time/cpu", 0.0) for m in told)
    return {"part": part, "arm": arm, "seed": seed, "accuracy": accuracy, "tokens": tokens, "cpu": cpu}


def sign_of(values: list[float], plain: list[float]) -> str:
    """``+`` or ``-`` where every seed differs from the compared arm in that way, else ``0``."""
    above = [a > b for a, b in zip(values, plain, strict=True)]
    below = [a < b for a, b in zip(values, plain, strict=True)]
    return "+" if all(above) else "-" if all(below) else "0"


HEAD = f"""The quickstart's base (0.34M parameters) was shown digit sorting of levels 3 to 5 and never answers level 7 or 9 right.
Each arm trains on the first {TASKS} tasks of one level (7 where no other is named), in steps of 4 prompts with 8 rollouts (SEELE:
two rounds of 4), and is judged on 128 held-out ones of it, greedily and without help. Nothing was tuned. The sign against a
part's first arm was written before the runs; the one that was found is `+` or `-` where all seeds are on that side, and `0`
elsewhere. CPU-seconds are of the steps, beside other work."""


def page(records: list[dict[str, Any]]) -> str:
    """The page, of records alone."""
    out = [
        "# Answers that begin with a part of a right one\n",
        "    python benchmarks/forced_parts.py --seeds 3        # cells that are done are read, not run\n",
        HEAD,
    ]
    for part, arms in PARTS.items():
        cells = {
            arm: sorted((r for r in records if (r["part"], r["arm"]) == (part, arm)), key=lambda r: r["seed"]) for arm in arms
        }
        if not all(cells.values()):
            continue
        first = [r["accuracy"] for r in next(iter(cells.values()))]
        out += [
            f"\n## {part}\n",
            "| arm | predicted | found | held out, each seed | mean | tokens sampled | CPU-s |",
            "|---|---|---|---|---|---|---|",
        ]
        for arm, rows in cells.items():
            values = [r["accuracy"] for r in rows]
            found = "" if arm == next(iter(arms)) else sign_of(values, first)
            tokens, cpu = (sum(r[key] for r in rows) / len(rows) for key in ("tokens", "cpu"))
            each = ", ".join(f"{v:.2f}" for v in values)
            out.append(
                f"| {arm} | {arms[arm].predicted} | {found} | {each} | {sum(values) / len(values):.3f} | "
                f"{tokens:,.0f} | {cpu:.0f} |"
            )
        if part in READ:
            out.append(READ[part].rstrip())
    return "\n".join(out) + "\n"


READ: Mapping[str, str] = {
    "PrefixRL, level 7, 60 steps": """
Not as predicted: prefixes of right answers are below plain GRPO in two seeds of three, and in the mean. Three in four
prompts begin with one, so that as many steps have a quarter of the plain rollouts.
""",
    "PrefixRL, level 7, 240 steps": """
Not as predicted either: with as many plain rollouts as plain GRPO has in 60 steps, prefixes end at .16 in the mean, and
plain GRPO had .31 there. Longer runs of plain GRPO lose what they had found.
""",
    "PrefixRL, level 9, 240 steps": """
No arm solves anything.
""",
    "SEELE, likelihood on forced tokens, 120 steps": """
The published coefficient changes nothing here, and a hundred times as much does: what is forced is a right answer, and
this much likelihood is supervised learning of it. Without it SEELE is below no help in two seeds of three.
""",
    "ADHint, likelihood on forced tokens, 120 steps": """
Likelihood of all forced tokens is above none in each seed, with selective masks in one of three: here they withhold
right tokens wherever the answer behind them is wrong. Its modulation and its posterior have no part in this.
""",
}
"""What a part's table says, in words."""


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
        for arm in PARTS[part]:
            for seed in range(asked.seeds):
                if (part, arm, seed) not in done:
                    records.append(measure_cell(part, arm, seed))
                    with asked.records.open("a") as file:
                        file.write(json.dumps(records[-1]) + "\n")
                    print(records[-1], flush=True)
    asked.page.write_text(page(records), encoding="utf-8")


if __name__ == "__main__":
    main()
