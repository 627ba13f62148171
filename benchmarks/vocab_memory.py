"""Measure the memory that statistics over a vocabulary of 32k cost a step: peak beyond the built model, against a plain step.

Each case runs in a process of its own, so that no case hides in another's peak. Prints one JSON line per case: MiB above the
built learner at the peak of the second step, and its ratio to the plain step's.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/vocab_memory.py
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from assay.core import Batch, FullEntropy, Plan, Sample, VocabStat, pack_rows
from assay.lab import describe_machine
from assay.objective import FullKl, Jsd, MinP, SupportLogp, TopKEntropy, TopP
from assay.runtime import DecoderShape, LearnerSettings, TorchLearner, char_tokenizer, init_model, set_threads

CASES: Mapping[str, tuple[VocabStat, ...]] = {
    "plain": (),
    "entropy": (FullEntropy(),),
    "entropy of the 20 likeliest": (TopKEntropy(20),),
    "KL to the reference": (FullKl("ref"),),
    "Jensen-Shannon to the reference": (Jsd("ref"),),
    "restricted policy (Lp-Reg)": (SupportLogp(support=MinP(0.02)),),
    "masked policy (NLPO)": (SupportLogp(support=TopP(0.9), model="ref"),),
    "entropy and KL": (FullEntropy(), FullKl("ref")),
}
BAR = 1.3
VOCABULARY, TOKENS, ROW = 32_768, 2_048, 256


class Summed:
    """The sum of all live columns: the gradient goes through each."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def credit(self, batch: Batch) -> Batch:
        return batch

    def prepare(self, batch: Batch) -> Batch:
        return batch

    def active(self, batch: Batch) -> Any:
        return np.ones(len(batch), np.bool_)

    def micro(self, batch: Batch, live: Mapping[str, Any]) -> tuple[Any, Mapping[str, float]]:
        return sum(live[name].sum() for name in self.names) / -batch.counts.tokens, {}


def memory_of(name: str) -> float:
    """MiB of this process: ``VmRSS`` now, ``VmHWM`` at its highest."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def measure_case(case: str) -> float:
    """MiB beyond the built learner at the peak of a step."""
    set_threads(1)
    stats = CASES[case]
    shape = DecoderShape(
        vocab_size=VOCABULARY,
        hidden_size=256,
        num_layers=4,
        num_heads=4,
        num_kv_heads=4,
        head_dim=64,
        intermediate_size=768,
        max_positions=512,
    )
    model = init_model(shape, char_tokenizer("0123456789>"), seed=0)
    learner = TorchLearner(model, LearnerSettings(micro_tokens=TOKENS), total_steps=4)
    rng = np.random.default_rng(0)
    rows = [
        (i, Sample(rollout=str(i), ids=rng.integers(0, VOCABULARY, ROW).astype(np.int32), mask=np.arange(ROW) > 8))
        for i in range(2 * TOKENS // ROW)
    ]
    batch = pack_rows(rows, {"group": np.zeros(len(rows), np.int64)})
    live = ("logp_new", *(s.name for s in stats))
    plan, loss = Plan(live=live, vocab=stats), Summed(live)
    built = memory_of("VmRSS")
    learner.step(batch, plan, loss)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the next peak is the second step's own
    learner.step(batch, plan, loss)
    return memory_of("VmHWM") - built


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case", choices=CASES, help="only this one, in this process")
    case = parser.parse_args().case
    if case:
        print(measure_case(case))
        return
    plain = 0.0
    for name in CASES:
        done = subprocess.run([sys.executable, __file__, "--case", name], check=True, capture_output=True, text=True)
        peak = float(done.stdout)
        plain = plain or peak
        share = round(peak / plain, 3)
        print(
            json.dumps({"case": name, "mib": round(peak), "ratio": share, "met": share <= BAR, "machine": describe_machine()}),
            flush=True,
        )


if __name__ == "__main__":
    main()
