"""Programs side by side: on cores of their own, with their own ends, and none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay.lab.processes import Processes, ProcessJob, exit_reason, own_cores

CORE = min(os.sched_getaffinity(0))
WHERE = "import os; print(sorted(os.sched_getaffinity(0)), os.getsid(0) == os.getpid(), os.environ['SAID'])"
SLEEPS = """
import os, sys, time
with open("pid.part", "w") as part:
    part.write(str(os.getpid()))
os.rename("pid.part", sys.argv[1])
time.sleep(60)
"""
PARENT = """
import sys, time
from pathlib import Path
from assay.lab.processes import ProcessJob, Processes
with Processes([frozenset()]) as processes:
    processes.start(ProcessJob(name="a", words=("sleeps", "pid"), log=Path("log")))
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small modules in the test's folder."""
    monkeypatch.chdir(tmp_path)
    for name, code in {"where": WHERE, "fails": "print('why', end='')\nraise SystemExit(3)", "sleeps": SLEEPS}.items():
        Path(f"{name}.py").write_text(code)


def job(name: str, *args: str) -> ProcessJob:
    return ProcessJob(name=name, words=(name, *args), log=Path(f"{name}.log"))


def all_of(processes: Processes) -> dict[str, int]:
    ended: dict[str, int] = {}
    while processes.running:
        ended |= {job.name: status for job, status in processes.wait_ended()}
    return ended


def test_a_job_stays_on_its_core_and_in_a_session_of_its_own() -> None:
    with Processes([frozenset({CORE})], {"SAID": "x"}) as processes:
        processes.start(job("where"))
        assert not processes.free and processes.running == ["where"]
        assert all_of(processes) == {"where": 0}
        assert processes.free
    assert Path("where.log").read_text() == f"[{CORE}] True x\n"


def test_ends_and_last_words() -> None:
    with Processes([frozenset()] * 2) as processes:
        processes.start(job("fails"))
        ended = all_of(processes)
        processes.start(job("sleeps", "pid"))
        while not Path("pid").exists():
            time.sleep(0.01)
        processes.ask(signal.SIGKILL)
        ended |= all_of(processes)
    assert ended == {"fails": 3, "sleeps": -9}
    assert exit_reason(Path("fails.log"), 3) == "why"
    assert exit_reason(Path("fails.log"), -9) == "was killed by signal 9"
    again = ProcessJob(name="fails", words=("fails",), log=Path("fails.log"), new=False)
    with Processes([frozenset()]) as processes:
        processes.start(again)
        all_of(processes)
    assert Path("fails.log").read_text() == "whywhy"


def gone(pid: int) -> bool:
    """Whether a process has ended, within half a minute."""
    for _ in range(300):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def test_no_job_is_left_behind_a_block() -> None:
    with Processes([frozenset()]) as processes:
        processes.start(job("sleeps", "pid"))
        while not Path("pid").exists():
            time.sleep(0.01)
    assert gone(int(Path("pid").read_text()))


def test_a_job_ends_with_a_parent_that_was_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT])
    while not Path("pid").exists():
        time.sleep(0.01)
    parent.kill()
    parent.wait()
    assert gone(int(Path("pid").read_text()))


def test_two_who_pin_share_no_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    with own_cores(2, 1) as first, own_cores(1, 3) as second:
        assert first == [frozenset({0, 1})]
        assert second == [frozenset({2}), frozenset({3}), frozenset()]
        with own_cores(1, 2) as third:
            assert third == [frozenset(), frozenset()]
    with own_cores(3, 1) as later:
        assert later == [frozenset({0, 1, 2})]
    (tmp_path / "taken").write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "taken"))
    with own_cores(1, 1) as none:
        assert none == [frozenset()]
