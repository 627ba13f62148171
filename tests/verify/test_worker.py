"""The loops on the far side of a scoring pool, run in this process."""

import os
import signal
import socket
import struct
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Pipe
from typing import Any

import pytest
from foreign_code import LONG, act, alive, items, task, threaded

from assay.core.canon import FrozenMap
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.testing import attempt
from assay.verify import ExactMatch, RewardFunction
from assay.verify.printed import Printed
from assay.verify.worker import keep, serve, views


@pytest.fixture
def output() -> Iterator[int]:
    """An empty file for what a worker prints."""
    with tempfile.TemporaryFile() as file:
        yield file.fileno()


def test_the_workers_loop(output: int) -> None:
    near, far = Pipe()
    thread = threaded(serve, far, RewardFunction(act), Printed(output))
    near.send(([("p", "yes", {"answer": "yes"}), ("p", "exit", {})], False))
    assert near.recv() is None
    assert near.recv().primary == 1.0
    assert near.recv().fault is Fault.VERIFIER
    near.send(([("p", "yes", {"answer": "yes"}), ("p", "no", {"answer": "yes"})], True))
    assert [near.recv(), [s.primary for s in near.recv()]] == [None, [1.0, 0.0]]
    near.send(([("p", "exit", {})], True))
    assert [near.recv(), near.recv().fault] == [None, Fault.VERIFIER]
    near.close()
    thread.join(LONG)
    assert not thread.is_alive()


@pytest.mark.parametrize("together", [True, False])
def test_what_is_printed_stands_in_the_verdict_of_its_call(output: int, together: bool) -> None:
    printed = Printed(output)

    def loud(prompts: list[str], completions: list[str], rows: list[dict[str, Any]]) -> list[float]:
        printed.add("".join(completions).encode())
        return [1.0] * len(prompts)

    near, far = Pipe()
    threaded(serve, far, RewardFunction(loud, batched=True), printed)
    near.send(([("p", "one", {}), ("p", "", {}), ("p", "two", {})], together))
    assert near.recv() is None
    verdicts = near.recv() if together else [near.recv() for _ in range(3)]
    assert [s.info.get("printed") for s in verdicts] == (["onetwo", None, None] if together else ["one", None, "two"])
    near.close()


@pytest.mark.parametrize("together", [True, False])
def test_a_verdict_without_a_main_component_is_a_fault(output: int, together: bool) -> None:
    function = RewardFunction(lambda p, c, r: [{"accuracy": 1.0, "style": 0.5}] * len(p), batched=True)
    near, far = Pipe()
    threaded(serve, far, function, Printed(output))
    near.send(([("p", "yes", {})] * 2, together))
    assert near.recv() is None
    verdicts = near.recv() if together else [near.recv() for _ in range(2)]
    assert [s.fault for s in verdicts] == [Fault.VERIFIER] * 2
    assert "['accuracy', 'style'], and none of them says how good the answer is" in verdicts[0].info["error"]
    near.close()


def test_a_verdict_that_cannot_be_pickled_is_a_fault(output: int) -> None:
    class Odd:
        def __call__(self, task: Task, rollout: Rollout) -> Score:
            return Score(components={"x": 1.0}, info=FrozenMap({"f": lambda: 0}))

    near, far = Pipe()
    threaded(serve, far, Odd(), Printed(output))
    near.send((items("x"), False))
    assert near.recv() is None
    assert "cannot leave its process" in near.recv().info["error"]
    near.close()


@pytest.mark.parametrize("quits", [True, False])
def test_the_keepers_loop_ends_its_workers(monkeypatch: pytest.MonkeyPatch, output: int, quits: bool) -> None:
    monkeypatch.setattr("assay.verify.worker._GLANCE", 0.05)
    near, far = socket.socketpair()
    thread = threaded(keep, far, RewardFunction(act))
    order = struct.Struct("!cq")

    def told(fd: int | None, *message: Any) -> int:
        socket.send_fds(near, [order.pack(*message)], [] if fd is None else [fd, output])
        return struct.unpack("!q", near.recv(8))[0]

    one, two, (_, one_more) = Pipe(), Pipe(), Pipe()
    first, second = (told(pipe[1].fileno(), b"S", 0) for pipe in (one, two))
    for _, end in (one, two):
        end.close()
    one[0].send(([("p", "yes", {"answer": "yes"})], False))
    assert [one[0].recv(), one[0].recv().primary] == [None, 1.0]
    os.kill(first, signal.SIGTERM)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert told(None, b"K", first) == -signal.SIGTERM  # it had ended by itself
    assert told(None, b"K", told(one_more.fileno(), b"S", 0)) == -signal.SIGKILL
    if quits:
        near.send(order.pack(b"Q", 0))
    else:  # at the second look the training process is gone, and somebody else holds its end of the socket
        looks = iter([os.getppid()])
        monkeypatch.setattr(os, "getppid", lambda: next(looks, -1))
    thread.join(LONG)
    assert not thread.is_alive()
    assert not alive(first)
    assert not alive(second)


def test_attempts_at_one_task_share_its_row() -> None:
    t = task("p")
    pairs = [(t, attempt(t, "yes", id="r0")), (t, attempt(t, "no", id="r1"))]
    first, second = views(RewardFunction(act), pairs)
    assert first == ("p", "yes", {"prompt": "p", "answer": "yes"})
    assert second[2] is first[2]
    assert views(ExactMatch(), pairs) == pairs
