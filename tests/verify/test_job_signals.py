"""Signals that a batch system sends to all processes of a job: only the training process decides what they mean."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from foreign_code import LONG, items, pids

from assay.verify import RewardFunction, ScoringPool

SIGNALS = [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP]


def signal_job(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """Has the signal that the completion names reach its own process while it judges, then gives a verdict."""
    os.kill(os.getpid(), int(completion))
    return 1.0


@pytest.mark.parametrize("number", SIGNALS)
def test_workers_judge_on_when_the_job_is_signalled(number: signal.Signals) -> None:
    pool = ScoringPool(RewardFunction(signal_job), workers=1, deadline=LONG)
    try:
        assert pool.score(items("0"))["r0"].primary == 1.0
        before = pids(pool)
        for pid in before:
            os.kill(pid, number)
        assert pool.score(items(str(int(number))))["r0"].primary == 1.0
        assert pids(pool) == before
        assert not pool.counts.get("died")
    finally:
        pool.close()


def end_children(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """1.0 where a program and a copy that a reward starts can be ended by a signal as anywhere else."""
    number = int(completion)
    program = subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"])
    program.send_signal(number)
    copy = os.fork()
    if copy == 0:
        signal.pause()
    os.kill(copy, number)
    return float(program.wait() == -number and os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == -number)


@pytest.mark.parametrize("number", SIGNALS)
def test_what_a_reward_starts_can_be_ended_by_signals(number: signal.Signals) -> None:
    pool = ScoringPool(RewardFunction(end_children), workers=1, deadline=LONG)
    try:
        assert pool.score(items(str(int(number))))["r0"].primary == 1.0
    finally:
        pool.close()
