"""Room for one more answer: a core of its own, or beside answers that sleep."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from foreign_code import LONG

from assay.verify.workers import cpu
from assay.verify.workers.cpu import LOOK, CpuLimiter, DeadlineClock, cores, runs, waited_seconds


def test_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cores() == os.cpu_count()


def test_as_many_as_there_are_cores_and_sleeping_ones_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asleep: set[int] = set()
    clock = [100.0]
    monkeypatch.setattr(cpu, "cores", lambda: 2)
    monkeypatch.setattr(cpu, "monotonic", lambda: clock[0])
    monkeypatch.setattr(cpu, "runs", lambda pid: pid not in asleep)
    r = CpuLimiter(4)
    assert r.free({})
    assert r.free({1: 100.0})
    assert not r.free({1: 100.0, 2: 100.0})
    asleep |= {1}
    assert not r.free({1: 100.0, 2: 100.0})  # it looks again only after a while
    clock[0] += 2 * LOOK
    assert r.free({1: 100.0, 2: 100.0})
    assert not r.free({1: 100.0, 2: 100.0, 3: clock[0] + 0.01})  # nobody has looked at it yet: taken to run
    assert not r.free({1: clock[0] + 0.01, 2: 100.0})  # it slept on another answer
    asleep |= {2, 3, 4}
    clock[0] += 2 * LOOK
    assert r.free({1: 100.0, 2: 100.0, 3: 100.1})
    assert not r.free({1: 100.0, 2: 100.0, 3: 100.0, 4: 100.0})  # as many as may ever be


def test_fewer_workers_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "cores", lambda: 64)
    r = CpuLimiter(2)
    assert r.free({1: 0.0})
    assert not r.free({1: 0.0, 2: 0.0})


SLEEPS = "print(flush=True); import threading; threading.Event().wait()"
SPINS = "print(flush=True)\nwhile True: pass"
THREAD = "import threading; threading.Thread(target=exec, args=('while True: pass',)).start(); " + SLEEPS
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SPINS!r}])"


@pytest.mark.parametrize(("code", "found"), [(SLEEPS, False), (SPINS, True), (THREAD, True), (CHILD, True)])
def test_what_runs_is_seen_in_threads_and_children_too(code: str, found: bool) -> None:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout
        process.stdout.readline()
        until = time.monotonic() + LONG
        while (seen := runs(process.pid)) != found and time.monotonic() < until:
            time.sleep(0.01)  # it is still on its way there
        assert seen is found
    finally:
        os.killpg(process.pid, 9)
        process.communicate()


def test_what_cannot_be_seen_is_taken_to_run() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert runs(process.pid)


# ---- deadlines


class Machine:
    """A clock, and how long a process has waited for a core, both set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.owed = 100.0, 7.0
        monkeypatch.setattr(cpu, "monotonic", lambda: self.now)
        monkeypatch.setattr(cpu, "waited_seconds", lambda pid: self.owed)


def test_a_wait_for_a_core_does_not_count_towards_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    clock = DeadlineClock(1, 2.0)
    assert (clock.began, clock.seconds_left()) == (100.0, 2.0)
    machine.now, machine.owed = 101.5, 8.25  # 1.5 s gone, 1.25 of them without a core
    assert clock.seconds_left() == 1.75
    machine.now = 103.5
    assert clock.seconds_left() == -0.25
    clock.again()
    assert clock.seconds_left() == 3.25  # what was owed in this batch may still be used


def test_a_deadline_becomes_at_most_four_times_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    clock = DeadlineClock(1, 2.0)
    machine.now, machine.owed = 107.0, 70.0
    assert clock.seconds_left() == 1.0
    machine.now, machine.owed = 108.0, 0.0  # its process has ended: nothing is owed, and nothing taken away
    assert clock.seconds_left() == -6.0


def test_where_the_system_does_not_tell_no_process_has_waited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert waited_seconds(os.getpid()) >= 0.0
    monkeypatch.setattr(cpu, "Path", lambda *parts: tmp_path.joinpath(*parts[1:]))
    assert waited_seconds(5) == 0.0  # no file
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "schedstat").write_text("1200 2500000000 3\n")
    assert waited_seconds(5) == 2.5
    (tmp_path / "5" / "schedstat").write_text("")
    assert waited_seconds(5) == 0.0
