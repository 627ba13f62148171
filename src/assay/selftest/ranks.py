"""A run that is begun on one number of ranks and gone on with on another must end where one on a single rank ends, nearly."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from assay.core.errors import AssayError
from assay.core.rollout import ids_of
from assay.core.seeds import generator
from assay.runtime.settings import LearnerSettings, Mesh
from assay.selftest.devices import there
from assay.selftest.selftest_part import SelftestContext, SelftestFinding
from assay.selftest.small_models import SHAPE, two_stages
from assay.train.driver import resume, train
from assay.train.models import from_folder
from assay.train.run import Run

__all__ = ["on_gpus", "other_world_sizes"]

HALF, WHOLE = 6, 12
BAR = 5e-3
"""Nats in one token: sums in another order round differently, and every step carries that on."""
PATIENCE = 240.0
"""Seconds that a part of a run may take."""

_BEGIN = "from assay.selftest.ranks import begin; begin({folder!r}, {ranks}, {device!r})"
_GO_ON = "from assay.selftest.ranks import go_on; go_on({folder!r}, {ranks})"


def warmup_run(ranks: int, steps: int, device: str) -> Run:
    """A warm-up alone: in RL one token drawn otherwise would lead elsewhere."""
    run = two_stages()
    stage = replace(run.stages[0], steps=steps, learner=replace(run.stages[0].learner, device=device))
    return replace(run, mesh=Mesh(data=ranks), stages=(stage,))


def begin(folder: str, ranks: int, device: str) -> None:
    """The first half of a run."""
    train(warmup_run(ranks, HALF, device), folder, progress=False)


def go_on(folder: str, ranks: int) -> None:
    """The second half, on another number of ranks; where they compute is recorded in the run."""
    resume(folder, steps=WHOLE, ranks=ranks, allow_inexact=True, progress=False)


def other_world_sizes(context: SelftestContext) -> SelftestFinding:
    """From two ranks to one, and from one to two, by gloo on the CPU; each in processes of their own."""
    return _compare_ranks(context, "cpu")


def on_gpus(context: SelftestContext) -> SelftestFinding:
    """The same on CUDA devices, one for each rank, by NCCL."""
    there(2)
    return _compare_ranks(context, "cuda")


def _compare_ranks(context: SelftestContext, device: str) -> SelftestFinding:
    whole = context.folder / "whole"
    train(warmup_run(1, WHOLE, device), whole, progress=False)
    failures: list[str] = []
    numbers: dict[str, float] = {"steps": WHOLE, "resumed_after": HALF}
    for before, after in ((2, 1), (1, 2)):
        context.say(f"from {before} rank(s) to {after}")
        folder = context.folder / f"{before}-{after}"
        _in_own_process(_BEGIN.format(folder=str(folder), ranks=before, device=device))
        _in_own_process(_GO_ON.format(folder=str(folder), ranks=after))
        gap = numbers[f"max_nats_{before}_to_{after}"] = _gap(whole, folder)
        if not gap <= BAR:
            failures.append(f"from {before} to {after}: {gap:.3g} nats in one token, above {BAR}")
    return SelftestFinding(numbers=numbers, failures=tuple(failures))


def _in_own_process(code: str) -> None:
    """In a process of its own: one that was a rank stays one."""
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if done.returncode:
        raise AssayError(
            f"it ended with status {done.returncode}: {(done.stderr.strip().splitlines() or ['nothing was said'])[-1]}"
        )


def _gap(one: Path, other: Path) -> float:
    """Largest difference of the log-probabilities of the same rows, nats."""
    from assay.runtime.learner.learner import TorchLearner

    rng = generator("selftest/rows", 1)
    models = [from_folder(str(folder)) for folder in (one, other)]
    rows = [ids_of(rng.integers(0, models[0].shape.vocab_size, n)) for n in (16, SHAPE.max_positions)]
    scores = [TorchLearner(model, LearnerSettings(), total_steps=1).score(rows) for model in models]
    return max(float(np.abs(a - b).max()) for a, b in zip(*scores, strict=True))
