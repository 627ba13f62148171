"""The loops on the far side of a scoring pool, run in this process."""

import asyncio
import itertools
import os
import pickle
import signal
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe
from typing import Any

import pytest
from foreign_code import LONG, act, alive, items, task, threaded
from hypothesis import given
from hypothesis import strategies as st

from assay.core.canon import FrozenMap
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.testing import rollout_of
from assay.verify import ExactMatch, RewardFunction
from assay.verify.workers.connections import FlightPlan
from assay.verify.workers.process import AWAITS, BEAT, _pickle_verdict, run_fork_server, serve, views
from assay.verify.workers.results import ResultsFile, blank
from assay.verify.workers.stdout import StdoutFile


@pytest.fixture
def output() -> Iterator[int]:
    """An empty file for what a worker prints."""
    with tempfile.TemporaryFile() as file:
        yield file.fileno()


@pytest.fixture
def verdicts() -> Iterator[int]:
    """An empty file for a worker's verdicts."""
    with blank() as file:
        yield file.fileno()


class Near:
    """What a pool has of a worker."""

    def __init__(self, connection: Connection, verdicts: int) -> None:
        self.connection, self.verdicts = connection, ResultsFile(verdicts)

    def judged(self, items: list[Any], together: bool | FlightPlan = False) -> list[Any]:
        """The verdicts on a batch; without beats."""
        self.verdicts.begin()
        self.connection.send((items, together))
        assert [self.connection.recv_bytes(), self.connection.recv_bytes()] == [b"through"] * 2
        return [pickle.loads(data) for _, data in self.verdicts.new() if data != BEAT]


def served(verifier: Any, printed: StdoutFile, verdicts: int) -> tuple[Near, threading.Thread]:
    near, far = Pipe()
    return Near(near, verdicts), threaded(serve, far, verifier, printed, ResultsFile(verdicts))


def test_the_workers_loop(output: int, verdicts: int) -> None:
    near, thread = served(RewardFunction(act), StdoutFile(output), verdicts)
    right, wrong = near.judged([("p", "yes", {"answer": "yes"}), ("p", "exit", {})])
    assert (right.primary, wrong.fault) == (1.0, Fault.VERIFIER)
    (both,) = near.judged([("p", "yes", {"answer": "yes"}), ("p", "no", {"answer": "yes"})], together=True)
    assert [s.primary for s in both] == [1.0, 0.0]
    assert near.judged([("p", "exit", {})], together=True)[0].fault is Fault.VERIFIER
    near.connection.close()
    thread.join(LONG)
    assert not thread.is_alive()


async def asked(prompt: str, completion: str, row: dict[str, Any]) -> float:
    await asyncio.sleep(0)
    if completion == "lost":
        raise ConnectionResetError("gone")
    return act(prompt, completion, row)


class Unsendable(float):
    """A number that no other process can be told."""

    def __reduce__(self) -> Any:
        raise ValueError("stays here")


def called(prompt: str, completion: str, row: dict[str, Any]) -> float:
    if completion == "lost":
        raise ConnectionResetError("gone")
    return act(prompt, completion, row)


def test_the_workers_loop_with_calls_in_flight(output: int, verdicts: int) -> None:
    near, thread = served(RewardFunction(asked), StdoutFile(output), verdicts)
    view = ("p", "yes", {"answer": "yes"})
    assert near.judged([view]) == [AWAITS]
    found = {n: (tries, s) for n, tries, s in near.judged([view, ("p", "lost", {})], FlightPlan(attempts=2, pause=0.0))}
    assert (found[0][0], found[0][1].primary) == (1, 1.0)
    assert (found[1][0], found[1][1].fault) == (2, Fault.INFRA)
    near.connection.close()
    thread.join(LONG)
    assert not thread.is_alive()


def test_lost_connections_of_synchronous_calls(output: int, verdicts: int) -> None:
    async def batch(prompts: list[str], completions: list[str], rows: list[dict[str, Any]]) -> list[float]:
        return [await asked(*one) for one in zip(prompts, completions, rows, strict=True)]

    views = [("p", "yes", {"answer": "yes"}), ("p", "lost", {})]
    near, _ = served(RewardFunction(called), StdoutFile(output), verdicts)
    assert [s.fault for s in near.judged(views)] == [Fault.NONE, Fault.INFRA]
    near.connection.close()
    near, _ = served(RewardFunction(batch, batched=True), StdoutFile(output), verdicts)
    assert near.judged(views, together=True)[0].fault is Fault.INFRA
    assert [s.primary for s in near.judged(views[:1], together=True)[0]] == [1.0]
    near.connection.close()


def test_a_verifier_that_ends_its_program_is_at_fault(output: int, verdicts: int) -> None:
    class Ends:
        def __call__(self, task: Task, rollout: Rollout) -> Score:
            raise SystemExit("goodbye")

    near, _ = served(Ends(), StdoutFile(output), verdicts)
    (found,) = near.judged(items("yes"))
    assert (found.fault, "goodbye" in found.info["error"]) == (Fault.VERIFIER, True)
    near.connection.close()


