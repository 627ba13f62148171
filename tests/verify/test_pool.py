"""The scoring pool: every way in which foreign code fails, and that nothing outlives it."""

import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from foreign_code import LONG, act, alive, items, pids, task

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, RewardError
from assay.core.rollout import Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.interop import TrlReward
from assay.testing import rollout_of
from assay.verify import ExactMatch, FormatIs, RewardFunction, ScoringPool, Together, task_and_rollout
from assay.verify.verdict import broken_score
from assay.verify.workers import process
from assay.verify.workers.process import ForkServer
from assay.verify.workers.results import ResultsFile


def test_trusted_verifiers_start_no_process() -> None:
    pool = ScoringPool(ExactMatch())
    assert pool._dispatcher is None  # pyright: ignore
    assert {k: s.primary for k, s in pool.score(items("yes", "no")).items()} == {"r0": 1.0, "r1": 0.0}
    pool.close()


class Counted(ExactMatch):
    """Notes what it is asked."""

    asked: ClassVar[list[str]] = []

    def rule(self, gold: Any, text: str) -> Score:
        self.asked.append(text)
        return super().rule(gold, text)


class Reading(Counted):
    """Reads more of a rollout than its last text."""

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        return super().__call__(task, rollout)


@pytest.mark.parametrize(("verifier", "asked"), [(Counted(), 3), (Together((Counted(), FormatIs("[a-z]*"))), 3), (Reading(), 5)])
def test_attempts_that_end_alike_are_judged_once_where_nothing_else_counts(verifier: Any, asked: int) -> None:
    Counted.asked.clear()
    given = items("yes", "no", "yes", "no", "no", "yes")
    one, cut = given[0][0], replace(given[5][1], stop=Stop.LENGTH)
    with ScoringPool(verifier) as pool:
        verdicts = pool.score([*((one, r) for _, r in given[:4]), given[4], (one, cut)])
    assert [verdicts[f"r{i}"].components["correct"] for i in range(6)] == [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert len(Counted.asked) == asked


def test_verdicts_are_keyed_by_rollout_and_in_the_order_asked() -> None:
    with ScoringPool(RewardFunction(lambda p, c, r: float(c == r["answer"])), LONG) as pool:
        for _ in range(2):  # the worker stays
            verdicts = pool.score(items("no", "yes", "no")[::-1])
            assert {k: s.primary for k, s in verdicts.items()} == {"r2": 0.0, "r1": 1.0, "r0": 0.0}
            assert list(verdicts) == ["r2", "r1", "r0"]
        assert pool.counts == Counter()
        assert pool.score([]) == {}


def test_what_a_function_raises_or_returns_wrongly_is_a_verifier_fault() -> None:
    with ScoringPool(RewardFunction(act), LONG) as pool:
        verdicts = pool.score(items("yes", "raise", "no", "nan", "yes", "exit", "no"))
    assert [s.fault for s in verdicts.values()].count(Fault.VERIFIER) == 3
    assert not dict(verdicts["r1"].components)
    assert verdicts["r1"].info["error"] == "ValueError: a bad answer"
    assert "in act" in verdicts["r1"].info["traceback"]
    assert "nan" in verdicts["r3"].info["error"]
    assert "goodbye" in verdicts["r5"].info["error"]
    assert [verdicts[k].primary for k in ("r0", "r2", "r4", "r6")] == [1.0, 0.0, 1.0, 0.0]
    assert pool.counts == Counter(retried=3)


def test_a_fault_that_does_not_come_again_leaves_no_trace(tmp_path: Path) -> None:
    def flaky(prompt: str, completion: str, row: dict[str, Any]) -> float:
        mark = tmp_path / completion
        if completion in ("raise", "die") and not mark.exists():
            mark.touch()
            act(prompt, completion, row)
        return 0.5

    with ScoringPool(RewardFunction(flaky), LONG) as pool:
        verdicts = pool.score(items("raise", "die", "yes", "no"))
    assert [(s.primary, s.fault) for s in verdicts.values()] == [(0.5, Fault.NONE)] * 4
    assert pool.counts == Counter(retried=2, died=1)


def test_what_raised_is_judged_again_on_a_fresh_worker() -> None:
    spoiled: list[str] = []

    def forgetful(prompt: str, completion: str, row: dict[str, Any]) -> float:
        if len(spoiled) == 3:
            raise RuntimeError("the connection was lost")
        spoiled.append(completion)
        return 1.0

    with ScoringPool(RewardFunction(forgetful), LONG, workers=1) as pool:
        verdicts = pool.score(items("a", "b", "c", "d", "e"))
        assert [s.fault for s in verdicts.values()] == [Fault.NONE] * 5
        assert pool.counts == Counter(retried=2)
        worker = pids(pool)[1:]
        assert pool.score(items("a"))["r0"].primary == 1.0
        assert pids(pool)[1:] == worker  # only the fresh one is left, and goes on


@pytest.mark.parametrize("how", ["die", "kill"])
def test_an_answer_that_kills_its_judge_twice_scores_the_floor(how: str) -> None:
    with ScoringPool(RewardFunction(act, floor=-1.0), LONG) as pool:
        verdicts = pool.score(items("yes", how, "no", "yes"))
    assert verdicts["r1"].fault is Fault.POLICY
    assert dict(verdicts["r1"].components) == {"reward": -1.0}
    assert "twice on the same answer" in verdicts["r1"].info["error"]
    assert ("exit code 3" if how == "die" else "signal 9") in verdicts["r1"].info["error"]
    assert [verdicts[k].primary for k in ("r0", "r2", "r3")] == [1.0, 0.0, 1.0]
    assert pool.counts == Counter(retried=1, died=2)


@pytest.mark.slow
def test_an_answer_that_hangs_twice_scores_the_floor() -> None:
    def named(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        return {"correct": act(prompt, completion, row), "style": 0.5}

    with ScoringPool(RewardFunction(named), 0.5) as pool:
        verdicts = pool.score(items("yes", "hang", "no", "yes"))
    assert (verdicts["r1"].fault, dict(verdicts["r1"].components)) == (Fault.POLICY, {"correct": 0.0, "style": 0.0})
    assert verdicts["r1"].info["error"] == "no verdict within 0.5 s, twice on the same answer"
    assert [verdicts[k].primary for k in ("r0", "r2", "r3")] == [1.0, 0.0, 1.0]
    assert pool.counts == Counter(retried=1, hung=2)


def test_a_death_and_then_an_exception_is_a_verifier_fault(tmp_path: Path) -> None:
    def worse(prompt: str, completion: str, row: dict[str, Any]) -> float:
        if completion == "no" and not (tmp_path / "seen").exists():
            (tmp_path / "seen").touch()
            os._exit(1)
        return act(prompt, "raise" if completion == "no" else completion, row)

    with ScoringPool(RewardFunction(worse), LONG) as pool:
        assert pool.score(items("yes", "no", "yes"))["r1"].fault is Fault.VERIFIER


def test_an_exception_and_then_a_death_is_an_infra_fault(tmp_path: Path) -> None:
    def worse(prompt: str, completion: str, row: dict[str, Any]) -> float:
        if completion != "no":
            return 1.0
        first = not (tmp_path / "seen").exists()
        (tmp_path / "seen").touch()
        return act(prompt, "raise" if first else "die", row)

    with ScoringPool(RewardFunction(worse), LONG) as pool:
        verdict = pool.score(items("yes", "no", "yes"))["r1"]
    assert (verdict.fault, dict(verdict.components)) == (Fault.INFRA, {})


def test_failing_on_most_answers_is_an_error_with_traceback_and_row() -> None:
    with ScoringPool(RewardFunction(act), LONG) as pool:
        with pytest.raises(RewardError) as caught:
            pool.score(items("yes", "raise", "raise"))
        told = str(caught.value)
        assert told.startswith("no verdict on 2 of 3 answers")
        assert "in act" in told
        assert "ValueError: a bad answer" in told
        assert "row: {'prompt': 'p1', 'answer': 'yes'}" in told
        # exactly half is not yet blind, and the pool goes on
        assert pool.score(items("yes", "raise"))["r0"].primary == 1.0


def test_a_trusted_verifier_that_fails_on_most_answers_is_an_error_too() -> None:
    class Broken:
        trusted = True

        def __call__(self, task: Task, rollout: Rollout) -> Score:
            raise KeyError("rubric")

    with pytest.raises(RewardError, match="KeyError: 'rubric'"):
        ScoringPool(Broken()).score(items("yes"))


@pytest.mark.slow
def test_a_function_that_hangs_from_the_start_is_an_error_after_three_answers() -> None:
    with ScoringPool(RewardFunction(lambda p, c, r: act(p, "hang", r)), 0.2) as pool:
        with pytest.raises(RewardError, match=r"no verdict within 0\.2 s on its first 3 different answers"):
            pool.score(items(*"abcdefgh"))
        assert pool.counts["hung"] == 3


def test_a_batch_in_one_call() -> None:
    calls = RewardFunction(lambda p, c, r: [float(len(c))] * len(c), batched=True)
    with ScoringPool(calls, LONG) as pool:
        assert [s.primary for s in pool.score(items("a", "b", "c")).values()] == [3.0] * 3
        assert [s.primary for s in pool.score(items("a")).values()] == [1.0]
        assert pool.counts == Counter()


@pytest.mark.parametrize(
    ("culprit", "fault"), [("raise", Fault.VERIFIER), ("die", Fault.POLICY), ("nan", Fault.VERIFIER), ("exit", Fault.VERIFIER)]
)
def test_a_batch_that_fails_is_scored_one_by_one(culprit: str, fault: Fault) -> None:
    def batch(prompts: list[str], completions: list[str], rows: list[dict[str, Any]]) -> list[float]:
        return [act(*triple) for triple in zip(prompts, completions, rows, strict=True)]

    with ScoringPool(RewardFunction(batch, batched=True), LONG) as pool:
        verdicts = pool.score(items("yes", culprit, "no"))
    assert [s.fault for s in verdicts.values()] == [Fault.NONE, fault, Fault.NONE]
    assert [verdicts[k].primary for k in ("r0", "r2")] == [1.0, 0.0]
    assert pool.counts["split"] == 1


def test_the_wrong_count_is_an_error() -> None:
    pool = ScoringPool(RewardFunction(lambda p, c, r: [1.0, 1.0, 1.0], batched=True), LONG)
    with pool, pytest.raises(RewardError, match="returned 3 values for 2 completions; return one for each"):
        pool.score(items("a", "b"))


def test_the_wrong_count_is_the_verdict_on_every_answer() -> None:
    """Asked alone, an answer would take the list's one value for its own."""
    reward = RewardFunction(lambda p, c, r: [1.0], batched=True)
    verdicts = process._judge_together(reward, process.views(reward, list(items("a", "b"))), cast("Any", None))
    assert isinstance(verdicts, list) and [s.fault for s in verdicts] == [Fault.VERIFIER] * 2
    assert all("1 value for 2 completions" in str(dict(s.info)) for s in verdicts)


def test_any_verifier_runs_in_the_pool() -> None:
    class Custom:
        def __call__(self, task: Task, rollout: Rollout) -> Score:
            if rollout.text == "die":
                os._exit(1)
            if rollout.text == "odd":
                return Score(components={"x": 1.0}, info=FrozenMap({"f": lambda: 0}))
            return Score(components={"correct": float(rollout.text == task.private["answer"])})

    with ScoringPool(Custom(), LONG) as pool:
        verdicts = pool.score(items("yes", "no", "die", "odd", "no"))
    assert (verdicts["r0"].primary, verdicts["r1"].primary) == (1.0, 0.0)
    assert dict(verdicts["r2"].components) == {"correct": 0.0}  # the names that it was seen to give
    assert verdicts["r2"].fault is Fault.POLICY
    assert "cannot leave its process" in verdicts["r3"].info["error"]


def test_failed_attempts_are_infra_faults_and_not_the_verifiers() -> None:
    t = task("p")
    with ScoringPool(RewardFunction(act), LONG) as pool:
        verdicts = pool.score([(t, rollout_of(t, "raise", id="r0", stop=Stop.ERROR)), (t, rollout_of(t, "yes", id="r1"))])
        alone = pool.score([(t, rollout_of(t, "yes", id="r2", stop=Stop.ERROR))])
    assert [s.fault for s in verdicts.values()] == [Fault.INFRA, Fault.NONE]
    assert alone["r2"].fault is Fault.INFRA


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigError, match="deadline"):
        ScoringPool(ExactMatch(), 0.0)
    with pytest.raises(ConfigError, match="workers=0; use at least 1"):
        ScoringPool(ExactMatch(), workers=0)
    with pytest.raises(DataError, match=r"\['r0'\] occur more than once"):
        ScoringPool(ExactMatch()).score([*items("a"), *items("b")])

    class Custom:
        def __call__(self, task: Task, rollout: Rollout) -> Score:
            return Score(components={"x": 1.0})

    with ScoringPool(Custom(), LONG) as pool:
        t = Task(
            id="t",
            domain="d",
            arm="a",
            level=1,
            split="train",
            index=0,
            public=FrozenMap({"prompt": "p"}),
            private=FrozenMap({"f": lambda: 0}),
        )
        with pytest.raises(DataError, match="cannot be sent"):
            pool.score([(t, rollout_of(t, "x"))])
        assert pool.score(items("x"))["r0"].primary == 1.0
    pool.close()  # again, harmless
    with pytest.raises(RewardError, match="closed"):
        pool.score(items("x"))


def test_a_worker_that_dies_while_idle_costs_nothing() -> None:
    with ScoringPool(RewardFunction(act), LONG) as pool:
        pool.score(items("yes"))
        os.kill(pids(pool)[1], signal.SIGKILL)
        assert pool.score(items("yes"))["r0"].primary == 1.0
        assert pool.counts == Counter()


def test_a_lost_fork_server_is_replaced() -> None:
    with ScoringPool(RewardFunction(act), LONG) as pool:
        pool.score(items("yes"))
        fork_server, worker = pids(pool)
        os.kill(fork_server, signal.SIGKILL)
        os.waitpid(fork_server, 0)
        assert pool.score(items("yes", "no"))["r0"].primary == 1.0
        assert pids(pool)[0] != fork_server
    assert not alive(worker)


def test_a_forked_copy_does_not_end_the_processes_of_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ScoringPool(RewardFunction(act), LONG)
    fork_server = pool._dispatcher.supervisor._fork_server  # pyright: ignore
    monkeypatch.setattr(os, "getpid", lambda: -1)
    pool.close()
    monkeypatch.undo()
    assert Path(f"/proc/{fork_server.pid}").exists()
    fork_server.close()
    assert not alive(fork_server.pid)


def test_a_fork_server_that_ends_before_it_answers_is_replaced() -> None:
    with ScoringPool(RewardFunction(act), LONG) as pool:
        fork_server = pool._dispatcher.supervisor._fork_server  # pyright: ignore
        near, far = socket.socketpair()
        far.shutdown(socket.SHUT_WR)
        fork_server._control.close()
        fork_server._control = near
        assert pool.score(items("yes"))["r0"].primary == 1.0
        assert pool._dispatcher.supervisor._fork_server is not fork_server  # pyright: ignore
    far.close()


def test_workers_that_cannot_be_forked_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(self: ForkServer, printed: int, verdicts: int) -> tuple[int, Connection]:
        raise EOFError

    with ScoringPool(RewardFunction(act), LONG) as pool:
        monkeypatch.setattr(ForkServer, "spawn", lost)
        with pytest.raises(RewardError, match="three scoring processes in a row"):
            pool.score(items("yes"))


def test_workers_that_never_come_up_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.verify.workers.process.serve", lambda *_: threading.Event().wait())  # workers are forked with it
    monkeypatch.setattr("assay.verify.workers.supervisor._ARRIVAL", 0.05)
    with ScoringPool(RewardFunction(act), LONG) as pool, pytest.raises(RewardError, match="three scoring processes in a row"):
        pool.score(items("yes"))


def grandchild(prompt: str, completion: str, row: dict[str, Any]) -> float:
    with open(completion, "a") as file:
        print(os.getpid(), subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, file=file)
    while True:
        pass


@pytest.mark.slow
def test_nothing_is_left_running(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    with ScoringPool(RewardFunction(grandchild), 0.5) as pool:
        verdict = pool.score(items(str(log)))["r0"]
        fork_server = pids(pool)[0]
    assert verdict.fault is Fault.POLICY
    found = [int(p) for p in log.read_text().split()]
    assert len(found) == 4  # two judges, and what each had started
    assert [p for p in [*found, fork_server] if alive(p)] == []


def test_an_interrupt_leaves_nothing_and_loses_no_later_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScoringPool(RewardFunction(act), LONG) as pool:
        pool.score(items("yes"))
        worker = pids(pool)[1]
        monkeypatch.setattr(pool._dispatcher, "_look", lambda call: (_ for _ in ()).throw(KeyboardInterrupt))  # pyright: ignore
        with pytest.raises(KeyboardInterrupt):
            pool.score(items("no", "yes"))
        monkeypatch.undo()
        assert not alive(worker)
        assert [s.primary for s in pool.score(items("yes", "no")).values()] == [1.0, 0.0]


def test_a_batch_may_take_many_deadlines() -> None:
    def slow(prompt: str, completion: str, row: dict[str, Any]) -> float:
        time.sleep(0.3 if completion == "slow" else 0.0)
        return act(prompt, "yes" if completion == "slow" else completion, row)

    with ScoringPool(RewardFunction(slow), 1.0) as pool:
        verdicts = pool.score(items(*["slow"] * 5, "no", *["slow"] * 3))
        assert [s.primary for s in verdicts.values()] == [*[1.0] * 5, 0.0, *[1.0] * 3]
        assert pool.counts == Counter()
        verdicts = pool.score(items(*["slow"] * 5, "sleep", "no", "slow", "die"))
        assert [s.primary for s in verdicts.values()] == [*[1.0] * 5, 0.0, 0.0, 1.0, 0.0]
        assert [s.fault for s in verdicts.values()] == [*[Fault.NONE] * 5, Fault.POLICY, Fault.NONE, Fault.NONE, Fault.POLICY]
        assert pool.counts == Counter(hung=2, died=2, retried=2)


def test_a_copy_of_the_worker_that_a_function_forks_judges_nothing() -> None:
    def forks(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        if completion == "fork":
            os.fork()
        return {"correct": act(prompt, completion, row), "pid": float(os.getpid())}

    with ScoringPool(RewardFunction(forks), LONG, workers=1) as pool:
        for _ in range(3):
            verdicts = pool.score(items("fork", "yes", "no", "fork", "yes"))
            assert [s.components["correct"] for s in verdicts.values()] == [0.0, 1.0, 0.0, 0.0, 1.0]
            assert {s.components["pid"] for s in verdicts.values()} == {float(pids(pool)[1])}
        assert pool.counts == Counter()


def test_a_worker_that_ends_behind_its_last_verdict_has_given_it(monkeypatch: pytest.MonkeyPatch) -> None:
    add = ResultsFile.add

    def ends(self: ResultsFile, data: bytes) -> None:
        add(self, data)
        if b"farewell" in data:
            os._exit(0)

    def judge(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        return {"correct": act(prompt, "yes", row), completion: 1.0}

    monkeypatch.setattr(ResultsFile, "add", ends)  # workers are forked with it
    with ScoringPool(RewardFunction(judge), LONG, workers=1) as pool:
        for _ in range(2):
            assert [s.primary for s in pool.score(items("well", "well", "farewell")).values()] == [1.0] * 3
            assert len(pids(pool)) == 1
        assert pool.counts == Counter()


SCRIPT = """
import os, sys
from assay.core import FrozenMap, Task
from assay.interop import TrlReward
from assay.testing import rollout_of
from assay.verify import RewardFunction, ScoringPool

def pid(prompt, completion, row):
    print("printed by a worker", flush=True)
    return float(os.getpid())

task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "p"}))
sys.stdout.write("before ")
pool = ScoringPool(RewardFunction(pid), 30.0)
print(int(pool.score([(task, rollout_of(task, "yes"))])["r0"].primary), pool._dispatcher.supervisor._fork_server.pid)
ENDING
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "code"), [("", 0), ("raise SystemExit(4)", 4), ("os.kill(os.getpid(), 9)", -9), ("1/0", 1), ("os._exit(5)", 5)]
)
def test_processes_end_with_the_program(ending: str, code: int) -> None:
    """Functions of `__main__` work, and no way of ending the program leaves a process."""
    script = textwrap.dedent(SCRIPT).replace("ENDING", "sys.stdout.flush()\n" + ending)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    # Reading to the end of stdout waits for every process that holds it.
    assert done.returncode == code, done.stderr
    before, *found = done.stdout.split()
    assert (before, len(found)) == ("before", 2)  # once, and nothing from the worker
    assert not any(alive(int(p)) for p in found)


@pytest.mark.filterwarnings("error")
def test_a_pool_that_nobody_closes_ends_with_its_last_reference() -> None:
    pool = ScoringPool(RewardFunction(act), LONG)
    pool.score(items("yes"))
    running = pids(pool)
    del pool
    gc.collect()
    assert [p for p in running if alive(p)] == []


def test_two_pools_at_once_end_in_any_order() -> None:
    first, second = ScoringPool(RewardFunction(act), LONG), ScoringPool(RewardFunction(act), LONG)
    for pool in (first, second, first):
        assert pool.score(items("yes"))["r0"].primary == 1.0
    running = [*pids(first), *pids(second)]
    first.close()
    second.close()
    assert [p for p in running if alive(p)] == []


def test_a_function_that_always_ends_its_process_is_an_error_and_not_a_run_of_zeros() -> None:
    with ScoringPool(RewardFunction(act), LONG) as pool:
        with pytest.raises(RewardError, match=r"no verdict on 3 of 4 answers: .* ended its process"):
            pool.score(items("die", "kill", "die", "yes"))
        # one or two answers may kill their judge
        assert pool.score(items("die", "yes"))["r0"].fault is Fault.POLICY


def test_an_exception_that_cannot_be_written_is_a_verifier_fault() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def mute(prompt: str, completion: str, row: dict[str, Any]) -> float:
        if completion == "raise":
            raise Mute
        return 1.0

    with ScoringPool(RewardFunction(mute), LONG) as pool:
        verdict = pool.score(items("yes", "raise"))["r1"]
    assert (verdict.fault, verdict.info["error"]) == (Fault.VERIFIER, "Mute")


def test_a_number_beyond_all_floats_is_told_as_such() -> None:
    def huge(prompt: str, completion: str, row: dict[str, Any]) -> float:
        return 10**400 if completion == "raise" else 1

    with ScoringPool(RewardFunction(huge), LONG) as pool:
        verdict = pool.score(items("yes", "raise"))["r1"]
    assert verdict.fault is Fault.VERIFIER
    assert "a number beyond 1e308" in verdict.info["error"]


def test_the_same_in_this_process() -> None:
    """What happens in a worker, seen from here."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    ((posed, rollout),) = items("yes")
    with pytest.raises(RewardError, match="a number beyond 1e308"):
        RewardFunction(lambda prompt, completion, row: 10**400)(posed, rollout)
    assert broken_score(Mute()).info["error"] == "Mute"


def test_a_pool_that_refuses_nothing_gives_every_verdict() -> None:
    """For answers judged one by one: a first failure, and hanging from the start, are verdicts and no errors."""

    def reward(prompt: str, completion: str, row: dict) -> float:
        if completion == "raise":
            raise ValueError("no")
        if completion != "ok":
            time.sleep(30)
        return 1.0

    with ScoringPool(RewardFunction(reward), deadline=0.2, refuse=False) as pool:
        faults = [
            pool.score([task_and_rollout("x", said, id=said)])[said].fault for said in ("raise", "hang1", "hang2", "hang3", "ok")
        ]
    assert faults == [Fault.VERIFIER, Fault.POLICY, Fault.POLICY, Fault.POLICY, Fault.NONE]


class Minds:
    """Looks after a limit of its own, which some answers exceed."""

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        if rollout.text == "huge":
            return Score(components={"correct": 0.0}, fault=Fault.POLICY, info=FrozenMap({"verdict": "limit"}))
        return Score(components={"correct": 1.0})


def test_what_the_verifier_itself_blames_on_the_policy_is_a_verdict() -> None:
    with ScoringPool(Minds(), LONG) as pool:
        verdicts = pool.score(items("huge", "huge", "huge", "huge", "fine"))
    assert [s.primary for s in verdicts.values()] == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("returned", ["one", "one fewer"])
@pytest.mark.parametrize("form", ["rows", "trl"])
def test_a_list_of_another_length_stops_the_batch_and_no_single_call_hides_it(form: str, returned: str) -> None:
    """One value for one completion is right: asked one by one, such a function would be believed."""

    def listed(completions: list[str]) -> list[float]:
        return [1.0] if returned == "one" else [1.0 for _ in completions][:-1] or [0.0]

    def trl(prompts: list[str], completions: list[str], **columns: object) -> list[float]:
        return listed(completions)

    rows = RewardFunction(lambda prompts, completions, rows: listed(completions), batched=True)
    with (
        ScoringPool(rows if form == "rows" else TrlReward(trl), LONG) as pool,
        pytest.raises(RewardError, match=f"(?s){1 if returned == 'one' else 3} values? for 4 completions.*test_pool.py"),
    ):
        pool.score(items("yes", "no", "yes", "no!"))
    assert pool.news() == []


def test_answers_that_got_none_are_told_as_such_and_a_row_is_shown_once() -> None:
    with ScoringPool(RewardFunction(lambda p, c, row: None), LONG) as pool, pytest.raises(RewardError) as nothing:
        pool.score(items("yes", "no"))
    assert "the reward function returned None" in str(nothing.value) and "'return'" in str(nothing.value)
    with ScoringPool(RewardFunction(lambda p, c, row: "1.0"), LONG) as pool, pytest.raises(RewardError) as text:
        pool.score(items("yes", "no"))
    assert str(text.value).count("'answer':") == 1 and "hung" not in str(text.value)
