"""A run that keeps its best model ends with the digest of one that does not, also after a kill, and its model is at hand."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_runs import at_named, digest_of, in_child, resumed, tiny, trained

from assay.core.errors import ConfigError
from assay.train import Policy, model_folder
from assay.train.driver import train


def test_the_best_model_is_kept_whatever_happens(tmp_path: Path) -> None:
    plain = trained(tiny(warm=6, rl=2), tmp_path / "plain")
    keeping = replace(tiny(warm=6, rl=2), keep_best=True)

    def work() -> None:
        at_named("filled:step_0000006", lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(keeping, tmp_path / "run")

    assert in_child(work) == -signal.SIGKILL
    assert resumed(tmp_path / "run") == plain == digest_of(tmp_path / "run")
    steps = {}
    for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines():
        found = json.loads(line)
        if "eval/greedy/all" in found["metrics"]:
            steps[found["step"]] = (found["metrics"]["eval/greedy/all"], found["metrics"]["eval/sampled/all"])
    best = max(steps, key=lambda step: (steps[step], -step))
    folder = model_folder(tmp_path / "run" / "best")
    assert folder.name == f"step_{best:07d}" and [p.name for p in (tmp_path / "run/best").iterdir()] == [folder.name]
    assert len(Policy(tmp_path / "run" / "best").sample("S21>", n=2)) == 2
    with pytest.raises(ConfigError, match="keeps no best model; train with --keep-best"):
        model_folder(tmp_path / "plain" / "best")