def test_a_verdict_that_cannot_leave_its_process_keeps_its_number() -> None:
    alone, (number, tries, score) = (pickle.loads(_pickle_verdict(verdict)) for verdict in (Unsendable(), (3, 2, Unsendable())))
    assert (number, tries, score.fault, alone.fault) == (3, 2, Fault.VERIFIER, Fault.VERIFIER)
    assert "the verdict cannot leave its process: stays here" in score.info["error"]


@pytest.mark.parametrize("together", [True, False])
def test_what_is_printed_stands_in_the_verdict_of_its_call(output: int, verdicts: int, together: bool) -> None:
    printed = StdoutFile(output)

    def loud(prompts: list[str], completions: list[str], rows: list[dict[str, Any]]) -> list[float]:
        printed.add("".join(completions).encode())
        return [1.0] * len(prompts)

    near, _ = served(RewardFunction(loud, batched=True), printed, verdicts)
    found = near.judged([("p", "one", {}), ("p", "", {}), ("p", "two", {})], together)
    told = [s.info.get("printed") for s in (found[0] if together else found)]
    assert told == (["onetwo", None, None] if together else ["one", None, "two"])
    near.connection.close()


@pytest.mark.parametrize("together", [True, False])
def test_a_verdict_without_a_main_component_is_a_fault(output: int, verdicts: int, together: bool) -> None:
    function = RewardFunction(lambda p, c, r: [{"accuracy": 1.0, "style": 0.5}] * len(p), batched=True)
    near, _ = served(function, StdoutFile(output), verdicts)
    found = near.judged([("p", "yes", {})] * 2, together)
    both = found[0] if together else found
    assert [s.fault for s in both] == [Fault.VERIFIER] * 2
    assert "['accuracy', 'style'], and none of them says how good the answer is" in both[0].info["error"]
    near.connection.close()


def test_a_verdict_that_cannot_be_pickled_is_a_fault(output: int, verdicts: int) -> None:
    class Odd:
        def __call__(self, task: Task, rollout: Rollout) -> Score:
            return Score(components={"x": 1.0}, info=FrozenMap({"f": lambda: 0}))

    near, _ = served(Odd(), StdoutFile(output), verdicts)
    (verdict,) = near.judged(items("x"))
    assert "cannot leave its process" in verdict.info["error"]
    near.connection.close()


@given(st.lists(st.lists(st.binary(max_size=70), max_size=4), max_size=4), st.data())
def test_verdicts_are_read_whole_and_once(batches: list[list[bytes]], data: st.DataObject) -> None:
    with blank() as file, blank() as torn:
        writer, reader, late = ResultsFile(file.fileno()), ResultsFile(file.fileno()), ResultsFile(torn.fileno())
        for batch in batches:
            writer.clear()
            reader.begin()
            late.begin()
            before = time.monotonic()
            for verdict in batch:
                writer.add(verdict)
                if data.draw(st.booleans()):
                    assert all(before <= at <= time.monotonic() for at, _ in reader.new())
            written, found = os.pread(file.fileno(), 1 << 20, 0), list[bytes]()
            os.ftruncate(torn.fileno(), 0)
            cuts = sorted({*data.draw(st.lists(st.integers(0, len(written)), max_size=5)), len(written)})
            for a, b in itertools.pairwise([0, *cuts]):  # as it stands there at some moments
                os.pwrite(torn.fileno(), written[a:b], a)
                found += [verdict for _, verdict in late.new()]
            assert found == batch


@pytest.mark.parametrize("quits", [True, False])
def test_the_fork_servers_loop_ends_its_workers(monkeypatch: pytest.MonkeyPatch, output: int, verdicts: int, quits: bool) -> None:
    monkeypatch.setattr("assay.verify.workers.process._GLANCE", 0.05)
    near, far = socket.socketpair()
    thread = threaded(run_fork_server, far, RewardFunction(act), 1 << 32)
    order = struct.Struct("!cq")

    def told(fd: int | None, *message: Any) -> int:
        socket.send_fds(near, [order.pack(*message)], [] if fd is None else [fd, output, verdicts])
        return struct.unpack("!q", near.recv(8))[0]

    one, two, (_, one_more) = Pipe(), Pipe(), Pipe()
    first, second = (told(pipe[1].fileno(), b"S", 0) for pipe in (one, two))
    for _, end in (one, two):
        end.close()
    assert Near(one[0], verdicts).judged([("p", "yes", {"answer": "yes"})])[0].primary == 1.0
    os.kill(first, signal.SIGABRT)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert told(None, b"K", first) == -signal.SIGABRT  # it had ended by itself
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
    pairs = [(t, rollout_of(t, "yes", id="r0")), (t, rollout_of(t, "no", id="r1"))]
    first, second = views(RewardFunction(act), pairs)
    assert first == ("p", "yes", {"prompt": "p", "answer": "yes"})
    assert second[2] is first[2]
    assert views(ExactMatch(), pairs) == pairs
