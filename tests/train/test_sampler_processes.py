"""Sampler processes that are killed and stopped, and the process that they sample for: nothing changes, nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live import coin_toss
from tiny_runs import digest_of, only_rl

from assay.asynchronous import Asynchronous
from assay.asynchronous import samplers as looked_after
from assay.runtime.settings import Mesh
from assay.train.callbacks import Callback
from assay.train.driver import resume, train
from assay.train.replay import replay_run
from assay.train.run import Run

pytestmark = pytest.mark.prove


def asynchronously(run: Run, **settings: Any) -> Run:
    made = Asynchronous(**({"samplers": 1, "eta": 0, "keep_log": True} | settings))
    return replace(run, stages=(replace(run.stages[0], asynchronous=made),))


def children() -> list[int]:
    """Sampler processes of this one."""
    found = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "pid=,args="], capture_output=True, text=True, check=True)
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "assay.asynchronous.worker" in line]


class Signals(Callback):
    """Sends a sampler a signal after the first step."""

    def __init__(self, number: signal.Signals) -> None:
        self.number, self.pids = number, list[int]()

    def on_step(self, step: int, metrics: Any) -> None:
        if step == 1:
            self.pids = children()
            os.kill(self.pids[0], self.number)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_run_whose_sampler_dies_or_hangs_ends_as_in_one_process(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looked_after.Samplers.__init__, "__defaults__", (8.0,))  # seconds of silence
    run = only_rl(steps=4)
    train(run, tmp_path / "one", progress=False)
    signals = Signals(number)
    train(asynchronously(run), tmp_path / "more", progress=False, callbacks=[signals])
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one")
    events = (tmp_path / "more" / "events.jsonl").read_text()
    assert ("was killed by signal 9" if number == signal.SIGKILL else "no sign of life for 8 s") in events
    assert len(signals.pids) == 1 and children() == []


CHILD = """
import sys
from tests.train.test_sampler_processes import asynchronously, only_rl, replace, train
run = asynchronously(replace(only_rl(steps=12), checkpoint_every=3), samplers=2, eta=2, policy="continue")
train(run, sys.argv[1], progress=False)
"""


def test_a_killed_run_takes_its_samplers_with_it_goes_on_and_replays(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), str(root / "src"), str(root / "tests" / "train")])
    run = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "run")], env={**os.environ, "PYTHONPATH": paths})
    log = tmp_path / "run" / "samplers" / "accepted" / "00000003.jsonl"
    while not log.exists() and run.poll() is None:
        time.sleep(0.01)
    found = subprocess.run(["ps", "--ppid", str(run.pid), "-o", "pid=,args="], capture_output=True, text=True, check=True)
    samplers = [int(line.split()[0]) for line in found.stdout.splitlines() if "assay.asynchronous.worker" in line]
    run.kill()
    assert run.wait() == -signal.SIGKILL and len(samplers) == 2
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}/stat").exists() for pid in samplers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}/stat").exists() for pid in samplers)
    assert resume(tmp_path / "run", progress=False).finished
    replay = replay_run(tmp_path / "run")
    assert replay.equal and replay.steps == 12 and replay.digest


def test_learners_of_two_ranks_have_samplers_beside_them(tmp_path: Path) -> None:
    """Ranks share the learner over gloo; rank 0 publishes to the samplers, also what changed."""
    run = coin_toss(replace(only_rl(steps=4), mesh=Mesh(data=2)))
    train(run, tmp_path / "one", progress=False)
    train(asynchronously(run, samplers=2), tmp_path / "more", progress=False)
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one")
    train(asynchronously(run, samplers=2, eta=2, policy="continue", updates="delta"), tmp_path / "old", progress=False)
    assert replay_run(tmp_path / "old").equal
