"""Samplers as actors of a Ray cluster on this machine: the digest of one process, also where an actor is killed."""

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
from tiny_runs import digest_of, only_rl

from assay.asynchronous import Asynchronous, spawner_of
from assay.core.errors import EngineError
from assay.train.callbacks import Callback
from assay.train.driver import resume, train
from assay.train.replay import replay_run
from assay.train.run import Run

pytestmark = pytest.mark.evidence
ray = pytest.importorskip("ray")


def on_ray(run: Run, **settings: Any) -> Run:
    made = Asynchronous(**({"samplers": 2, "eta": 0, "runtime": "ray", "keep_log": True} | settings))
    return replace(run, stages=(replace(run.stages[0], asynchronous=made),))


def test_at_age_0_a_run_on_ray_ends_as_in_one_process(tmp_path: Path) -> None:
    train(only_rl(steps=4), tmp_path / "one", progress=False)
    train(on_ray(only_rl(steps=4)), tmp_path / "more", progress=False)
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one")


def actors() -> list[int]:
    """Processes of this user that are actors which sample."""
    found = subprocess.run(["ps", "-u", str(os.getuid()), "-o", "pid=,args="], capture_output=True, text=True, check=True)
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "ray::SamplerActor" in line]


class KillsAnActor(Callback):
    """After the first step, from outside."""

    def on_step(self, step: int, metrics: Any) -> None:
        if step == 1:
            os.kill(max(actors()), signal.SIGKILL)  # of this run, whatever an earlier one has left


def test_a_killed_actor_is_replaced_and_changes_no_number(tmp_path: Path) -> None:
    train(only_rl(steps=5), tmp_path / "one", progress=False)
    train(on_ray(only_rl(steps=5)), tmp_path / "more", progress=False, callbacks=[KillsAnActor()])
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one")
    assert "was replaced" in (tmp_path / "more" / "events.jsonl").read_text()


@pytest.mark.parametrize("policy", ["wait", "continue", "drop"])
def test_runs_on_ray_replay(policy: str, tmp_path: Path) -> None:
    train(on_ray(only_rl(steps=8), eta=1, policy=policy), tmp_path / "run", progress=False)
    assert replay_run(tmp_path / "run").equal


def test_weights_travel_as_what_changed(tmp_path: Path) -> None:
    train(only_rl(steps=4), tmp_path / "one", progress=False)
    train(on_ray(only_rl(steps=4), updates="delta", full_every=2), tmp_path / "more", progress=False)
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one")


def test_an_owner_that_died_counts_as_lost_weights() -> None:
    """`RayWeights.arrays` gives None for these, and the controller shares them again (`test_weight_updates.py`)."""
    assert issubclass(ray.exceptions.OwnerDiedError, ray.exceptions.ObjectLostError)
    assert issubclass(ray.exceptions.ObjectReconstructionFailedError, ray.exceptions.ObjectLostError)


CHILD = """
import sys
from dataclasses import replace
from tests.train.test_ray_samplers import on_ray, only_rl, train
run = on_ray(replace(only_rl(steps=12), checkpoint_every=3), eta=2, policy="continue")
train(run, sys.argv[1], progress=False)
"""


def test_a_killed_owner_takes_its_actors_with_it_and_its_run_goes_on(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), str(root / "src"), str(root / "tests" / "train")])
    run = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "run")], env={**os.environ, "PYTHONPATH": paths})
    log = tmp_path / "run" / "samplers" / "accepted" / "00000003.jsonl"
    while not log.exists() and run.poll() is None:
        time.sleep(0.01)
    before = actors()
    run.kill()
    assert run.wait() == -signal.SIGKILL and before
    deadline = time.monotonic() + 60
    while set(actors()) & set(before) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not set(actors()) & set(before)
    assert resume(tmp_path / "run", progress=False).finished
    found = replay_run(tmp_path / "run")
    assert found.equal and found.digest


def test_a_cluster_that_does_not_answer_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(EngineError, match=r"RAY_ADDRESS=127\.0\.0\.1:9: no Ray cluster answers there"):
        spawner_of("ray")
