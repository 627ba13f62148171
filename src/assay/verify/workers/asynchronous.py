"""Asynchronous rewards in a worker: many calls in flight, each with a deadline and tries of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from assay.core.errors import EngineError
from assay.core.score import Score
from assay.verify.user_reward import Pending, UserReward
from assay.verify.verdict import broken_score, check_score
from assay.verify.workers.connections import BLOCKED, DeadlineError, FlightPlan, is_connection_error, unreached_score

__all__ = ["score_concurrently"]

_LONGEST_PAUSE = 8.0
"""Seconds between two tries at most."""


async def score_concurrently(
    verifier: UserReward,
    views: Sequence[Any],
    plan: FlightPlan,
    tell: Callable[[int, int, Score], None],
    beat: Callable[[], None],
) -> None:
    """Judges rollouts, ``plan.in_flight`` at a time.

    Args:
        verifier: calls the user's function.
        views: what it sees of each rollout.
        plan: limits.
        tell: hears of each verdict when it is there: the number of the view, how often it was tried, and the verdict.
        beat: called four times a deadline for as long as the event loop is not blocked.
    """
    slots = asyncio.Semaphore(plan.in_flight)
    blocked = _BlockedTime()

    async def one(number: int) -> None:
        tries, score = await _with_retries(verifier, views[number], plan, slots, number, blocked)
        tell(number, tries, score)

    pulse = asyncio.gather(_beat(plan.deadline / 4, beat), blocked.watch(plan.deadline / 100))
    try:
        await asyncio.gather(*(one(number) for number in range(len(views))))
    finally:
        pulse.cancel()
        with suppress(asyncio.CancelledError):
            await pulse


async def _beat(every: float, beat: Callable[[], None]) -> None:
    while True:
        beat()
        await asyncio.sleep(every)


@dataclass(slots=True)
class _BlockedTime:
    """How long the event loop was kept from its other calls by one that computes or waits on it.

    Attributes:
        seconds: so far.
    """

    seconds: float = 0.0

    async def watch(self, every: float) -> None:
        """Sleeps again and again; what a sleep takes longer than it was to is time in which nothing else was done."""
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            await asyncio.sleep(every)
            self.seconds += max(0.0, loop.time() - begun - every)


async def _with_retries(
    verifier: UserReward, view: Any, plan: FlightPlan, slots: asyncio.Semaphore, number: int, blocked: _BlockedTime
) -> tuple[int, Score]:
    """The number of tries and the verdict, or the fault with the first cause."""
    first: BaseException | None = None
    late = 0
    for attempt in range(plan.attempts):
        async with slots:
            found = await _within(_call(verifier, view), plan.deadline, blocked)
        if isinstance(found, Score):
            return attempt + 1, found
        first = first or found
        late += isinstance(found, DeadlineError)
        if late == 2 or isinstance(found, EngineError):  # assay's own clients have tried again already
            return attempt + 1, unreached_score(first, attempt + 1)
        if attempt + 1 < plan.attempts:  # calls that failed together do not come again together
            await asyncio.sleep(min(plan.pause * 2**attempt, _LONGEST_PAUSE) * (1 + number % 8 / 16))
    assert first is not None
    return plan.attempts, unreached_score(first, plan.attempts)


async def _call(verifier: UserReward, view: Any) -> Score | BaseException:
    """The verdict, a fault of the function's own making, or the error of its connection."""
    try:
        begun = verifier.start(view)
        return check_score(await begun.result() if isinstance(begun, Pending) else begun)
    except (MemoryError, asyncio.CancelledError):
        raise
    except BaseException as error:  # also sys.exit(), which an event loop would let through
        return error if is_connection_error(error) else broken_score(error)


async def _within(
    call: Coroutine[Any, Any, Score | BaseException], deadline: float, blocked: _BlockedTime
) -> Score | BaseException:
    """What a call gives within its deadline; one that ignores its cancellation is not waited for."""
    task, before = asyncio.ensure_future(call), blocked.seconds
    await asyncio.wait({task}, timeout=deadline)
    if not task.done():
        task.cancel()
        lost = blocked.seconds - before
        much = lost > deadline / 2
        return DeadlineError(f"no verdict within {deadline:g} s" + (f", {BLOCKED} for {lost:.1f} of them" if much else ""))
    return DeadlineError("the call was cancelled") if task.cancelled() else task.result()
