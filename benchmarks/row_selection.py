"""Train on all rows, then on those that the run's history selects (LIMR, 1-shot RLVR), and on as many drawn at random as control.

    python benchmarks/row_selection.py --steps 80 --seeds 3        # prints a table, and JSON lines with --out FILE

Rows are strings of digits to be sorted, of lengths 4 to 7; the base was shown lengths 3 to 5. Every run starts from the base and
has as many steps; all are judged on the same other rows. What selects is `assay curate --limr RUN` and `--varied RUN`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from assay.curate import LearningImpact, MostVaried, Pipeline, ProbeFile
from assay.recipes import on_rows
from assay.select import write_measurements
from assay.train import train
from assay_tasks import SortDigits

LEVELS = (4, 5, 6, 7)


def rows_of(split: str, each: int) -> list[dict[str, Any]]:
    """Rows of a split, of each level."""
    family = SortDigits(levels=LEVELS)
    tasks = [family.task("sort", level, split, i) for level in LEVELS for i in range(each)]
    found = {
        str(t.public["prompt"]): {"prompt": t.public["prompt"], "answer": t.private["answer"], "level": t.level} for t in tasks
    }
    return list(found.values())


def accuracy(folder: Path) -> tuple[float, float]:
    """Greedy held-out accuracy before and behind."""
    lines = [json.loads(line)["metrics"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    known = [line["eval/greedy/all"] for line in lines if "eval/greedy/all" in line]
    return known[0], known[-1]


def select_rows(
    rows: Path, run: Path, out: Path, step: type[LearningImpact] | type[MostVaried], **settings: Any
) -> list[dict[str, Any]]:
    """The rows that a step of curation keeps by a run's history."""
    probe = ProbeFile(file=write_measurements(run, out / "measured.jsonl"))
    Pipeline(steps=(step(probe=probe, **settings),), test_share=0.0).run([rows], out)
    return [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]


def main() -> None:
    """Runs the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--each", type=int, default=60)
    parser.add_argument("--above", type=float, default=0.6)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    train_rows, test = rows_of("train", given.each), rows_of("test", 64)
    print("| rows | seed | number | base | trained |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in train_rows))
        for seed in range(given.seeds):

            def train_on_rows(name: str, rows: list[dict[str, Any]], objective: str | None = None, seed: int = seed) -> Path:
                run = on_rows(rows, evaluate=test, steps=given.steps, groups=32, objective=objective, seed=seed)
                done = train(run, place / f"{name}-{seed}".replace(" ", "-"), progress=False)
                before, after = accuracy(done.folder)
                print(f"| {name} | {seed} | {len(rows)} | {before:.3f} | {after:.3f} |", flush=True)
                if given.out:
                    record = {"rows": name, "seed": seed, "number": len(rows), "before": before, "after": after}
                    with given.out.open("a") as file:
                        file.write(json.dumps(record) + "\n")
                return done.folder

            whole = train_on_rows("all", train_rows)
            rng = np.random.default_rng(seed)
            limr = select_rows(place / "rows.jsonl", whole, place / f"limr-{seed}", LearningImpact, threshold=given.above)
            if limr:
                train_on_rows("by LIMR", limr)
                train_on_rows("at random, as many", [train_rows[i] for i in rng.permutation(len(train_rows))[: len(limr)]])
            (varied,) = select_rows(place / "rows.jsonl", whole, place / f"varied-{seed}", MostVaried, count=1)
            train_on_rows("the most varied one", [varied], "one_shot")
            train_on_rows("one at random", [train_rows[int(rng.integers(len(train_rows)))]], "one_shot")


if __name__ == "__main__":
    main()
