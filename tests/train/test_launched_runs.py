"""Whole runs by the processes of torchrun, and by those of srun as its variables say: the same digest, and what a kill does."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_runs import tiny, warm_up

from assay.runtime.settings import AdamW, LearnerSettings, Mesh
from assay.train.driver import train

SRUN = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_ID": "0"}

MINE = """
from dataclasses import replace

from assay.runtime.settings import AdamW, LearnerSettings
from tiny_runs import tiny, warm_up


def two():
    return replace(tiny(), stages=(warm_up(steps=STEPS, learner=LearnerSettings(optimizer=AdamW(lr=1e-3))),), checkpoint_every=2)
"""


def words(folder: Path, *more: str) -> list[str]:
    return ["train", "mine.py:two", "--folder", str(folder), "--plain", "--no-report", *more]


def environment(**more: str) -> dict[str, str]:
    tests = str(Path(__file__).parents[1] / "train")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")]), **more}


def torchrun(*args: str) -> list[str]:
    port = 20000 + os.getpid() % 20000
    return [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        str(port),
        "-m",
        "assay",
        *args,
    ]


@pytest.mark.prove
def test_torchrun_and_the_runs_own_processes_end_with_one_digest(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.replace("STEPS", "2"))
    start = torchrun(*words(tmp_path / "torchrun"))
    done = subprocess.run(start, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "mesh.data = 2: torchrun has started 2 processes" in done.stderr
    stage = warm_up(steps=2, learner=LearnerSettings(optimizer=AdamW(lr=1e-3)))
    own = train(replace(tiny(), stages=(stage,), checkpoint_every=2, mesh=Mesh(data=2)), tmp_path / "own")
    assert json.loads((tmp_path / "torchrun" / "done.json").read_text())["digest"] == own.digest


@pytest.mark.evidence
def test_a_launch_that_does_not_fit_the_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.replace("STEPS", "3"))
    start = torchrun(*words(tmp_path / "run", "--mesh.data", "4"))
    done = subprocess.run(start, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 1
    assert "assay: torchrun has started 2 processes, and the run has 4 ranks" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.evidence
def test_the_death_of_a_rank_ends_all_and_a_resume_ends_as_if_nothing_had_been(tmp_path: Path) -> None:
    """Rank 1 is killed; rank 0 names it. SIGUSR1, as a batch system sends it, stops with a checkpoint and another exit code."""
    (tmp_path / "mine.py").write_text(MINE.replace("STEPS", "40"))
    folder = tmp_path / "run"
    marks = {"SLURM_JOB_ID": str(os.getpid())}

    def start(*args: str) -> list[subprocess.Popen[str]]:
        return [
            subprocess.Popen(
                [sys.executable, "-m", "assay", *args],
                cwd=tmp_path,
                env=environment(**(SRUN | marks | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)})),
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]

    def stepped(count: int) -> None:
        until = time.monotonic() + 240
        journal = folder / "metrics.jsonl"
        while (journal.read_text().count("\n") if journal.exists() else 0) < count:
            assert time.monotonic() < until
            time.sleep(0.02)

    tasks = start(*words(folder))
    stepped(4)
    tasks[1].send_signal(signal.SIGKILL)
    _, said = tasks[0].communicate(timeout=240)
    assert tasks[0].returncode == 1 and tasks[1].wait() == -signal.SIGKILL
    assert "rank 1" in said and "resume the run from its last checkpoint" in said
    marks["SLURM_STEP_ID"] = "1"
    tasks = start("resume", str(folder), "--plain", "--no-report")
    stepped(8)
    for task in tasks:  # all of a job's processes get it
        task.send_signal(signal.SIGUSR1)
    assert [task.wait(240) for task in tasks] == [75, 0], [task.stderr and task.stderr.read() for task in tasks]
    tasks = start("resume", str(folder), "--plain", "--no-report")
    assert [task.wait(240) for task in tasks] == [0, 0]
    whole = [sys.executable, "-m", "assay", *words(tmp_path / "whole", "--mesh.data", "2")]
    assert subprocess.run(whole, cwd=tmp_path, env=environment()).returncode == 0
    digests = {json.loads((at / "done.json").read_text())["digest"] for at in (folder, tmp_path / "whole")}
    assert len(digests) == 1
