"""Measure the learner's step: CPU-seconds by the compiled passes and by PyTorch's, in turn, and the share outside them.

One thread. Rows are those of 16 prompts of 16 to 24 tokens with 8 attempts each of 8 to 64 random ones, so that a group shares
its prompt and nothing else. Prints one JSON line per model size; `tokens_per_cpu_s` counts every token of the rows through one
whole step by the compiled passes, `ratio` is the median of PyTorch's CPU-seconds over theirs, with the least and the most.

    OMP_WAIT_POLICY=PASSIVE python benchmarks/train_step.py --repeats 5
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from assay.core import Batch, Plan, generator, ids_of, pack_rows, supervised_sample
from assay.runtime import DecoderShape, LearnerSettings, TorchLearner, char_tokenizer, init_model

SHAPES = {
    "0.34M": DecoderShape(vocab_size=97),
    "1M": DecoderShape(
        vocab_size=97, hidden_size=128, num_layers=5, num_heads=4, num_kv_heads=4, head_dim=32, intermediate_size=352
    ),
    "4M": DecoderShape(
        vocab_size=97, hidden_size=256, num_layers=5, num_heads=8, num_kv_heads=8, head_dim=32, intermediate_size=688
    ),
    "12M": DecoderShape(
        vocab_size=97, hidden_size=384, num_layers=7, num_heads=6, num_kv_heads=3, head_dim=64, intermediate_size=1024
    ),
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


def batch_of(groups: int, size: int = 8) -> Batch:
    """``size`` attempts at each of ``groups`` prompts."""
    rng = generator("benchmark-rows", 0)
    made: list[tuple[int, Any]] = []
    for _ in range(groups):
        prompt = rng.integers(2, 97, int(rng.integers(16, 25)))
        for _ in range(size):
            answer = rng.integers(2, 97, int(rng.integers(8, 65)))
            made.append((len(made), supervised_sample(str(len(made)), [(ids_of(prompt), False), (ids_of(answer), True)])))
    return pack_rows(made, {"group": np.repeat(np.arange(groups), size)})


def measure(name: str, shape: DecoderShape, batch: Batch, options: argparse.Namespace) -> dict[str, Any]:
    """`--repeats` steps of two learners in turn, after one warm-up step of each."""
    start = init_model(shape, char_tokenizer("0123456789S>"), 0)
    learners: list[TorchLearner] = []
    for kernel in (True, False):
        settings = LearnerSettings(precision=options.precision, micro_tokens=options.micro_tokens, kernel=kernel)
        learners.append(TorchLearner(start, settings, total_steps=1000))
    spent: list[list[float]] = []
    outside: list[float] = []
    for _ in range(options.repeats + 1):
        spent.append([])
        for learner in learners:
            cpu, wall = time.process_time(), time.perf_counter()
            metrics = learner.step(batch, Plan(), LikelihoodLoss()).metrics
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            spent[-1].append(cpu)
            if learner is learners[0]:
                outside.append(1.0 - (metrics["time/forward_backward"] + metrics["time/optimizer"]) / wall)
    ours, theirs = np.array(spent[1:]).T
    ratio, tokens = theirs / ours, int(batch.offsets[-1])
    return {
        "model": name,
        "parameters": shape.parameters,
        "tokens": tokens,
        "tokens_per_cpu_s": round(tokens / float(np.median(ours))),
        "cpu_ms": round(1000 * float(np.median(ours)), 1),
        "pytorch_cpu_ms": round(1000 * float(np.median(theirs)), 1),
        "ratio": [round(float(f(ratio)), 2) for f in (np.median, np.min, np.max)],
        "share_outside": round(min(outside[1:]), 4),
        "precision": options.precision,
        "torch": torch.__version__,
        "machine": platform.machine(),
        "load": [round(x, 1) for x in os.getloadavg()],
    }


def main() -> None:
    """Measure each size once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--models", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--micro-tokens", type=int, default=LearnerSettings().micro_tokens)
    options = parser.parse_args()
    torch.set_num_threads(1)
    batch = batch_of(options.groups)
    for name in options.models:
        print(json.dumps(measure(name, SHAPES[name], batch, options)), flush=True)


if __name__ == "__main__":
    main()
