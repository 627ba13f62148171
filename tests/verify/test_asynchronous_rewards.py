"""Rewards that wait for a service: many calls in flight, each with a deadline and tries of its own."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from foreign_code import LONG, items

from assay.core.errors import ConfigError, EngineError, RewardError
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.interop import TrlReward, VerlReward
from assay.verify import RewardFunction, ScoringPool
from assay.verify.user_reward import Pending, is_async
from assay.verify.workers.asynchronous import score_concurrently
from assay.verify.workers.connections import FlightPlan, is_connection_error

Row = dict[str, Any]
HERE: list[str] = []
"""Calls that have begun, in a worker: it starts from the empty list of this process."""


async def meet(n: int) -> float:
    """Ends when ``n`` calls of one event loop have begun."""
    HERE.append("here")
    while len(HERE) % n or not HERE:
        await asyncio.sleep(0)
    return 1.0


def meeting(n: int) -> Callable[[str, str, Row], Coroutine[Any, Any, float]]:
    async def judge(prompt: str, completion: str, row: Row) -> float:
        return await meet(n)

    return judge


class Meeting:
    """An object with an asynchronous call."""

    def __init__(self, n: int) -> None:
        self.n = n

    async def __call__(self, prompt: str, completion: str, row: Row) -> float:
        return await meet(self.n)

    async def judge(self, prompt: str, completion: str, row: Row) -> float:
        return await meet(self.n)


async def counted(n: int, prompt: str, completion: str, row: Row) -> float:
    return await meet(n)


@pytest.mark.parametrize(
    "function",
    [meeting(8), Meeting(8), Meeting(8).judge, functools.partial(counted, 8), lambda p, c, row: meet(8)],
    ids=["async def", "object", "method", "partial", "lambda"],
)
def test_eight_calls_are_in_flight_at_once(function: Any) -> None:
    with ScoringPool(RewardFunction(function), LONG) as pool:
        verdicts = pool.score(items(*"abcdefgh"))
        assert [s.primary for s in verdicts.values()] == [1.0] * 8
        assert pool.score([]) == {}
        assert pool.counts == Counter()


def test_sixty_four_calls_are_in_flight_at_once_and_no_more() -> None:
    most = 0
    now = 0

    async def judge(prompt: str, completion: str, row: Row) -> dict[str, float]:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await meet(64)
        now -= 1
        return {"reward": 1.0, "most": float(most)}

    with ScoringPool(RewardFunction(judge), LONG) as pool:
        verdicts = pool.score(items(*map(str, range(128))))
    assert max(s.components["most"] for s in verdicts.values()) == 64.0


@pytest.mark.parametrize("adapter", [VerlReward, TrlReward])
def test_other_trainers_asynchronous_rewards_are_awaited_too(adapter: Any) -> None:
    async def compute_score(data_source: str, solution_str: str, ground_truth: str) -> float:
        return await meet(3) * (solution_str == ground_truth)

    async def reward(completions: list[str], answer: list[str], **columns: Any) -> list[float]:
        await asyncio.gather(*(meet(3) for _ in completions))
        return [float(c == a) for c, a in zip(completions, answer, strict=True)]

    with ScoringPool(adapter(compute_score if adapter is VerlReward else reward), LONG) as pool:
        assert [s.primary for s in pool.score(items("yes", "no", "yes")).values()] == [1.0, 0.0, 1.0]
        assert pool.counts == Counter()


def test_a_call_that_fails_is_made_again_alone() -> None:
    calls: Counter[str] = Counter()

    async def judge(prompt: str, completion: str, row: Row) -> dict[str, float]:
        calls[completion] += 1
        if completion == "b" and calls["b"] < 3:
            raise ConnectionResetError("the peer is gone")
        return {"reward": 1.0, "calls": float(sum(calls.values()))}

    with ScoringPool(RewardFunction(judge), LONG) as pool:
        verdicts = pool.score(items(*"abcd"))
        assert [s.fault for s in verdicts.values()] == [Fault.NONE] * 4
        assert max(s.components["calls"] for s in verdicts.values()) == 6.0
        assert pool.counts == Counter(reconnected=2)


def test_a_service_that_stays_away_is_an_infrastructure_fault_with_the_first_cause() -> None:
    seen: list[int] = []

    async def judge(prompt: str, completion: str, row: Row) -> float:
        if completion != "lost":
            return 1.0
        seen.append(1)
        raise ConnectionRefusedError(f"try {len(seen)}")

    with ScoringPool(RewardFunction(judge), LONG, attempts=2) as pool:
        verdicts = pool.score(items("a", "lost", "b"))
        lost = verdicts["r1"]
        assert (lost.fault, dict(lost.components), lost.valid) == (Fault.INFRA, {}, False)
        assert lost.info["error"] == "no verdict in 2 tries, the first of which ended so: ConnectionRefusedError: try 1"
        assert "in judge" in lost.info["traceback"]
        assert [verdicts[k].primary for k in ("r0", "r2")] == [1.0, 1.0]
        assert pool.counts == Counter(reconnected=1, unreached=1)


def test_a_service_that_is_down_is_told_in_one_line_and_blames_no_code() -> None:
    async def judge(prompt: str, completion: str, row: Row) -> float:
        try:
            raise OSError("deep in the client")
        except OSError as error:
            raise ConnectionRefusedError("nobody listens\nsee https://example.org") from error

    with ScoringPool(RewardFunction(judge), LONG, attempts=1) as pool, pytest.raises(RewardError) as told:
        pool.score(items("a", "b", "c"))
    text = str(told.value)
    assert text.startswith("the service of the reward function gave no answer on 3 of 3 answers")
    assert "ConnectionRefusedError: nobody listens (test_asynchronous_rewards.py, line" in text
    assert "\n" not in text and "deep in the client" not in text
    assert isinstance(told.value.__cause__, EngineError), "a resume needs no --allow-inexact"


def test_a_function_that_fails_beside_its_service_is_told_with_its_lines() -> None:
    async def judge(prompt: str, completion: str, row: Row) -> float:
        raise ConnectionRefusedError("away") if completion == "lost" else KeyError("no such field")

    with ScoringPool(RewardFunction(judge), LONG, attempts=1) as pool, pytest.raises(RewardError, match="Traceback") as told:
        pool.score(items("lost", "b", "c"))
    assert told.value.__cause__ is None


def test_a_call_without_an_answer_is_ended_at_its_deadline() -> None:
    async def judge(prompt: str, completion: str, row: Row) -> float:
        while completion == "silent":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:  # one that does not let itself be ended
                continue
        return 1.0

    with ScoringPool(RewardFunction(judge), 0.3) as pool:
        verdicts = pool.score(items("a", "silent", "b"))
        assert verdicts["r1"].fault is Fault.INFRA
        assert verdicts["r1"].info["error"] == "no verdict in 2 tries, the first of which ended so: no verdict within 0.3 s"
        assert [verdicts[k].primary for k in ("r0", "r2")] == [1.0, 1.0]


@pytest.mark.parametrize("stop", ["block", "die"])
def test_a_call_that_blocks_or_ends_its_process_harms_no_other(stop: str) -> None:
    async def judge(prompt: str, completion: str, row: Row) -> float:
        await asyncio.sleep(0.01)
        if completion == "block":
            threading.Event().wait()
        if completion == "die":
            os._exit(3)
        return 1.0

    with ScoringPool(RewardFunction(judge), 0.5, workers=2) as pool:
        for _ in range(2):
            verdicts = pool.score(items("a", stop, "b", "c"))
            assert [verdicts[k].primary for k in ("r0", "r2", "r3")] == [1.0] * 3
            assert verdicts["r1"].fault is Fault.POLICY
        assert pool.counts["hung" if stop == "block" else "died"] == 6


def test_what_a_coroutine_raises_is_the_functions_fault_and_is_tried_once_more() -> None:
    async def judge(prompt: str, completion: str, row: Row) -> float:
        print("seen", completion)
        if completion == "exit":
            sys.exit("goodbye")
        return 1.0 if completion == "a" else float("nan")

    with ScoringPool(RewardFunction(judge), LONG) as pool:
        verdicts = pool.score(items("a", "exit", "a", "a", "nan"))
        assert [s.fault for s in verdicts.values()].count(Fault.VERIFIER) == 2
        assert "goodbye" in verdicts["r1"].info["error"]
        assert "'test_what_a_coroutine" in verdicts["r4"].info["error"]
        assert "seen" in str([s.info.get("printed") for s in verdicts.values()])
        assert pool.counts == Counter(retried=2)


def test_a_client_that_a_function_keeps_stays_with_its_event_loop() -> None:
    kept: list[Any] = []

    async def judge(prompt: str, completion: str, row: Row) -> float:
        kept.append(asyncio.get_running_loop())
        return float(len({id(loop) for loop in kept}) + 0.1 * len(kept))

    with ScoringPool(RewardFunction(judge), LONG) as pool:
        pool.score(items("a"))
        assert pool.score(items("b"))["r0"].primary == pytest.approx(1.2)


def test_a_function_that_only_sometimes_awaits() -> None:
    async def slow() -> float:
        return 0.5

    def judge(prompt: str, completion: str, row: Row) -> Any:
        return slow() if completion == "ask" else 1.0

    for workers in (1, 4):
        with ScoringPool(RewardFunction(judge), LONG, workers=workers) as pool:
            for _ in range(2):
                verdicts = pool.score(items("a", "ask", "b", "ask", "c"))
                assert [s.primary for s in verdicts.values()] == [1.0, 0.5, 1.0, 0.5, 1.0]


def test_without_a_pool_a_coroutine_is_awaited_on_the_spot() -> None:
    async def judge(prompt: str, completion: str, row: Row) -> float:
        return float(len(completion))

    async def both(prompts: list[str], completions: list[str], rows: list[Row]) -> list[float]:
        return [float(len(c)) for c in completions]

    assert RewardFunction(judge).values(["p"], ["abc"], [{}]) == [{"reward": 3.0}]
    assert RewardFunction(both, batched=True).values(["p", "p"], ["abc", "d"], [{}, {}]) == [{"reward": 3.0}, {"reward": 1.0}]
    begun = RewardFunction(both, batched=True).start(("p", "abc", {}))
    assert isinstance(begun, Pending)
    assert asyncio.run(begun.result()).primary == 3.0


def test_what_counts_as_asynchronous() -> None:
    assert is_async(Meeting(1)) and is_async(Meeting(1).judge) and is_async(functools.partial(counted, 1))
    assert not any(map(is_async, [len, Meeting, lambda: meet(1)]))


class Busy(Exception):
    """As clients raise it."""

    status_code = 429


class Answered(Exception):
    """As `requests` raises it."""

    def __init__(self, status: int) -> None:
        self.response = type("Response", (), {"status_code": status})


def test_which_errors_say_nothing_about_the_answer() -> None:
    transport = type("TransportError", (Exception,), {"__module__": "httpx._exceptions"})
    caused = ValueError("no answer")
    caused.__cause__ = ConnectionAbortedError()
    for error in (TimeoutError(), EngineError("gone"), Busy(), Answered(503), type("ReadError", (transport,), {})(), caused):
        assert is_connection_error(error)
    circle = ValueError()
    circle.__cause__ = circle
    for error in (ValueError(), Answered(400), OSError("no such file"), circle):
        assert not is_connection_error(error)


class Scripted:
    """A reward whose calls do as a list says."""

    batched, concurrent = False, True

    def __init__(self, *script: Any) -> None:
        self.script = list(script)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        raise AssertionError("a pool starts it")

    def views(self, items: Any) -> list[Any]:
        return list(items)

    def start(self, view: Any) -> Score | Pending[Score]:
        act = self.script.pop(0)
        if isinstance(act, BaseException):
            raise act
        return act

    def start_batch(self, views: Any) -> list[Score]:
        raise AssertionError("it is not batched")


def flown(*script: Any, **plan: Any) -> list[tuple[int, int, Score]]:
    """What is told of one call, by a script of its tries."""
    told: list[tuple[int, int, Score]] = []
    settings = FlightPlan(**{"pause": 0.0, **plan})
    asyncio.run(score_concurrently(Scripted(*script), [0], settings, lambda *said: told.append(said), lambda: None))
    return told


def test_tries_in_this_process() -> None:
    good = Score(components={"reward": 1.0})
    assert flown(ConnectionError("a"), TimeoutError("b"), good) == [(0, 3, good)]
    ((_, tries, score),) = flown(EngineError("asked six times"), good)
    assert (tries, score.info["error"], score.fault) == (1, "EngineError: asked six times", Fault.INFRA)
    ((_, tries, score),) = flown(*[ConnectionError(str(n)) for n in range(9)])
    assert (tries, score.info["error"]) == (4, "no verdict in 4 tries, the first of which ended so: ConnectionError: 0")
    ((_, tries, score),) = flown(asyncio.CancelledError(), asyncio.CancelledError())
    assert (tries, score.fault) == (2, Fault.INFRA)
    with pytest.raises(MemoryError):
        flown(MemoryError())
    ((_, tries, score),) = flown(Pending(asyncio.sleep(60), float), good, deadline=0.01)
    assert (tries, score) == (2, good)


def test_a_pool_without_calls_or_tries_is_refused() -> None:
    cases: list[dict[str, Any]] = [{"in_flight": 0}, {"attempts": 0}]
    for wrong in cases:
        with pytest.raises(ConfigError, match="use at least 1 of each"):
            ScoringPool(RewardFunction(meeting(1)), **wrong)


def test_synchronous_rewards_that_lose_a_connection_are_no_mistake_of_the_function() -> None:
    def judge(prompt: str, completion: str, row: Row) -> float:
        if completion == "lost":
            raise ConnectionRefusedError("nobody listens")
        return 1.0

    def batch(prompts: list[str], completions: list[str], rows: list[Row]) -> list[float]:
        return [judge(p, c, r) for p, c, r in zip(prompts, completions, rows, strict=True)]

    for function in (RewardFunction(judge), RewardFunction(batch, batched=True)):
        with ScoringPool(function, LONG) as pool:
            verdicts = pool.score(items("a", "lost", "b"))
            assert (verdicts["r1"].fault, verdicts["r1"].info["error"]) == (
                Fault.INFRA,
                "ConnectionRefusedError: nobody listens",
            )
            assert pool.counts["unreached"] >= 1
            told = pool.news()
            assert bool(told) is function.batched
            assert all("its 3 answers were judged one by one. The cause: ConnectionRefusedError" in line for line in told)


def test_eight_verdicts_of_a_quarter_second_take_little_more_than_one() -> None:
    async def judge(prompt: str, completion: str, row: Row) -> float:
        await asyncio.sleep(0.25)
        return 1.0

    with ScoringPool(RewardFunction(judge), LONG) as pool:
        pool.score(items("a"))  # its process is there
        began = time.monotonic()
        pool.score(items(*"abcdefgh"))
        assert time.monotonic() - began < 8 * 0.25  # the barrier above is the proof; this one says that nothing else waits


def test_clients_made_in_every_call_are_told_from_a_service_that_is_slow() -> None:
    async def blocks_its_loop(prompt: str, completion: str, row: Row) -> float:
        time.sleep(0.02)  # as making an httpx.AsyncClient does
        await asyncio.sleep(0.02)
        return await blocks_its_loop(prompt, completion, row)

    with ScoringPool(RewardFunction(blocks_its_loop), deadline=0.4) as pool, pytest.raises(RewardError) as caught:
        pool.score(items(*"abcdefgh"))
    told = str(caught.value)
    assert "no verdict within 0.4 s, with its event loop blocked for 0." in told
    assert "--reward-deadline 30" in told and "once and keep it, not in every call" in told


def test_a_service_that_is_slow_says_how_to_raise_the_deadline() -> None:
    async def waits(prompt: str, completion: str, row: Row) -> float:
        await asyncio.sleep(LONG)
        return 1.0

    with ScoringPool(RewardFunction(waits), deadline=0.4) as pool, pytest.raises(RewardError) as caught:
        pool.score(items(*"abcd"))
    assert "on_rows(..., reward_deadline=30)" in str(caught.value) and "event loop" not in str(caught.value)
