"""SIGTERM, which schedulers send some time before they kill, and SIGHUP of a closed terminal stop a run like Ctrl-C does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_runs import in_child, only_rl, resumed, trained

from assay.runs import storage
from assay.train.driver import train, when_stopped

# Waits within step 2 until it is told to go on, so that the signal finds it there however busy the machine is.
CHILD = """
import sys
import tiny_runs
from assay.runs import storage
from assay.train import stopping, train

stopping.ECHO = 0.0  # of a batch system and a launcher, which a test need not wait for
lines = 0

def hook(point):
    global lines
    lines += point == "journal:metrics"
    if lines == 2 and point == "append:rollouts":
        storage.on_write = lambda point: None
        print("in step 2", flush=True)
        sys.stdin.readline()

storage.on_write = hook
outcome = train(tiny_runs.only_rl(steps=6), sys.argv[1])
print(f"ended: {outcome.finished}, step {outcome.step}, digest {outcome.digest!r}", flush=True)
sys.exit(0 if outcome.finished else 75)
"""

HEARD = "stopping after this step, with a checkpoint; once more stops at once"


@pytest.fixture
def run_in_step_2(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "run")],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with child:
        try:
            assert child.stdout and child.stdout.readline() == "in step 2\n", child.communicate()[1]
            yield child
        finally:
            child.kill()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Digest of an uninterrupted run."""
    return trained(only_rl(steps=6), tmp_path_factory.mktemp("whole") / "run")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_one_signal_ends_the_step_and_leaves_a_checkpoint(tmp_path: Path, whole: str, number: signal.Signals) -> None:
    folder, said = tmp_path / "run", tmp_path / "said.txt"
    lines = 0

    def hook(point: str) -> None:
        nonlocal lines
        lines += point == "journal:metrics"
        if lines == 2 and point == "append:rollouts":  # in step 2
            storage.on_write = lambda point: None
            os.kill(os.getpid(), number)

    def work() -> None:
        signal.signal(number, signal.SIG_DFL)  # under nohup it is ignored, and a run keeps that
        storage.on_write = hook
        with said.open("w") as sys.stderr:
            outcome = train(only_rl(steps=6), folder)
        assert (outcome.finished, outcome.step, outcome.digest) == (False, 2, "")

    assert in_child(work) == 0
    assert HEARD in said.read_text()
    assert (folder / "LATEST").read_text() == "step_0000002\n"
    assert storage.read_json(folder / "checkpoints" / "step_0000002" / "state.json")["session"]["step"] == 2
    assert [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()] == [0, 1, 2]
    assert not (folder / "done.json").exists() and not (folder / "events.jsonl").exists()
    assert resumed(folder) == whole


@pytest.mark.prove
def test_a_process_of_its_own_hears_it_too(run_in_step_2: subprocess.Popen[str], tmp_path: Path, whole: str) -> None:
    run_in_step_2.send_signal(signal.SIGTERM)
    out, err = run_in_step_2.communicate("go on\n")
    assert (run_in_step_2.returncode, out) == (75, "ended: False, step 2, digest ''\n") and HEARD in err
    assert resumed(tmp_path / "run") == whole


@pytest.mark.prove
def test_a_second_sigterm_ends_at_once(run_in_step_2: subprocess.Popen[str], tmp_path: Path, whole: str) -> None:
    run_in_step_2.send_signal(signal.SIGTERM)
    assert run_in_step_2.stderr and any(HEARD in line for line in run_in_step_2.stderr)
    run_in_step_2.send_signal(signal.SIGTERM)
    out, err = run_in_step_2.communicate()
    assert (run_in_step_2.returncode, out) == (-signal.SIGINT, "") and "KeyboardInterrupt" in err
    assert (tmp_path / "run" / "LATEST").read_text() == "step_0000000\n"
    assert resumed(tmp_path / "run") == whole


def test_an_ignored_sighup_stays_ignored(tmp_path: Path) -> None:
    asked: list[str] = []

    def work() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with when_stopped(lambda: asked.append("asked")):
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
        assert asked == ["asked"]
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    assert in_child(work) == 0
