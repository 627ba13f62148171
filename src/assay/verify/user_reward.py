"""Functions of users as verifiers: how a pool calls them, and what such a function may return."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from assay.core.canon import FrozenMap
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task

__all__ = [
    "ABSTAINED",
    "Pending",
    "UserReward",
    "abstained",
    "abstention",
    "describe_function",
    "gather",
    "is_async",
    "name_of",
    "settle",
]

_T = TypeVar("_T")

ABSTAINED = "none"
"""``info["verdict"]`` of an abstention."""


@dataclass(frozen=True, slots=True)
class Pending(Generic[_T]):
    """A call that has begun and is still to be awaited.

    Attributes:
        awaitable: what the function returned.
        read: makes the verdict of what it gives.
        parts: calls that ``awaitable`` awaits in its turn.
    """

    awaitable: Awaitable[Any]
    read: Callable[[Any], _T]
    parts: tuple[Pending[Any], ...] = ()

    async def result(self) -> _T:
        """Awaits it."""
        return self.read(await self.awaitable)

    def close(self) -> None:
        """Drops it: a coroutine that has not begun never will."""
        for part in self.parts:
            part.close()
        if inspect.iscoroutine(self.awaitable):
            self.awaitable.close()


def gather(begun: Sequence[Any], read: Callable[[list[Any]], _T]) -> _T | Pending[_T]:
    """What ``read`` makes of several results, of which some may be `Pending`: these are awaited at the same time.

    >>> gather([1, 2], sum)
    3
    """
    waiting = tuple(cast("Pending[Any]", part) for part in begun if isinstance(part, Pending))
    return Pending(_gather(begun, waiting), read, waiting) if waiting else read(list(begun))


async def _gather(begun: Sequence[Any], waiting: Sequence[Pending[Any]]) -> list[Any]:
    import asyncio  # not above: commands that only read settings need no event loop

    tasks = [asyncio.ensure_future(part.result()) for part in waiting]
    try:
        results = iter(await asyncio.gather(*tasks))
    finally:
        for task in tasks:  # where one fails, the others are not waited for
            task.cancel()
    return [next(results) if isinstance(part, Pending) else part for part in begun]


@runtime_checkable
class UserReward(Protocol):
    """A verifier that calls a function of the user's, which may be asynchronous, or judge several rollouts in one call."""

    @property
    def batched(self) -> bool:
        """Whether one call judges several rollouts."""
        ...

    @property
    def concurrent(self) -> bool:
        """Whether the function is known to be asynchronous; one that returns an awaitable all the same is found out."""
        ...

    def views(self, items: Sequence[tuple[Task, Rollout]]) -> list[Any]:
        """What travels to the process that calls the function, one per rollout."""
        ...

    def start(self, view: Any) -> Score | Pending[Score]:
        """Calls the function for one rollout."""
        ...

    def start_batch(self, views: Sequence[Any]) -> list[Score] | Pending[list[Score]]:
        """Calls the function once for several rollouts."""
        ...


def is_async(function: Any) -> bool:
    """Whether a callable is an ``async def``: also behind a partial, as a method, and as an object's ``__call__``.

    >>> async def judge(completion): return 1.0
    >>> is_async(functools.partial(judge)), is_async(len)
    (True, False)
    """
    inner = _innermost(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(_call_of(inner))


def settle(value: Any) -> Any:
    """The value itself, or what an awaitable gives, from any thread and also while an event loop runs in this one."""
    if not inspect.isawaitable(value):
        return value
    import asyncio  # not above: commands that only read settings need no event loop
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_await_value(value))
    with ThreadPoolExecutor(1) as other:
        return other.submit(asyncio.run, _await_value(value)).result()


async def _await_value(value: Awaitable[Any]) -> Any:
    return await value


def abstention(words: str = "the reward function gave None: no verdict on this item") -> Score:
    """The score of a rollout on which a function has no verdict: a fault without a number, never a 0.

    >>> abstention().valid, abstained(abstention())
    (False, True)
    """
    return Score(components={}, fault=Fault.VERIFIER, info=FrozenMap({"error": words, "verdict": ABSTAINED}))


def abstained(score: Score) -> bool:
    """Whether a score is an abstention, which is nobody's mistake."""
    return score.fault is Fault.VERIFIER and score.info.get("verdict") == ABSTAINED


def name_of(reward: Any) -> str:
    """The name of the function that a reward calls, of its class where the function has none.

    >>> from assay.verify import RewardFunction
    >>> name_of(RewardFunction(max)), name_of(functools.partial(max, 1))
    ('max', 'max')
    """
    inner = _innermost(getattr(reward, "fn", reward))
    return str(getattr(inner, "__name__", type(inner).__name__))


def describe_function(function: Any) -> str:
    """The name of a function with the place where it is written, for errors.

    >>> describe_function(max)
    "'max'"
    """
    inner = _innermost(function)
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    found = getattr(inspect.unwrap(getattr(inner, "__func__", inner)), "__code__", None) or getattr(
        _call_of(inner), "__code__", None
    )
    return f"'{name}'" if found is None else f"'{name}' ({found.co_filename}:{found.co_firstlineno})"


def _innermost(function: Any) -> Any:
    """What a partial calls in the end."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    return function


def _call_of(function: Any) -> Any:
    """The method by which an object is called; None of a class."""
    return None if isinstance(function, type) else getattr(cast("type[Any]", type(function)), "__call__", None)  # noqa: B004
