"""Rewards that write into descriptors, supervisors and workers that are stopped: told, replaced, and never waited for."""

import contextlib
import os
import signal
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from foreign_code import LONG, act, alive, items, pids

from assay.core.canon import FrozenMap
from assay.core.errors import RewardError
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify import RewardFunction, ScoringPool
from assay.verify.verdict import judge
from assay.verify.workers import cpu as room
from assay.verify.workers import process as worker
from assay.verify.workers import supervisor as bench_module


def write_everywhere(numbers: range) -> None:
    for number in numbers:
        with contextlib.suppress(OSError):
            os.write(number, b"x" * 64)


def test_a_reward_that_writes_into_low_descriptors_reaches_nobody(tmp_path: Path) -> None:
    def scribbles(prompt: str, completion: str, row: dict[str, Any]) -> float:
        write_everywhere(range(3, 400))
        return act(prompt, completion, row)

    lock, (ear, mouth) = tmp_path / "lock", os.pipe()
    os.set_blocking(ear, False)
    with lock.open("w") as file, ScoringPool(RewardFunction(scribbles), LONG) as pool:
        file.write("1\n")
        file.flush()
        assert [s.primary for s in pool.score(items("yes", "no", "yes")).values()] == [1.0, 0.0, 1.0]
        assert [s.primary for s in pool.score(items("no", "yes")).values()] == [0.0, 1.0]
        assert pool.counts == Counter()
    with pytest.raises(BlockingIOError):
        os.read(ear, 1)
    os.close(ear)
    os.close(mouth)
    assert lock.read_text() == "1\n"


