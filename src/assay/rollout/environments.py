"""Environments are asked with a deadline: their answer, or how they failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from assay.core.errors import ConfigError
from assay.core.protocols import Environment, Obs, Restorable
from assay.core.task import Context

__all__ = ["EnvironmentFailure", "ask_environment", "closed_at_end", "error_text", "open_environment"]

T = TypeVar("T", bound=object)


class EnvironmentFailure(Exception):
    """An environment raised, or gave no answer in time.

    Attributes:
        turn: the action that it failed at, counted from 1; 0 for its start.
        hung: it gave no answer within the deadline.
    """

    def __init__(self, turn: int, hung: bool, what: str) -> None:
        self.turn, self.hung = turn, hung
        super().__init__(f"environment {f'step {turn}' if turn else 'start'}: {what}")


async def open_environment(
    make: Callable[[], Environment | None], context: Context, deadline: float
) -> tuple[Environment | None, Obs]:
    """A fresh environment, and what it shows first: from the context's snapshot when that has one.

    Args:
        make: gives the environment of the context's task.
        context: where it starts.
        deadline: seconds for its start.

    Raises:
        ConfigError: the environment says that a setting is wrong, or nobody can start from the snapshot.
        Broken: it failed in another way.
    """
    try:
        world = make()
    except ConfigError:
        raise
    except Exception as failure:
        raise EnvironmentFailure(0, False, error_text(failure)) from failure
    if context.snapshot is None:
        return world, Obs() if world is None else await ask_environment(world.start, Obs, 0, deadline)
    if not isinstance(world, Restorable):
        who = "its task has no environment" if world is None else f"{type(world).__name__} cannot start from one"
        raise ConfigError(
            f"context {context.key!r} has a snapshot, but {who}; give the environment an `async restore(snapshot)`, or pose "
            "the context without snapshot"
        )
    return world, await ask_environment(lambda: world.restore(context.snapshot), Obs, 0, deadline)


@asynccontextmanager
async def closed_at_end(world: Environment | None) -> AsyncGenerator[None]:
    """Calls ``close()`` of an environment that has one, however its rollout ends; a failure of that changes no rollout."""
    try:
        yield
    finally:
        close = getattr(world, "close", None)
        if close is not None:
            with suppress(Exception):
                await close()


async def ask_environment(ask: Callable[[], Awaitable[T]], kind: type[T], turn: int, deadline: float) -> T:
    """The answer to one question.

    The coroutine is cancelled at the deadline. What it raises or returns after that is no answer any more.

    Args:
        ask: poses it.
        kind: what an answer is.
        turn: the action, from 1; 0 for the start.
        deadline: seconds.

    Raises:
        ConfigError: raised by a start: a setting is wrong.
        Broken: no answer in time, another error, or an answer of another kind.
    """
    limit = asyncio.timeout(deadline)
    found: object = None
    try:
        async with limit:
            found = await ask()
    except ConfigError as failure:
        if turn == 0:
            raise
        raise EnvironmentFailure(turn, False, error_text(failure)) from failure
    except asyncio.CancelledError as failure:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the rollout itself is cancelled, not something inside the environment
            raise
        raise EnvironmentFailure(turn, False, error_text(failure)) from failure
    except Exception as failure:
        if not limit.expired():
            raise EnvironmentFailure(turn, False, error_text(failure)) from failure
    if limit.expired():
        raise EnvironmentFailure(turn, True, f"no answer within {deadline:g} s")
    if not isinstance(found, kind):
        raise EnvironmentFailure(turn, False, f"its answer must be of type {kind.__name__}, not {type(found).__name__}")
    return found


def error_text(failure: BaseException) -> str:
    """Type and message."""
    return f"{type(failure).__name__}: {failure}"
