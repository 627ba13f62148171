"""Runs coroutines from plain functions, also inside a notebook, whose event loop is at work already; and plain functions from
coroutines.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["gather_or_cancel", "run_async", "run_in_thread", "run_loop_in_thread"]

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end and returns what it returns: `asyncio.run` where no event loop is at work in this thread.

    Where one is, as in a cell of a notebook, the coroutine runs in a loop of its own in another thread, with the caller's
    context variables, and the caller waits. An exception that a signal's handler raises here meanwhile, such as
    KeyboardInterrupt, cancels the coroutine, and is raised when that has ended.

    >>> async def answer() -> int:
    ...     return 42
    >>> async def cell() -> int:
    ...     return run_async(answer())
    >>> run_async(answer()), asyncio.run(cell())
    (42, 42)
    """
    # outside of an except block, or each traceback would begin with the answer to this question
    return _in_thread(work) if _loop_is_running() else asyncio.run(work)


async def gather_or_cancel(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; when one fails the others are cancelled, and its error is raised when they have ended.

    >>> async def twice(x: int) -> int:
    ...     return 2 * x
    >>> asyncio.run(gather_or_cancel([twice(1), twice(2)]))
    [2, 4]
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    ended: Future[T] = Future()

    async def whole() -> T:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        return await work

    def run() -> None:
        try:
            ended.set_result(asyncio.run(whole()))
        except BaseException as error:
            ended.set_exception(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), name="assay-loop", daemon=True)
    try:
        thread.start()  # waits until it has begun, and may be interrupted there too
        wait((ended,))  # not Thread.join: after an interrupt Python 3.11 takes the thread for one that has ended
    except BaseException:
        loop, task = started.result()
        loop.call_soon_threadsafe(task.cancel)
        wait((ended,))
        raise
    return ended.result()


async def run_in_thread(work: Callable[[], T]) -> T:
    """The result of ``work`` in a thread of its own, which nobody waits for once this is cancelled: threads cannot be ended, and
    those of an executor would keep the process from ending.

    >>> asyncio.run(run_in_thread(lambda: 42))
    42
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Future[T]] = loop.create_future()

    def settle(found: Future[T]) -> None:
        if not done.done():
            done.set_result(found)

    def run() -> None:
        found: Future[T] = Future()
        try:
            found.set_result(work())
        except BaseException as failure:
            found.set_exception(failure)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()
    found = await done
    error = found.exception()
    if error is not None and not isinstance(error, Exception):
        raise RuntimeError(f"{type(error).__name__}: {error}")
    return found.result()


async def run_loop_in_thread(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine in an event loop of its own, in another thread: what blocks in it holds up nobody here.

    Where this is cancelled, so is the coroutine, at its next ``await``.

    >>> async def answer() -> int:
    ...     return 42
    >>> asyncio.run(run_loop_in_thread(answer))
    42
    """
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    cancelled = threading.Event()

    async def whole() -> T:
        task = asyncio.current_task()
        assert task is not None
        begun.append((asyncio.get_running_loop(), task))
        if cancelled.is_set():  # before there was a task to cancel
            raise asyncio.CancelledError
        return await make()

    try:
        return await run_in_thread(lambda: asyncio.run(whole()))
    except asyncio.CancelledError:
        cancelled.set()
        for loop, task in begun:
            with suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(task.cancel)
        raise
