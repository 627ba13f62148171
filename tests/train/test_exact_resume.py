"""Killed at any moment and resumed, a run ends with the digest of one that was never interrupted."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_runs import digest_of, in_child, kill_at, on_tiny_base, points_into, resumed, tiny, trained

from assay.lab.controls import RandomReward, Rewarded
from assay.runs import storage
from assay.train.driver import resume, train
from assay.train.models import Built
from assay.train.run import Run
from evidence import kills

Reference = tuple[str, list[str]]


def tossed(seed: int = 0) -> Run:
    """Coins pay for rollouts, so that every group teaches, whatever is answered."""
    run = tiny(seed)
    return replace(run, tasks=Rewarded(source=run.tasks, scorer=RandomReward()))


def killed(folder: Path, number: int) -> None:
    def work() -> None:
        kill_at(number)
        train(tossed(), folder)

    assert in_child(work) == -signal.SIGKILL


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Digest and write points of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("reference")
    found = trained(tossed(), folder / "run", lambda: points_into(folder / "points.txt"))
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    taught = [m["metrics"]["grad/norm"] for m in map(json.loads, lines) if m["stage"] == "rl" and "grad/norm" in m["metrics"]]
    assert len(taught) == 6 and min(taught) > 1e-3
    return found, (folder / "points.txt").read_text().splitlines()


def test_two_uninterrupted_runs_have_equal_digests(reference: Reference, tmp_path: Path) -> None:
    assert trained(tossed(), tmp_path / "again") == reference[0]


def test_another_seed_has_another_digest(reference: Reference, tmp_path: Path) -> None:
    assert trained(tossed(seed=1), tmp_path / "run") != reference[0]


@pytest.mark.parametrize("share", [0.55, pytest.param(0.15, marks=pytest.mark.prove), pytest.param(0.9, marks=pytest.mark.prove)])
def test_a_kill_at_a_write_point_changes_nothing(reference: Reference, tmp_path: Path, share: float) -> None:
    digest, points = reference
    killed(tmp_path / "run", int(share * len(points)))
    assert resumed(tmp_path / "run") == digest


MOMENTS = [
    "filled:start",  # before start/ has its name
    "renamed:step_0000008",  # between a checkpoint's rename and LATEST
    "renamed:model",  # the model is written, done.json is not
]
FURTHER = [
    "done:versions.json",  # between versions.json and run.toml
    "synced:step_0000000",  # the first checkpoint is complete, but has no name
    "write:versions.json",  # the folder is no run yet
    "done:run.toml",  # claimed, nothing else
    "renamed:start",  # before the first checkpoint
    "filled:model",  # finishing
    "rename:contamination.json",
    "rename:done.json",
]


@pytest.mark.parametrize("moment", [*MOMENTS, *(pytest.param(moment, marks=pytest.mark.prove) for moment in FURTHER)])
def test_a_kill_at_a_named_moment_changes_nothing(reference: Reference, tmp_path: Path, moment: str) -> None:
    digest, points = reference
    killed(tmp_path / "run", points.index(moment))
    assert resumed(tmp_path / "run", tossed()) == digest


def test_a_kill_between_latest_and_the_removal_of_old_checkpoints(reference: Reference, tmp_path: Path) -> None:
    digest, points = reference
    named = [i for i, name in enumerate(points) if name == "done:LATEST"]
    killed(tmp_path / "run", named[3])
    assert len(list((tmp_path / "run" / "checkpoints").glob("step_*"))) == 3
    assert resumed(tmp_path / "run") == digest
    assert len(list((tmp_path / "run" / "checkpoints").glob("step_*"))) == 2


@pytest.mark.slow
def test_a_resume_leaves_nothing_half_written_and_nothing_from_its_own_future(reference: Reference, tmp_path: Path) -> None:
    digest, points = reference
    folder = tmp_path / "run"
    killed(folder, points.index("renamed:step_0000008"))  # complete, but LATEST names step 4
    (folder / ".metrics.jsonl.tmp").write_text("torn")
    (folder / "checkpoints" / ".step_0000005.tmp").mkdir()
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 1')
    lines = (folder / "metrics.jsonl").read_bytes().count(b"\n") + 1

    def stop_soon() -> None:
        kill_at(30)
        resume(folder)

    assert in_child(stop_soon) == -signal.SIGKILL
    assert not (folder / ".metrics.jsonl.tmp").exists()
    assert not (folder / "checkpoints" / ".step_0000005.tmp").exists()
    assert not (folder / "checkpoints" / "step_0000008").exists()
    assert resumed(folder) == digest
    told = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    message = f"metrics.jsonl: 1 line is no record and was cut: 10 bytes, line {lines} of {lines}"
    assert [e["message"] for e in told if e["kind"] == "damaged"] == [message]


@pytest.mark.parametrize("number", [4, pytest.param(0, marks=pytest.mark.prove), pytest.param(11, marks=pytest.mark.prove)])
def test_a_kill_during_the_cut_of_the_journals_changes_nothing(reference: Reference, tmp_path: Path, number: int) -> None:
    digest, points = reference
    folder = tmp_path / "run"
    killed(folder, points.index("renamed:step_0000014"))
    log = tmp_path / "points.txt"

    def go_on() -> None:
        points_into(log)
        tell, left = storage.on_write, iter(range(number))

        def hook(point: str) -> None:
            tell(point)
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        storage.on_write = hook
        resume(folder)

    assert in_child(go_on) == -signal.SIGKILL
    assert re.search(r"jsonl|run.toml|done.json", log.read_text().splitlines()[-1])
    assert resumed(folder) == digest


@pytest.mark.slow
def test_a_base_in_the_cache_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "whole"))
    log = tmp_path / "points.txt"
    digest = trained(on_tiny_base(), tmp_path / "reference", lambda: points_into(log))
    points = log.read_text().splitlines()
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "killed"))
    folder = tmp_path / "run"
    for moment in ("filled:start", "renamed:step_0000004", "renamed:model"):  # of the base, whose points come first

        def work(number: int = points.index(moment)) -> None:
            kill_at(number)
            if (folder / "run.toml").exists():
                resume(folder)
            else:
                train(on_tiny_base(), folder)

        in_child(work)
    assert not (folder / "done.json").exists()
    assert resumed(folder) == digest


# ---- the whole matrix -------------------------------------------------------------------------------------------------


@pytest.mark.prove
def test_a_kill_at_each_kind_of_write_point_changes_nothing(reference: Reference, tmp_path: Path) -> None:
    digest, points = reference
    kinds = [re.sub(r"step_\d+", "step", name) for name in points]
    first = {name: i for i, name in reversed(list(enumerate(kinds)))}
    last = {name: i for i, name in enumerate(kinds)}
    for number in sorted({*first.values(), *last.values()}):
        folder = tmp_path / str(number)
        killed(folder, number)
        assert resumed(folder, tossed()) == digest, f"killed at {points[number]} (point {number})"


STUDIED = tiny(warm=30)
"""The run of the study of a thousand kills."""


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, float]:
    """Digest of an uninterrupted run of the study, and its CPU time."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    digest = trained(STUDIED, tmp_path_factory.mktemp("studied") / "run")
    return digest, spent() - before


