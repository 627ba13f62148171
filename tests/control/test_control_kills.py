"""Runs of control that are killed at random moments of their writes, many times, against runs that are not."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path

import pytest
from test_control_runs import killed

from assay.core import derive
from assay_control import IQL, SAC, TD3BC, ControlRun, Pendulum, dataset, resume, train

RUNS = {
    "iql": ControlRun(method=IQL(weight="advantage", reward=0.03, width=32), data=dataset("pendulum/mixed"), steps=700),
    "td3-bc": ControlRun(method=TD3BC(width=32), data=dataset("maze/stitched"), steps=700),
    "sac": ControlRun(method=SAC(width=32, start=50), world=Pendulum(), steps=700),
}


@pytest.mark.evidence
@pytest.mark.parametrize("name", list(RUNS))
def test_34_kills_end_with_equal_bits(name: str, tmp_path: Path) -> None:
    run = dataclasses.replace(RUNS[name], evaluate_every=100, checkpoint_every=20, log_every=20, episodes=2)
    whole = train(run, tmp_path / "whole")
    folder = tmp_path / "killed"
    for number in range(34):
        assert killed(folder, 5 + derive("test/kill", 0, name, number) % 25, run) == signal.SIGKILL
    assert resume(folder).digest == whole.digest
    assert (tmp_path / "whole" / "metrics.jsonl").read_text() == (folder / "metrics.jsonl").read_text()
    assert (tmp_path / "whole" / "evals.jsonl").read_text() == (folder / "evals.jsonl").read_text()
