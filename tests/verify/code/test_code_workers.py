"""Sandboxes of verifiers: shared, per process, and what their failures become."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from code_cases import DOUBLE, PRINTED, RIGHT, WRONG, judged

from assay.core.errors import ConfigError
from assay.core.rollout import Rollout
from assay.core.score import Fault
from assay.core.task import Task
from assay.sandbox import Limits, Result, Sandbox, SandboxProgram, Status, WorkerDied
from assay.sandbox import levels as levels_module
from assay.sandbox.attack_probe import IsolationProbe
from assay.verify import ScoringPool, code, rollout_of, task_and_rollout
from assay.verify.cases import verdict_row
from assay.verify.code import CodeCall, CodeOutput, close_sandboxes, sandbox_of
from assay.verify.code import base as base_module
from assay.verify.workers.cpu import runs

LONG = 30.0


def many(count: int) -> list[tuple[Task, Rollout]]:
    task, _ = task_and_rollout(DOUBLE, "")
    return [(task, rollout_of(task, RIGHT if n % 2 else WRONG, id=f"r{n}", group="g")) for n in range(count)]


@pytest.mark.slow
def test_verifiers_share_one_sandbox_until_it_is_closed() -> None:
    first = CodeOutput().sandbox()
    assert CodeCall().sandbox() is first and CodeCall(workers=1).sandbox() is not first
    close_sandboxes()
    assert CodeCall().sandbox() is not first
    with pytest.raises(ConfigError, match="closed"):
        first.run("1")
    assert judged(CodeOutput(), PRINTED, RIGHT).primary == 1.0


def test_every_score_says_what_contained_programs(capsys: pytest.CaptureFixture[str]) -> None:
    unsafe = CodeOutput(backend="rlimits", allow_unsafe=True)
    for answer in (RIGHT, WRONG, " "):
        score = judged(unsafe, PRINTED, answer)
        assert score.info["isolation"] == verdict_row(score)["isolation"] == "rlimits (UNSAFE)"
    assert unsafe.isolation()["tag"] == "rlimits (UNSAFE)" and unsafe.isolation()["held"] is False
    assert "UNSAFE" in capsys.readouterr().err
    here = CodeOutput()
    assert judged(here, PRINTED, " ").info["isolation"] == here.isolation()["tag"] == here.sandbox().run("1").isolation


def test_a_verifier_is_a_value() -> None:
    check = CodeCall(limits=Limits(wall=3.0))
    judged(check, DOUBLE, RIGHT)
    assert pickle.loads(pickle.dumps(check)) == check and hash(check) == hash(CodeCall(limits=Limits(wall=3.0)))


def test_in_the_worker_of_a_pool() -> None:
    check = CodeCall()
    judged(check, DOUBLE, RIGHT)  # the parent has a sandbox of its own when the pool forks
    with ScoringPool(check, deadline=60.0) as pool:
        scores = pool.score(many(6))
        assert [scores[f"r{n}"].primary for n in range(6)] == [0.0, 1.0] * 3
        assert pool.counts["hung"] == pool.counts["died"] == 0
    assert judged(check, DOUBLE, RIGHT).primary == 1.0


def test_beside_other_answers_the_runs_of_one_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_module, "cores", lambda: 8)
    check = CodeCall(workers=6)
    assert [check.for_workers(n).workers for n in (1, 2, 4, 8, 64)] == [6, 4, 2, 1, 1]
    assert check.for_workers(4) == CodeCall(workers=2) and CodeCall(workers=1).for_workers(2) == CodeCall(workers=1)


PROGRAM = """
from assay.sandbox import Limits, Sandbox
sandbox = Sandbox(workers=1)
sandbox.run("1")
print(flush=True)
sandbox.run({!r}, Limits(cpu=60, wall=60))
"""


@pytest.mark.parametrize(("body", "awake"), [("while True: pass", True), ("import time; time.sleep(60)", False)])
def test_a_program_that_computes_keeps_its_core_and_one_that_sleeps_gives_it_away(body: str, awake: bool) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM.format(body)], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout
        process.stdout.readline()
        until, row = time.monotonic() + LONG, 0
        while row < 25 and time.monotonic() < until:  # it may still be on its way there
            row = row + 1 if runs(process.pid) is awake else 0
            time.sleep(0.01)
        assert row == 25
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_from_any_thread() -> None:
    found: dict[int, float] = {}

    def work(n: int) -> None:
        found[n] = judged(CodeCall(), DOUBLE, RIGHT if n % 2 else WRONG).primary

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: float(n % 2) for n in range(6)}


def test_a_forked_process_begins_with_none() -> None:
    mine = sandbox_of()
    judged(CodeOutput(), PRINTED, RIGHT)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            other = sandbox_of()
            right = judged(CodeOutput(), PRINTED, RIGHT).primary == 1.0
            close_sandboxes()
            code = 0 if right and other is not mine else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert sandbox_of() is mine and judged(CodeOutput(), PRINTED, RIGHT).primary == 1.0


@dataclass(frozen=True)
class Failing:
    """A backend whose workers fail from the second case on."""

    name: str = "failing"

    def start(self) -> "FailingWorker":
        return FailingWorker()


class FailingWorker:
    layers: Mapping[str, str] = {}

    def run(self, program: SandboxProgram, limits: Limits) -> Result:
        if program.stdin == "2\n":
            return Result(status=Status.OK, stdout="4\n", isolation="failing")
        raise WorkerDied("the machine is on fire")

    def close(self) -> None:
        pass


def test_a_sandbox_that_fails_is_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    held = IsolationProbe("failing", True, "", {}, {})
    monkeypatch.setattr(levels_module, "probe", lambda backend: held)
    with Sandbox(Failing(), workers=2) as sandbox:
        monkeypatch.setattr(base_module, "sandbox_of", lambda *a, **k: sandbox)
        score = judged(CodeOutput(), PRINTED, RIGHT)
    assert score.fault is Fault.INFRA and not score.components and score.info["isolation"] == "failing"
    assert "the machine is on fire" in score.info["error"] and score.info["verdict"] == "infra"


def test_where_nothing_contains_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    close_sandboxes()
    monkeypatch.setattr(
        levels_module, "probe", lambda backend: IsolationProbe(backend.name, False, "not granted: no kernel", {}, {})
    )
    with pytest.raises(ConfigError, match=r"(?s)strong: not granted: no kernel.*allow_unsafe=True"):
        judged(CodeCall(), DOUBLE, RIGHT)
    monkeypatch.undo()
    assert judged(CodeCall(), DOUBLE, RIGHT).primary == 1.0


def test_unsafe_scores_are_tagged(capfd: pytest.CaptureFixture[str]) -> None:
    check = CodeOutput(backend="rlimits", allow_unsafe=True)
    check.prepare()
    assert "UNSAFE" in capfd.readouterr().err
    for text in (RIGHT, WRONG, "1 / 0", "def ("):
        assert judged(check, PRINTED, text).info["isolation"] == "rlimits (UNSAFE)"
    close_sandboxes()
    with pytest.raises(ConfigError, match="allow_unsafe=True"):
        judged(CodeOutput(backend="rlimits"), PRINTED, RIGHT)


def test_what_the_package_offers() -> None:
    assert set(code.__all__) <= set(dir(code)) and all(getattr(code, name) for name in code.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'CodeCal'"):
        _ = code.CodeCal  # pyright: ignore[reportAttributeAccessIssue]
