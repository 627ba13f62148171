"""Processes that torchrun or srun has started: what the environment says, how they meet, and what they compute."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping

import pytest

from assay.cli.launched import with_mesh, with_ranks
from assay.core.errors import ConfigError, RankError
from assay.recipes import quickstart
from assay.runtime.distributed import launch as launching
from assay.runtime.distributed.launch import Launch, Meeting, check_first, lead_ranks, read_launch, serve_rank
from assay.runtime.settings import Mesh
from assay.train import Run

TORCHRUN = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "29500"}
SRUN = {
    "SLURM_PROCID": "1",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NUM_NODES": "1",
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
}


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Generator[Launch]:
    """Rank 0 of two, that meets in a folder of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # that of pytest is too long for a socket
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Launch(rank=0, size=2, by="torchrun", key="k")


def test_a_place_is_short_enough_and_this_users_alone(first: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    first.place.parent.mkdir(mode=0o755)
    with pytest.raises(ConfigError, match="is not this user's alone"):
        Meeting(first)
    monkeypatch.setattr(tempfile, "tempdir", "/tmp/" + "long" * 30)
    assert str(first.place).startswith(f"/tmp/assay-launch-{os.getuid()}/")


# ---- the environment


def test_torchrun_and_srun_are_told_apart_and_each_launch_from_others() -> None:
    found = read_launch(TORCHRUN)
    assert found is not None and (found.rank, found.size, found.by) == (1, 2, "torchrun")
    other = read_launch(TORCHRUN | {"MASTER_PORT": "29501"})
    assert other is not None and other.place != found.place
    assert read_launch(TORCHRUN | {"RANK": "0", "LOCAL_RANK": "0"}).place == found.place  # pyright: ignore
    tasks = read_launch(SRUN)
    assert tasks is not None and (tasks.rank, tasks.size, tasks.by) == (1, 2, "srun")
    assert read_launch(SRUN | TORCHRUN) == found  # torchrun inside a job of SLURM
    assert read_launch(SRUN | {"SLURM_JOB_ID": "8"}).place != tasks.place  # pyright: ignore


@pytest.mark.parametrize(
    "alone",
    [
        {},
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"},  # the script of a job, which srun has not started
        {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
    ],
)
def test_a_process_that_is_alone_is_as_ever(alone: Mapping[str, str]) -> None:
    assert read_launch(alone) is None


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"RANK": "0"}, "WORLD_SIZE is not set, but others of torchrun are set"),
        ({"WORLD_SIZE": "2"}, "RANK is not set"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK is 'x', no whole number"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 and WORLD_SIZE=2: a rank is at least 0"),
        ({"SLURM_STEP_NUM_TASKS": "2"}, "SLURM_PROCID is not set, but others of srun"),
        (TORCHRUN | {"LOCAL_RANK": "0"}, "several machines (RANK=1, LOCAL_RANK=0)"),
        (TORCHRUN | {"LOCAL_WORLD_SIZE": "1"}, "several machines"),
        (SRUN | {"SLURM_STEP_NUM_NODES": "2"}, "srun --nodes=1"),
    ],
)
def test_an_environment_that_contradicts_itself_is_refused(environment: Mapping[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_launch(environment)
    assert said in str(error.value)


def test_a_run_has_the_ranks_that_were_started(first: Launch, capsys: pytest.CaptureFixture[str]) -> None:
    run: Run = quickstart()
    assert with_mesh(run, None) is run
    assert with_mesh(run, first).mesh == Mesh(data=2)
    assert "mesh.data = 2: torchrun has started 2 processes" in capsys.readouterr().err
    from dataclasses import replace

    four = replace(run, mesh=Mesh(data=2, context=2))
    with pytest.raises(ConfigError, match="torchrun has started 2 processes, and the run has 4 ranks"):
        with_mesh(four, first)
    two = replace(run, mesh=Mesh(data=1, context=2))
    assert with_mesh(two, first) is two


def test_a_program_that_trains_by_itself_is_refused_on_the_other_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="this is rank 1"):
        check_first()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("LOCAL_RANK", "0")
    check_first()


# ---- meeting


def arriving(launch: Launch, hello: Mapping[str, object]) -> list[object]:
    """A line to rank 0 that is made in another thread; what becomes of it."""
    found: list[object] = []

    def come() -> None:
        found.append(launching._connect(launch, hello, 10.0))

    threading.Thread(target=come).start()
    return found


def test_ranks_meet_and_are_told_of_learners_and_of_the_end(first: Launch) -> None:
    meeting = Meeting(first)
    served = arriving(first, {"rank": 1, "pid": 4321})
    work: list[object] = []

    def serve() -> None:
        while not served:
            time.sleep(0.01)
        line = served[0]
        said = json.loads(line.recv_bytes())  # pyright: ignore
        work.append(said)
        work.append(launching._connect(first, {"rank": 1, "learner": said["open"]}, 10.0))
        launching._send(line, {"ended": -9})  # pyright: ignore
        work.append(json.loads(line.recv_bytes()))  # pyright: ignore

    thread = threading.Thread(target=serve)
    thread.start()
    line = meeting.open(1, 3)
    assert meeting.exit_status(1, 5.0) == -9 and meeting.pid(1) == 4321
    line.send_bytes(b"a call")
    assert work[0] == {"open": 1, "threads": 3} and work[1].recv_bytes() == b"a call"  # pyright: ignore
    meeting.close()
    thread.join()
    assert work[2] == {"end": True} and not first.place.exists()
    with pytest.raises(RankError, match="has ended; its output says why"):
        meeting.open(1, 1)


def test_a_rank_that_does_not_come_is_named(first: Launch) -> None:
    meeting = Meeting(first, arrival=0.2)
    with pytest.raises(RankError, match=r"rank 1 did not arrive within 0\.2 s; torchrun says 2 processes"):
        meeting.open(1, 1)
    meeting.close(0.0)


def test_a_launch_has_one_rank_0_and_a_killed_one_leaves_the_place_free(first: Launch) -> None:
    meeting = Meeting(first)
    with pytest.raises(ConfigError, match="another process is rank 0 of this torchrun"):
        Meeting(first)
    with pytest.raises(ConfigError, match="has started 2 processes, and the run's mesh has 3 ranks"):
        meeting.check_size(3)
    meeting._door.close()  # as a kill does, which leaves the file
    assert first.place.exists()
    Meeting(first).close(0.0)
    with lead_ranks(first):
        found = launching.current_meeting()
        assert found is not None
        found._servers[1] = launching._Server(launching.Connection(os.dup(0)), 1)  # all have come
    assert launching.current_meeting() is None


def test_a_rank_that_finds_nobody_says_so(first: Launch, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve_rank(Launch(rank=1, size=2, by="torchrun", key="nobody"), arrival=0.2) == 1
    assert "rank 0 did not come within 0.2 s" in capsys.readouterr().err


@pytest.mark.parametrize("killed", [False, True])
def test_the_others_end_with_rank_0(first: Launch, killed: bool) -> None:
    meeting = Meeting(first)
    work = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from assay.runtime.distributed.launch import Launch, serve_rank\n"
        "sys.exit(serve_rank(Launch(rank=1, size=2, by='torchrun', key='k')))"
    )
    other = subprocess.Popen([sys.executable, "-c", work, tempfile.gettempdir()], stderr=subprocess.PIPE, text=True)
    if killed:
        line, hello = meeting._accept(1, time.monotonic() + 60)
        assert hello == {"rank": 1, "pid": other.pid}
        line.close()
    else:
        meeting.close(60.0)
    _, said = other.communicate(timeout=60)
    assert other.returncode == int(killed)
    assert ("rank 0 has ended without a word" in said) == killed


def test_one_process_is_the_run(first: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.cli import launched

    assert with_ranks(lambda found: 3 if found is None else 4) == 3
    monkeypatch.setattr(launched, "read_launch", lambda: Launch(rank=1, size=2, by="srun", key="k"))
    monkeypatch.setattr(launched, "serve_rank", lambda found: 10 + found.rank)
    assert with_ranks(lambda found: 3) == 11
