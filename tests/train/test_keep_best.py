"""A run that keeps its best model ends with the digest of one that does not, also after a kill, and its model is at hand."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_runs import at_named, digest_of, in_child, resumed, tiny, trained

from assay.core.errors import ConfigError
from assay.measure import read_run
from assay.train import Evaluation, Policy, model_folder
from assay.train.driver import train


def test_the_best_model_is_kept_whatever_happens(tmp_path: Path) -> None:
    run = replace(tiny(warm=6, rl=2), evaluation=Evaluation(every=1, per_level=1, final_per_level=4))
    plain = trained(run, tmp_path / "plain")
    keeping = replace(run, keep_best=True)

    def work() -> None:
        at_named("filled:step_0000006", lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(keeping, tmp_path / "run")

    assert in_child(work) == -signal.SIGKILL
    assert resumed(tmp_path / "run") == plain == digest_of(tmp_path / "run")
    view = read_run(tmp_path / "run")
    evals = [view.evaluations(mode) for mode in ("greedy", "sampled")]
    assert len({len(line.items) for line in evals[0]}) == 2  # during a stage of fewer items than at its ends
    common = set.intersection(*(set(line.scores()) for line in evals[0]))
    steps = {
        both[0].step: tuple(float(np.mean([line.scores()[i] for i in sorted(common)])) for line in both)
        for both in zip(*evals, strict=True)
    }
    best = max(steps, key=lambda step: (steps[step], -step))
    folder = model_folder(tmp_path / "run" / "best")
    assert folder.name == f"step_{best:07d}" and [p.name for p in (tmp_path / "run/best").iterdir()] == [folder.name]
    assert len(Policy(tmp_path / "run" / "best").sample("S21>", n=2)) == 2
    with pytest.raises(ConfigError, match="keeps no best model; train with --keep-best"):
        model_folder(tmp_path / "plain" / "best")
