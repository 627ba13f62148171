"""Measure the learner's step: tokens per CPU-second, and the share of a step outside forward, backward and optimiser.

One thread. Rows look like the default task's (digit sorting, answers without a trace): 256 rows of 9 to 23 tokens. Prints one
JSON line per model size; `tokens_per_cpu_s` counts every token of the rows through one whole step.

    OMP_WAIT_POLICY=PASSIVE python benchmarks/train_step.py --repeats 5
"""

import argparse
import json
import platform
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from assay.core.batch import Batch, pack_rows
from assay.core.plan import Plan
from assay.core.rollout import ids_of
from assay.core.sample import supervised
from assay.core.seeds import generator
from assay.runtime import DecoderShape, LearnerSettings, TorchLearner, char_tokenizer, init_model

SHAPES = {
    "0.34M": DecoderShape(),
    "1M": DecoderShape(hidden_size=160, num_heads=5, num_kv_heads=5, intermediate_size=448),
    "4M": DecoderShape(hidden_size=256, num_layers=5, num_heads=8, num_kv_heads=8, intermediate_size=688),
}


class LikelihoodLoss:
    """The least loss program: negative log-likelihood, so that the numbers are the learner's own."""

    def credit(self, batch: Batch) -> Batch:
        return batch

    def prepare(self, batch: Batch) -> Batch:
        return batch

    def active(self, batch: Batch) -> NDArray[np.bool_]:
        return np.ones(len(batch), np.bool_)

    def micro(self, batch: Batch, live: Mapping[str, Any]) -> tuple[torch.Tensor, Mapping[str, float]]:
        return -live["logp_new"].sum() / batch.counts.tokens, {}


def batch_of(rows: int) -> Batch:
    """Prompts of 3 to 10 digits between two marks, answers of the same length and an end."""
    rng = generator("benchmark-rows", 0)
    made: list[tuple[int, Any]] = []
    for index, level in enumerate(rng.integers(3, 11, rows).tolist()):
        digits = [int(rng.integers(2, 12)) for _ in range(level)]
        prompt, answer = [12, *digits, 13], [*sorted(digits), 1]
        made.append((index, supervised(str(index), [(ids_of(prompt), False), (ids_of(answer), True)])))
    return pack_rows(made, {"group": np.arange(rows)})


def measure(name: str, shape: DecoderShape, batch: Batch, options: argparse.Namespace) -> dict[str, Any]:
    """The quickest of `--repeats` steps after one warm-up step."""
    settings = LearnerSettings(precision=options.precision, micro_tokens=options.micro_tokens)
    learner = TorchLearner(init_model(shape, char_tokenizer("0123456789S>"), 0), settings, total_steps=1000)
    learner.step(batch, Plan(), LikelihoodLoss())
    steps: list[tuple[float, float, float]] = []
    for _ in range(options.repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        metrics = learner.step(batch, Plan(), LikelihoodLoss()).metrics
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        steps.append((cpu, wall, wall - metrics["time/forward_backward"] - metrics["time/optimizer"]))
    cpu = min(s[0] for s in steps)
    wall = min(s[1] for s in steps)
    return {
        "model": name,
        "parameters": shape.parameters,
        "tokens": int(batch.offsets[-1]),
        "tokens_per_cpu_s": round(int(batch.offsets[-1]) / cpu),
        "step_ms": round(1000 * wall, 1),
        "share_outside": round(min(s[2] for s in steps) / wall, 4),
        "precision": options.precision,
        "torch": torch.__version__,
        "machine": platform.machine(),
    }


def main() -> None:
    """Measure each size once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--micro-tokens", type=int, default=LearnerSettings().micro_tokens)
    options = parser.parse_args()
    torch.set_num_threads(1)
    batch = batch_of(options.rows)
    for name, shape in SHAPES.items():
        print(json.dumps(measure(name, shape, batch, options)), flush=True)


if __name__ == "__main__":
    main()
