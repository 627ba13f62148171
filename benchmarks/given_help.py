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
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.train import Evaluation, NamedMethod, train, wire_run
from forced_parts import sign_of
from given_help_parts import PARTS
from pair_reward import HARD, TASKS

RECORDS = Path("docs/evidence/given_help.jsonl")
PAGE = Path("docs/evidence/given_help.md")


def measured(part: str, arm: str, seed: int) -> dict[str, Any]:
    """A cell: held-out greedy accuracy at the end, tokens and CPU-seconds of the steps."""
    whole, asked = PARTS[part], PARTS[part].arms[arm]
    with tempfile.TemporaryDirectory() as folder:
        stages = asked.make(Path(folder))
        wanted = Evaluation(every=0, final_per_level=128, levels=(*whole.known, whole.level), kl_to_base=False)
        run = replace(whole.base(), name="help", seed=seed, stages=stages, evaluation=wanted)
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
        "accuracy": last[f"eval/greedy/level_{whole.level}"],
        "known": sum(last[f"eval/greedy/level_{k}"] for k in whole.known) / len(whole.known),
        "tokens": sum(m.get("tokens/sampled", 0.0) for m in told),
        "cpu": max(m.get("time/cpu", 0.0) for m in told),
    }


HEAD = f"""The quickstart's base (0.34M parameters) was shown digit sorting of levels 3 to 5 and never answers level {HARD}
right. Each arm trains it, on the first {TASKS} tasks of level {HARD} where nothing else is said, and is judged on 128 held-out
tasks of that level, greedily and without help. Nothing was tuned but what a part names. The sign against a part's first arm was
written before the runs; the one that was found is `+` or `-` where all seeds are on that side, and `0` elsewhere. CPU-seconds are
of the steps, beside other work."""


def page(records: list[dict[str, Any]]) -> str:
    """The page, of records alone; parts that are not complete are left out."""
    out = [
        "# Hints, starting places and demonstrations\n",
        "    python benchmarks/given_help.py --seeds 3        # cells that are done are read, not run\n",
        HEAD,
    ]
    for name, part in PARTS.items():
        cells = {arm: sorted(_of(records, name, arm), key=lambda r: r["seed"]) for arm in part.arms}
        if not all(cells.values()) or len({tuple(r["seed"] for r in rows) for rows in cells.values()}) > 1:
            continue  # not all arms have all seeds yet
        first = [r["accuracy"] for r in next(iter(cells.values()))]
        out += [
            f"\n## {name}\n\n{part.text}\n",
            f"| arm | predicted | found | level {part.level}, each seed | mean | levels {part.known[0]} to {part.known[-1]} | "
            "tokens sampled | CPU-s |",
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
