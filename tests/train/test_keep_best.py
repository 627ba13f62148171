"""A run that keeps its best model ends with the digest of one that does not, also after a kill, and its model is at hand."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_runs import at_named, digest_of, in_child, resumed, tiny, trained

from assay.core.errors import CheckpointError, ConfigError
from assay.measure import read_run
from assay.train import Evaluation, Policy, Run, model_folder
from assay.train.driver import train


@pytest.mark.slow
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


@pytest.mark.slow
def test_as_many_checkpoints_are_kept_as_the_run_says_and_a_resume_is_exact(tmp_path: Path) -> None:
    warm = tiny(warm=6)
    run = replace(warm, stages=warm.stages[:1], evaluation=Evaluation(every=0, final_per_level=1), checkpoint_every=1)
    plain = trained(run, tmp_path / "two")
    kept = {"two": [5, 6]}
    for name, many in (("three", 3), ("all", 0)):
        more = replace(run, keep_checkpoints=many)

        def work(more: Run = more, name: str = name) -> None:
            at_named("filled:step_0000004", lambda: os.kill(os.getpid(), signal.SIGKILL))
            train(more, tmp_path / name)

        assert in_child(work) == -signal.SIGKILL
        assert resumed(tmp_path / name) == plain
        kept[name] = [4, 5, 6] if many else [0, 1, 2, 3, 4, 5, 6]
    for name, steps in kept.items():
        assert sorted(int(p.name[5:]) for p in (tmp_path / name / "checkpoints").iterdir()) == steps
    assert Policy(f"{tmp_path / 'all'}@2").sample("S21>", n=1) is not None
    with pytest.raises(CheckpointError, match=r"no checkpoint of step 2; it has 5, 6\s.*--keep-checkpoints"):
        Policy(f"{tmp_path / 'two'}@2").sample("S21>", n=1)
