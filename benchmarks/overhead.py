"""Measure what the loop costs beside the work: a step's time outside generation, forward, backward and optimiser.

Runs the quickstart's steps (32 prompts x 8 attempts) from fresh weights under coin-toss rewards, so that every group has a signal
and every row is computed. Prints one JSON line per model: medians over the steps of the step's seconds, of each part, and of the
share that is neither generation, forward, backward nor optimiser.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/overhead.py --models 0.34M 1M --steps 15
"""

import argparse
import json
import platform
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import cast

from assay.lab import RandomReward, Rewarded
from assay.recipes import quickstart
from assay.runtime import DecoderShape
from assay.train import Evaluation, Reinforce, Run, Scratch, train

SHAPES = {
    "0.34M": DecoderShape(),
    "1M": DecoderShape(hidden_size=160, num_layers=4, num_heads=5, num_kv_heads=5, head_dim=32, intermediate_size=448),
}
PARTS = ("generate", "forward", "forward_backward", "optimizer", "score", "proof", "publish", "other")
WARM = 3


def measured_run(shape: DecoderShape, steps: int) -> Run:
    quick = quickstart(0)
    stage = replace(cast(Reinforce, quick.stages[0]), steps=WARM + steps)
    return replace(
        quick,
        model=Scratch(shape=shape),
        tasks=Rewarded(source=quick.tasks, scorer=RandomReward()),
        stages=(stage,),
        evaluation=Evaluation(every=0, final_per_level=1),
        checkpoint_every=WARM + steps,
    )


def measure(name: str, steps: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as place:
        train(measured_run(SHAPES[name], steps), Path(place) / "run", progress=False)
        text = (Path(place) / "run" / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [cast(dict[str, float], json.loads(line)["metrics"]) for line in text.splitlines()]
    rows = [row for row in lines if "time/step" in row][WARM:]
    seconds = {part: round(median(row.get(f"time/{part}", 0.0) for row in rows), 5) for part in ("step", *PARTS)}
    share = median(row["time/other"] / row["time/step"] for row in rows)
    return {"model": name, "steps": len(rows), "seconds": seconds, "overhead": round(share, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--steps", type=int, default=15)
    given = parser.parse_args()
    for name in given.models:
        print(json.dumps({**measure(name, given.steps), "machine": platform.processor() or platform.machine()}), flush=True)


if __name__ == "__main__":
    main()
