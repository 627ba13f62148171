"""A run that is asked to stop while verdicts are tried again ends at once, gives the step up, and goes on exactly."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from test_scorers import RUBRIC
from tiny_runs import only_rl, resumed, trained

from assay.clients import Judge
from assay.core.task import Message
from assay.core.util.stop_request import stop_requested
from assay.scorers import RubricJudge
from assay.tasks import Rows
from assay.testing import JudgeServer
from assay.train.driver import train
from assay.train.run import Run

SECONDS = 30.0
"""From the signal to the end of the run, on a busy machine; another try would come after a minute."""
BATCH = 8  # rollouts of a step: two groups of four


def sevens(messages: list[Message]) -> str:
    return json.dumps({"sevens": len(messages[-1].content) % 3})


class Sigterm:
    """Sends it to this process, a moment after the first call of this."""

    def __init__(self) -> None:
        self.called, self.sent = False, 0.0

    def __call__(self) -> None:
        if not self.called:
            self.called = True
            threading.Timer(0.2, self._send).start()

    def _send(self) -> None:
        self.sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGTERM)


def check_stop(run: Run, folder: Path, sigterm: Sigterm) -> None:
    """Trains until the signal comes in step 2."""
    outcome = train(run, folder)
    assert sigterm.sent and time.monotonic() - sigterm.sent < SECONDS
    assert (outcome.finished, outcome.step, outcome.signal) == (False, 1, signal.SIGTERM)
    assert (folder / "LATEST").read_text() == "step_0000001\n"
    assert not stop_requested(), "the next run in this process is asked nothing"
    assert not (folder / "events.jsonl").exists(), "no fault is told of calls that were given up"


def test_a_judge_that_is_busy_when_the_run_is_stopped(tmp_path: Path) -> None:
    sigterm, first = Sigterm(), dict[str, None]()
    busy = False

    def fault(question: str, n: int) -> Any:
        first[question] = None
        if not busy or len(first) <= answered + 2:  # the first step's questions, and two of the second's
            return ""
        sigterm()
        return "500"

    with JudgeServer(sevens, fault) as server:
        stage = {"steps": 3, "groups": 2, "group_size": 4, "reward": RubricJudge(judge="critic", rubric=RUBRIC)}
        judge = Judge(name="critic", url=server.url, model="m", pause=60.0, attempts=3, seconds=600.0, concurrency=4)
        run = replace(only_rl(**stage), judges=(judge,))
        whole = trained(run, tmp_path / "whole")
        one = replace(run, stages=(replace(run.stages[0], steps=1),))
        first.clear()
        trained(one, tmp_path / "one")
        answered, busy = len(first), True
        first.clear()
        check_stop(run, tmp_path / "run", sigterm)
        busy = False
        assert resumed(tmp_path / "run") == whole


async def reward(marks: str, prompt: str, completion: str, row: dict[str, Any]) -> float:
    """The share of sevens; behind as many calls as a file says one refused connection, and then no answer."""
    with Path(marks, "calls").open("ab") as file:
        file.write(b"x")
        calls = file.tell()
    if (busy := Path(marks, "busy")).exists() and calls > int(busy.read_text()):
        if Path(marks, "refused").exists():
            await asyncio.sleep(100.0)
        Path(marks, "refused").touch()
        raise ConnectionRefusedError("busy")
    return completion.count("7") / max(1, len(completion))


def test_an_asynchronous_reward_that_is_busy_when_the_run_is_stopped(tmp_path: Path) -> None:
    rows = [{"prompt": f"S{a}{b}>", "answer": f"{a}{b}"} for a in range(6) for b in range(6)]
    tasks = Rows(rows, reward=partial(reward, str(tmp_path)), name="sevens")
    run = replace(only_rl(steps=3, groups=2, group_size=4), tasks=tasks, reward_deadline=120.0)
    whole = trained(run, tmp_path / "whole")
    evaluations = (tmp_path / "calls").stat().st_size - 3 * BATCH
    assert evaluations % 2 == 0  # as many at the start as at the end
    (tmp_path / "calls").unlink()
    sigterm = Sigterm()
    (tmp_path / "busy").write_text(f"{evaluations // 2 + BATCH}")
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            if (tmp_path / "refused").exists():
                sigterm()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        check_stop(run, tmp_path / "run", sigterm)
    finally:
        done.set()
        watcher.join()
    (tmp_path / "busy").unlink()
    assert resumed(tmp_path / "run") == whole