def killed_after(folder: Path, seconds: float) -> kills.Trial:
    """A run that is killed after so much CPU time, unless it ends before, and is then gone on with to its end."""

    def work() -> None:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process like SIGKILL, after so much CPU time
        signal.setitimer(signal.ITIMER_PROF, seconds)
        train(STUDIED, folder)

    status, journal = in_child(work), folder / "metrics.jsonl"
    assert status in (0, -signal.SIGPROF)
    whole = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
    stage = json.loads(whole[-1])["stage"] if whole else "start"
    try:
        digest = resumed(folder, STUDIED)
    except AssertionError:  # it could not be resumed, for a reason that the child has printed
        digest = ""
    shutil.rmtree(folder)
    return kills.Trial(killed=status != 0, stage=stage, digest=digest)


@pytest.mark.prove
def test_kills_at_random_moments_change_nothing(studied: tuple[str, float], tmp_path: Path) -> None:
    digest, cpu_seconds = studied
    for trial, share in enumerate(np.random.default_rng(0).uniform(0.02, 0.98, 20)):
        found = killed_after(tmp_path / "run", share * cpu_seconds)
        assert found.digest == digest, f"trial {trial}, killed after {share:.0%} of the time"


@pytest.mark.evidence
@pytest.mark.parametrize("block", range(kills.BLOCKS))
def test_a_thousand_kills_change_nothing(studied: tuple[str, float], tmp_path: Path, block: int) -> None:
    digest, cpu_seconds = studied
    # A share above 1 finds what a fixed time misses: moments late in runs that the machine made slower than the one measured.
    shares = np.random.default_rng(block).uniform(0.02, 1.2, kills.TRIALS)

    def trial(number: int) -> kills.Trial:
        return killed_after(tmp_path / "run", shares[number] * cpu_seconds)

    found = kills.run_block(block, Built(run=STUDIED).key, digest, trial)
    assert found.digest == digest
    assert found.different == []


@pytest.mark.prove
def test_a_run_that_is_killed_again_and_again_still_ends_the_same(reference: Reference, tmp_path: Path) -> None:
    digest, points = reference
    folder, kills = tmp_path / "run", 0
    killed(folder, len(points) // 3)

    def go_on() -> None:
        kill_at(102)  # enough to reach the next checkpoint, rarely the one after
        resume(folder)

    while in_child(go_on) == -signal.SIGKILL:
        kills += 1
        assert kills < 200
    assert kills >= 2
    assert digest_of(folder) == digest