def test_workers_hold_no_descriptor_of_the_program_but_files_it_reads(tmp_path: Path) -> None:
    def held(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        found = {os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")}
        names = [f for f in found if f.startswith(("socket:", "pipe:", "anon_inode:"))]
        return {"correct": 1.0, "sockets": float(len(names)), **{p.name: float(str(p) in found) for p in (written, read)}}

    written, read = tmp_path / "written", tmp_path / "read"
    read.write_text("word")
    ear, mouth = os.pipe()
    with (
        written.open("w"),
        read.open(),
        ScoringPool(RewardFunction(held), LONG) as other,
        ScoringPool(RewardFunction(held), LONG) as pool,
    ):
        other.score(items("yes"))
        (verdict,) = pool.score(items("yes")).values()
    os.close(ear)
    os.close(mouth)
    # sockets: only its connection, since verdicts stand in a file
    assert dict(verdict.components) == {"correct": 1.0, "sockets": 1.0, "written": 0.0, "read": 1.0}


@pytest.mark.parametrize("workers", [1, 4])
def test_a_reward_that_writes_into_all_descriptors_is_ended_and_told(workers: int) -> None:
    def scribbles(prompt: str, completion: str, row: dict[str, Any]) -> float:
        if completion == "write":
            write_everywhere(range(3, 1024))
        return act(prompt, completion, row)

    with ScoringPool(RewardFunction(scribbles, floor=-1.0), LONG, workers=workers) as pool:
        for _ in range(2):
            verdicts = list(pool.score(items("yes", "write", "no", "yes")).values())
            assert [s.components["reward"] for s in verdicts] == [1.0, -1.0, 0.0, 1.0]
            assert verdicts[1].fault is Fault.POLICY
            assert "through descriptors that are not its own" in verdicts[1].info["error"]
        assert pool.counts["died"] >= 4  # and where an answer before it had not been read yet, that one is judged again too


@pytest.mark.parametrize("place", ["cut", "head"])
def test_verdicts_that_are_gone_or_spoiled_are_a_death(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    from assay.verify.workers.results import ResultsFile

    add = ResultsFile.add

    def spoil(self: ResultsFile, data: bytes) -> None:
        add(self, data)
        if b"spoil" in data:
            if place == "cut":
                os.ftruncate(self._fd, 0)  # pyright: ignore
            else:
                os.pwrite(self._fd, b"\x00" * 24, 0)  # pyright: ignore

    def judge(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        return {"correct": act(prompt, completion, row), completion: 1.0}

    monkeypatch.setattr(ResultsFile, "add", spoil)  # workers are forked with it
    with ScoringPool(RewardFunction(judge), LONG) as pool:
        verdicts = pool.score(items("spoil", "yes", "no", "yes"))
    assert verdicts["r0"].fault is Fault.POLICY
    assert "wrote over its verdicts" in verdicts["r0"].info["error"]
    assert [verdicts[k].components["correct"] for k in ("r1", "r2", "r3")] == [1.0, 0.0, 1.0]


def test_a_stopped_supervisor_is_replaced_counted_and_told() -> None:
    with ScoringPool(RewardFunction(act), LONG) as pool:
        pool.score(items("yes"))
        fork_server, worker = pids(pool)
        os.kill(fork_server, signal.SIGSTOP)
        assert [s.primary for s in pool.score(items("yes", "raise", "no")).values() if s.valid] == [1.0, 0.0]
        assert pids(pool)[0] != fork_server
        assert pool.counts == Counter(retried=1, replaced=1)
        assert pool.news() == ["the process that starts scoring workers was stopped or killed, and has been replaced"]
        assert not alive(fork_server)
        assert not alive(worker)


def test_a_pool_whose_supervisor_is_stopped_can_be_closed() -> None:
    pool = ScoringPool(RewardFunction(act), LONG)
    pool.score(items("yes"))
    running = pids(pool)
    os.kill(running[0], signal.SIGSTOP)
    pool.close()
    assert [p for p in running if alive(p)] == []


def test_a_supervisor_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.verify.workers.process._LATE", 0.05)
    monkeypatch.setattr("assay.verify.workers.process._LOST", 0.2)
    monkeypatch.setattr("assay.verify.workers.process.run_fork_server", lambda *_: time.sleep(600))  # what is forked
    with ScoringPool(RewardFunction(act), LONG) as pool:
        with pytest.raises(RewardError, match="three scoring processes in a row"):
            pool.score(items("yes"))
        running = pids(pool)
    assert not alive(running[0])


def test_a_worker_that_was_stopped_while_idle_costs_no_verdict() -> None:
    with ScoringPool(RewardFunction(act), LONG) as pool:
        pool.score(items("yes"))
        worker = pids(pool)[1]
        os.kill(worker, signal.SIGSTOP)
        assert pool.score(items("yes"))["r0"].primary == 1.0
        assert pool.counts == Counter()
        assert not alive(worker)


def test_verdicts_that_we_read_late_are_in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reading a verdict of many megabytes may take longer than the deadline of the next."""
    from assay.verify.workers import dispatch

    read = dispatch._read  # pyright: ignore

    def slow(data: bytes) -> Any:
        (tmp_path / "read").touch()
        time.sleep(0.6)
        return read(data)

    def judge(prompt: str, completion: str, row: dict[str, Any]) -> float:
        while completion == "late" and not (tmp_path / "read").exists():
            time.sleep(0.005)
        return act(prompt, completion, row)

    monkeypatch.setattr("assay.verify.workers.dispatch._read", slow)
    with ScoringPool(RewardFunction(judge), 0.5) as pool:
        assert [s.primary for s in pool.score(items("yes", "late", "yes", "no")).values()] == [1.0, 0.0, 1.0, 0.0]
        assert pool.counts == Counter()


@pytest.mark.parametrize("batched", [False, True])
def test_a_worker_that_never_says_it_is_through_has_given_all_its_verdicts(
    monkeypatch: pytest.MonkeyPatch, batched: bool
) -> None:
    from assay.verify.workers.results import ResultsFile

    add = ResultsFile.add

    def stalls(self: ResultsFile, data: bytes) -> None:
        add(self, data)
        if b"last" in data:
            time.sleep(600)

    def judge(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        return {"correct": act(prompt, completion, row), completion: 1.0}

    def batch(prompts: list[str], completions: list[str], rows: list[dict[str, Any]]) -> list[dict[str, float]]:
        return [judge(*item) for item in zip(prompts, completions, rows, strict=True)]

    monkeypatch.setattr(ResultsFile, "add", stalls)  # workers are forked with it
    with ScoringPool(RewardFunction(batch if batched else judge, batched=batched), 1.0) as pool:
        verdicts = pool.score(items("yes", "no", "last"))
        assert [s.components["correct"] for s in verdicts.values()] == [1.0, 0.0, 0.0]
        assert pool.counts == Counter()


class Unreadable:
    def __reduce__(self) -> Any:
        return [].pop, ()


def test_a_verdict_that_cannot_be_rebuilt_is_a_verifier_fault() -> None:
    class Odd:
        def __call__(self, task: Task, rollout: Rollout) -> Score:
            return Score(components={"correct": 1.0}, info=FrozenMap({"x": Unreadable()} if rollout.text == "odd" else {}))

    with ScoringPool(Odd(), LONG) as pool:
        verdicts = pool.score(items("yes", "odd", "no"))
    assert [s.fault for s in verdicts.values()] == [Fault.NONE, Fault.VERIFIER, Fault.NONE]
    assert "cannot be read" in verdicts["r1"].info["error"]


# ---- what no pool reaches twice ---------------------------------------------------------------------------------------


def test_no_memory_in_a_worker_is_its_end_and_elsewhere_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Greedy:
        def __call__(self, task: Task, rollout: Rollout) -> Score:
            raise MemoryError

        def start(self, view: Any) -> Any:
            raise MemoryError

        start_batch = start

    (item,) = items("yes")
    assert judge(Greedy(), *item).fault is Fault.VERIFIER
    monkeypatch.setattr("assay.verify.verdict.in_worker", lambda: True)
    with pytest.raises(MemoryError):
        worker._judge(Greedy(), item)
    with pytest.raises(MemoryError):
        worker._judge_user(Greedy(), item)
    with pytest.raises(MemoryError):
        worker._judge_together(Greedy(), [item], worker._Loop())


def test_nobody_is_stopped_that_is_not_there() -> None:
    assert not room.stopped(0)


def test_a_supervisor_that_is_lost_is_asked_for_nothing_and_its_workers_end() -> None:
    with ScoringPool(RewardFunction(act), LONG) as pool:
        pool.score(items("yes"))
        supervisor = pool._dispatcher.supervisor
        fork_server, (hired,) = supervisor._fork_server, supervisor._workers
        fork_server.lost = True
        with pytest.raises(EOFError, match="is gone"):
            fork_server.kill(hired.pid)
        other = SimpleNamespace(pid=hired.pid, fork_server=None)  # of an earlier supervisor
        gone = SimpleNamespace(pid=2**22 + 1, fork_server=fork_server)  # has ended already
        supervisor._workers += [other, gone]
        supervisor._idle.clear()  # as if it were at work
        try:
            assert pool.score(items("no"))["r0"].primary == 0.0
        finally:
            supervisor._workers[:] = [w for w in supervisor._workers if w not in (other, gone)]
        assert pool.counts["replaced"] == 1
    assert not alive(hired.pid)


def test_a_large_batch_is_not_sent_to_a_worker_that_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def stopped_once(pid: int) -> bool:
        seen.append(pid)
        return len(seen) == 1

    monkeypatch.setattr(bench_module, "stopped", stopped_once)
    monkeypatch.setattr(bench_module, "_SMALL", 1)
    with ScoringPool(RewardFunction(act), LONG) as pool:
        assert pool.score(items("yes"))["r0"].primary == 1.0
    assert len(set(seen)) == 2


def test_a_pool_that_is_closed_while_a_thread_starts_a_worker_starts_no_fork_server_anew(monkeypatch):
    """Else the thread judges on, for an hour where the verifier hangs."""
    pool = ScoringPool(RewardFunction(lambda prompt, completion, row: 1.0), 3600.0)
    assert pool._dispatcher is not None
    supervisor = pool._dispatcher.supervisor
    spawn, servers = worker.ForkServer.spawn, []

    def close_first(server, *files):
        servers.append(server)
        pool.close()
        return spawn(server, *files)

    monkeypatch.setattr(worker.ForkServer, "spawn", close_first)
    with pytest.raises(RewardError, match="closed"):
        pool.score(items("yes"))
    assert servers == [supervisor._fork_server], "another one was started"
