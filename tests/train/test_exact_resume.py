"""Killed by SIGKILL at any moment and resumed, a run ends with the digest of one that was never interrupted."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from assay.train.driver import resume, train
from assay.train.storage import read_json

from tiny_runs import in_child, kill_at, points_into, tiny


def run_in_child(folder: Path, hook: object = None) -> int:
    def work() -> None:
        if callable(hook):
            hook()
        train(tiny(), folder)

    return in_child(work)


def resume_in_child(folder: Path) -> str:
    assert in_child(lambda: None if resume(folder).finished else os.abort()) == 0
    return str(read_json(folder / "done.json")["digest"])


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """Digest and write points of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("reference")
    log = folder / "points.txt"
    assert run_in_child(folder / "run", lambda: points_into(log)) == 0
    return str(read_json(folder / "run" / "done.json")["digest"]), log.read_text().splitlines()


def test_two_uninterrupted_runs_have_equal_digests(reference: tuple[str, list[str]], tmp_path: Path) -> None:
    assert run_in_child(tmp_path / "again") == 0
    assert read_json(tmp_path / "again" / "done.json")["digest"] == reference[0]


def test_another_seed_has_another_digest(reference: tuple[str, list[str]], tmp_path: Path) -> None:
    assert in_child(lambda: None if train(tiny(seed=1), tmp_path / "run").finished else os.abort()) == 0
    assert read_json(tmp_path / "run" / "done.json")["digest"] != reference[0]


@pytest.mark.parametrize("share", [0.15, 0.55, 0.9])
def test_a_kill_at_a_write_point_changes_nothing(reference: tuple[str, list[str]], tmp_path: Path, share: float) -> None:
    digest, points = reference
    assert run_in_child(tmp_path / "run", lambda: kill_at(int(share * len(points)))) == -signal.SIGKILL
    assert resume_in_child(tmp_path / "run") == digest


@pytest.mark.prove
def test_a_kill_at_each_kind_of_write_point_changes_nothing(reference: tuple[str, list[str]], tmp_path: Path) -> None:
    digest, points = reference
    first = {name: i for i, name in reversed(list(enumerate(points)))}
    last = {name: i for i, name in enumerate(points)}
    for number in sorted({*first.values(), *last.values()}):
        folder = tmp_path / str(number)
        assert run_in_child(folder, lambda n=number: kill_at(n)) == -signal.SIGKILL, points[number]
        assert resume_in_child(folder) == digest, f"killed at {points[number]} (point {number})"


@pytest.mark.prove
def test_kills_at_random_moments_change_nothing(reference: tuple[str, list[str]], tmp_path: Path) -> None:
    begin = time.monotonic()
    assert run_in_child(tmp_path / "timed") == 0
    length = time.monotonic() - begin
    for trial, share in enumerate(np.random.default_rng(0).uniform(0.02, 0.98, 20)):
        folder = tmp_path / f"trial-{trial}"
        pid = os.fork()
        if pid == 0:
            train(tiny(), folder)
            os._exit(0)
        time.sleep(float(share) * length)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if not (folder / "run.toml").exists():
            continue  # killed before the run had a name: there is nothing to resume
        assert resume_in_child(folder) == reference[0], f"trial {trial}, killed after {share:.0%} of the time"


@pytest.mark.prove
def test_a_run_that_is_killed_again_and_again_still_ends_the_same(reference: tuple[str, list[str]], tmp_path: Path) -> None:
    digest, points = reference
    folder, kills = tmp_path / "run", 0
    assert run_in_child(folder, lambda: kill_at(len(points) // 3)) == -signal.SIGKILL

    def go_on() -> None:
        kill_at(25)
        resume(folder)

    while in_child(go_on) == -signal.SIGKILL:
        kills += 1
        assert kills < 200
    assert kills >= 2
    assert resume_in_child(folder) == digest
